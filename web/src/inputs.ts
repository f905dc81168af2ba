// SPDX-License-Identifier: Apache-2.0
// Sticks on the screen, keys and a gamepad, added up. What is released is zero at once.

import nipplejs from "nipplejs";
import { AXES, STILL, isStill, type Axis, type Motion } from "./helm";

/** Keys as they lie on the keyboard, whatever is printed on them. */
const KEYS: Record<string, [Axis, number]> = {
  KeyW: ["x", 1], KeyS: ["x", -1], ArrowUp: ["x", 1], ArrowDown: ["x", -1],
  KeyA: ["y", 1], KeyD: ["y", -1],
  KeyQ: ["yaw", 1], KeyE: ["yaw", -1], ArrowLeft: ["yaw", 1], ArrowRight: ["yaw", -1],
  KeyR: ["z", 1], KeyF: ["z", -1], PageUp: ["z", 1], PageDown: ["z", -1],
};
const DEAD_ZONE = 0.12;
const GAMEPAD_PERIOD_MS = 50;

/** Sends "change" when what is pushed changes. */
export class Inputs extends EventTarget {
  isActive = false;
  axes: readonly Axis[] = AXES;
  #keys = new Set<string>();
  #left: Motion = STILL;
  #right: Motion = STILL;
  #gamepad: Motion = STILL;

  constructor() {
    super();
    window.addEventListener("keydown", (event) => this.#onKey(event, true));
    window.addEventListener("keyup", (event) => this.#onKey(event, false));
    window.setInterval(() => this.#readGamepad(), GAMEPAD_PERIOD_MS);
  }

  /** Two sticks: the left one for what turns and climbs, the right one for where to go. */
  attach(left: HTMLElement, right: HTMLElement): void {
    const rover = () => !this.axes.includes("y");
    this.#stick(left, (right_, up) => (this.#left = { ...STILL, yaw: -right_, z: up }));
    this.#stick(right, (right_, up) => (this.#right = { ...STILL, x: up, ...(rover() ? { yaw: -right_ } : { y: -right_ }) }));
  }

  letGo(): void {
    this.#keys.clear();
    this.#left = this.#right = STILL;
    this.#changed();
  }

  get motion(): Motion {
    const motion = { ...STILL };
    for (const key of this.#keys) {
      const [axis, value] = KEYS[key]!;
      // A rover has no sideways: the same keys turn it.
      if (axis === "y" && !this.axes.includes("y")) motion.yaw += value;
      else motion[axis] += value;
    }
    for (const axis of AXES) {
      const sum = motion[axis] + this.#left[axis] + this.#right[axis] + this.#gamepad[axis];
      motion[axis] = this.axes.includes(axis) ? Math.max(-1, Math.min(1, sum)) + 0 : 0;
    }
    return motion;
  }

  #stick(zone: HTMLElement, take: (right: number, up: number) => void): void {
    const stick = nipplejs.create({
      zone, mode: "static", position: { left: "50%", top: "50%" }, size: 120, color: "currentColor", restOpacity: 0.8,
      dynamicPage: true, // what is above may grow or go
    });
    // eslint-disable-next-line @typescript-eslint/no-explicit-any
    const on = (name: string, listener: (event: any, data: any) => void) => (stick as any).on(name, listener);
    on("move", (event, data) => {
      const { vector } = data ?? event.data;
      take(beyondDeadZone(vector.x), beyondDeadZone(vector.y));
      this.#changed();
    });
    on("end", () => {
      take(0, 0);
      this.#changed();
    });
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
    if (!this.isActive || !document.hasFocus()) {
      this.#gamepad = STILL;
      return;
    }
    const pad = navigator.getGamepads().find((each) => each?.connected && each.axes.length >= 4);
    const [turn = 0, climb = 0, right = 0, back = 0] = pad?.axes.map((value) => beyondDeadZone(value)) ?? [];
    const before = this.#gamepad;
    this.#gamepad = { x: -back || 0, y: -right || 0, z: -climb || 0, yaw: -turn || 0 };
    if (!isStill(before) || !isStill(this.#gamepad)) this.#changed();
  }

  #changed(): void {
    this.dispatchEvent(new Event("change"));
  }
}

function beyondDeadZone(value: number): number {
  const size = Math.abs(value);
  return size < DEAD_ZONE ? 0 : (Math.sign(value) * (Math.min(1, size) - DEAD_ZONE)) / (1 - DEAD_ZONE);
}
