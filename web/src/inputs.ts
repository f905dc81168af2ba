// SPDX-License-Identifier: Apache-2.0
// Sticks on the screen, keys and a gamepad, added up. What is released is zero at once.

import { STOP_BUTTON, beyondDeadZone, connectedGamepad, type Feel } from "./feel";
import { AXES, STILL, isStill, type Axis, type Motion } from "./helm";
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
  #keys = new Set<string>();
  #pushed: Record<"left" | "right" | "gamepad", Motion> = { left: STILL, right: STILL, gamepad: STILL };
  #wasStop = false;

  constructor(private feel: Feel) {
    super();
    window.addEventListener("keydown", (event) => this.#onKey(event, true));
    window.addEventListener("keyup", (event) => this.#onKey(event, false));
    window.setInterval(() => this.#readGamepad(), GAMEPAD_PERIOD_MS);
  }

  letGo(): void {
    this.#keys.clear();
    this.left.letGo();
    this.right.letGo();
    this.#changed();
  }

  get motion(): Motion {
    const motion = { ...STILL };
    for (const key of this.#keys) {
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
    if (!(event.code in KEYS)) return;
    if (!isDown) {
      if (this.#keys.delete(event.code)) this.#changed();
      return;
    }
    const target = event.target as HTMLElement;
    const isSlider = target.matches("input[type=range]") && !event.code.startsWith("Key");
    const isTyping = isSlider || target.matches("input:not([type=range], [type=checkbox]), select, textarea");
    if (!this.isActive || isTyping || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    if (event.repeat) return;
    this.#keys.add(event.code);
    this.#changed();
  }

  #readGamepad(): void {
    const pad = document.hasFocus() ? connectedGamepad() : undefined;
    const isStop = pad?.buttons?.[STOP_BUTTON]?.pressed === true;
    if (isStop && !this.#wasStop) this.dispatchEvent(new Event("stop"));
    this.#wasStop = isStop;
    const before = this.#pushed.gamepad;
    this.#pushed.gamepad = this.isActive && pad ? this.feel.read(pad) : STILL;
    if (!isStill(before) || !isStill(this.#pushed.gamepad)) this.#changed();
  }

  #changed(): void {
    this.dispatchEvent(new Event("change"));
  }
}
