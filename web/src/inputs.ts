// SPDX-License-Identifier: Apache-2.0
// Sticks on the screen, keys and a gamepad, added up. Releasing one is zero at once, and none counts before it was at neutral.

import { gamepads } from "./browser_features";
import { DIRECTION, beyondDeadZone, type Feel } from "./feel";
import { HeldKeys, isModifier } from "./held_keys";
import { AXES, STILL, isStill, type Axis, type Motion } from "./helm";
import { NeutralGate } from "./neutral_gate";
import { StopButtons } from "./pad_choice";
import { Stick } from "./stick";

/** Keys as they lie on the keyboard, whatever is printed on them. */
const KEYS: Record<string, [Axis, number]> = {
  KeyW: ["x", 1], KeyS: ["x", -1], ArrowUp: ["x", 1], ArrowDown: ["x", -1],
  KeyA: ["y", 1], KeyD: ["y", -1],
  KeyQ: ["yaw", 1], KeyE: ["yaw", -1], ArrowLeft: ["yaw", 1], ArrowRight: ["yaw", -1],
  KeyR: ["z", 1], KeyF: ["z", -1], PageUp: ["z", 1], PageDown: ["z", -1],
};
const GAMEPAD_PERIOD_MS = 50;

/** Sends "change" when what is pushed changes, and "stop" when a gamepad's button says so. */
export class Inputs extends EventTarget {
  isActive = false;
  axes: readonly Axis[] = AXES;
  /** What turns and climbs. */
  readonly left = new Stick("left", "Left stick: turn and climb. Keys: Q, E, R, F", (right, up) => this.#push("left", { ...STILL, yaw: -right, z: up }));
  /** Where to go; a rover has no sideways, and turns. */
  readonly right = new Stick("right", "Right stick: move. Keys: W, A, S, D", (right, up) => this.#push("right", { ...STILL, x: up, [this.#sideways]: -right }));
  /** Which gamepad steers, and why it does not yet; empty without one. */
  padText = "";
  #keys = new HeldKeys();
  #gate = new NeutralGate<Axis>();
  #stopButtons = new StopButtons();
  #pushed: Record<"left" | "right" | "gamepad", Motion> = { left: STILL, right: STILL, gamepad: STILL };

  constructor(private feel: Feel) {
    super();
    window.addEventListener("keydown", (event) => this.#onKey(event, true));
    window.addEventListener("keyup", (event) => this.#onKey(event, false));
    window.addEventListener("contextmenu", () => this.#keys.letGo() && this.#changed());
    window.setInterval(() => this.#readGamepads(), GAMEPAD_PERIOD_MS);
  }

  /** Have everything pushed anew. */
  letGo(): void {
    this.#keys.letGo();
    this.#gate.close();
    this.#pushed.gamepad = STILL;
    this.left.letGo();
    this.right.letGo();
    this.#changed();
  }

  get motion(): Motion {
    const motion = { ...STILL };
    for (const key of this.#keys.codes) {
      const [axis, value] = KEYS[key]!;
      motion[axis === "y" ? this.#sideways : axis] += value;
    }
    for (const axis of AXES) {
      const sum = motion[axis] + Object.values(this.#pushed).reduce((total, each) => total + each[axis], 0);
      motion[axis] = this.axes.includes(axis) ? Math.max(-1, Math.min(1, sum)) + 0 : 0;
    }
    return motion;
  }

  /** Draw where the sticks are, however that came, with what is commanded, from -1 to 1. */
  show(commanded: Motion): void {
    const { motion } = this;
    const percent = (axis: Axis): string => `${Math.round(100 * Math.abs(commanded[axis]))} %`;
    const words = (axis: Axis, positive: string, negative: string): string =>
      this.axes.includes(axis) ? `${commanded[axis] < 0 ? negative : positive} ${percent(axis)}` : "";
    this.left.show(-motion.yaw, motion.z, `${words("yaw", "left", "right")} · ${words("z", "up", "down")}`);
    const across = this.#sideways;
    this.right.show(-motion[across], motion.x, `${words("x", "ahead", "back")} · ${words(across, "left", "right")}`);
  }

  get #sideways(): Axis {
    return this.axes.includes("y") ? "y" : "yaw";
  }

  #push(from: "left" | "right", motion: Motion): void {
    for (const axis of AXES) motion[axis] = beyondDeadZone(motion[axis]);
    this.#pushed[from] = motion;
    this.#changed();
  }

  #onKey(event: KeyboardEvent, isDown: boolean): void {
    if (!isDown) {
      if (this.#keys.up(event)) this.#changed();
      return;
    }
    if (!isModifier(event)) {
      if (!(event.code in KEYS)) return;
      const target = event.target as HTMLElement;
      const isSlider = target.matches("input[type=range]") && !event.code.startsWith("Key");
      if (!this.isActive || isSlider || target.matches("input:not([type=range], [type=checkbox]), select, textarea")) return;
      event.preventDefault();
    }
    if (this.#keys.down(event)) this.#changed();
  }

  #readGamepads(): void {
    const hasFocus = document.hasFocus();
    if (this.#stopButtons.look(hasFocus ? gamepads() : [])) this.dispatchEvent(new Event("stop"));
    const { pad } = this.feel;
    const before = [isStill(this.#pushed.gamepad), this.padText].join();
    const pushed = { ...STILL };
    if (!this.isActive || !hasFocus) this.#gate.close();
    else for (const { axis, source, value } of pad ? this.feel.read(pad) : []) pushed[axis] = this.#gate.pass(axis, source, value);
    this.#pushed.gamepad = pushed;
    this.padText = pad ? this.#describe(pad) : "";
    if (!isStill(pushed) || before !== [true, this.padText].join()) this.#changed();
  }

  #describe(pad: Gamepad): string {
    const name = pad.id.replace(/ *\(.*/, "") || pad.id;
    if (!this.feel.isMapped(pad)) return `${name} does not steer: choose its axes under Sticks.`;
    const closed = this.#gate.closed.map((axis) => DIRECTION[axis]);
    return closed.length > 0 ? `${name}: let go of it first (${closed.join(", ")}).` : `${name} steers.`;
  }

  #changed(): void {
    this.dispatchEvent(new Event("change"));
  }
}
