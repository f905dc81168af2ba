// SPDX-License-Identifier: Apache-2.0
// Screen sticks, keys and a gamepad, added up. A released input is zero immediately, and inputs count only after neutral.

import { gamepads } from "./browser_features";
import { DIRECTION, beyondDeadZone, type Feel } from "./feel";
import { HeldKeys, isModifier } from "./held_keys";
import { AXES, STILL, isStill, type Axis, type Motion } from "./helm";
import { NeutralGate } from "./neutral_gate";
import { StopButtons } from "./pad_choice";
import { Stick } from "./stick";

/** Keys by their position on the keyboard, for any layout. */
const KEYS: Record<string, [Axis, number]> = {
  KeyW: ["x", 1], KeyS: ["x", -1], ArrowUp: ["x", 1], ArrowDown: ["x", -1],
  KeyA: ["y", 1], KeyD: ["y", -1],
  KeyQ: ["yaw", 1], KeyE: ["yaw", -1], ArrowLeft: ["yaw", 1], ArrowRight: ["yaw", -1],
  KeyR: ["z", 1], KeyF: ["z", -1], PageUp: ["z", 1], PageDown: ["z", -1],
};
const GAMEPAD_PERIOD_MS = 50;

/** Sends "change" when an input changes, and "stop" when a gamepad's button is pressed. */
export class Inputs extends EventTarget {
  isActive = false;
  axes: readonly Axis[] = AXES;
  /** Turn and climb. */
  readonly left = new Stick("left", "Left stick: turn and climb. Keys: Q, E, R, F", (right, up) => this.#push("left", { ...STILL, yaw: -right, z: up }));
  /** Direction; a rover has no sideways axis, and turns. */
  readonly right = new Stick("right", "Right stick: move. Keys: W, A, S, D", (right, up) => this.#push("right", { ...STILL, x: up, [this.#sideways]: -right }));
  /** Name of the steering gamepad, with the reason if it does not steer yet; empty without one. */
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

  /** Require all inputs to return to neutral first. */
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

  /** Show the position of the sticks, by any input, with the commanded values from -1 to 1. */
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
    if (!this.isActive || !hasFocus || !pad) this.#gate.close();
    else for (const { axis, source, value } of this.feel.read(pad)) pushed[axis] = this.#gate.pass(axis, source, value);
    this.#pushed.gamepad = pushed;
    this.padText = pad ? this.#describe(pad) : "";
    if (!isStill(pushed) || before !== [true, this.padText].join()) this.#changed();
  }

  #describe(pad: Gamepad): string {
    const name = pad.id.replace(/ *\(.*/, "") || pad.id;
    if (!this.feel.isMapped(pad)) return `${name} does not steer. Choose its axes under Sticks.`;
    const closed = this.#gate.closed.map((axis) => DIRECTION[axis]);
    return closed.length > 0 ? `${name}: release it first (${closed.join(", ")}).` : `${name} steers.`;
  }

  #changed(): void {
    this.dispatchEvent(new Event("change"));
  }
}
