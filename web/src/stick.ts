// SPDX-License-Identifier: Apache-2.0
// A stick on the screen: a disc, and before it the knob, which shows what is pushed by whatever means.

import { h, setText } from "./dom";

/** How far the knob goes from the middle, of the disc's radius. */
const REACH = 0.68;

/** Sends what is pushed to the right and up, from -1 to 1, and zero as soon as it is let go. */
export class Stick {
  readonly element: HTMLElement;
  #knob = h("span.knob");
  #value = h("output.stick-value");
  #disc: HTMLElement;
  #pointer?: number;

  constructor(side: "left" | "right", label: string, private push: (right: number, up: number) => void) {
    this.#disc = h(`div.stick.${side}`, { role: "img", "aria-label": label }, h("span.disc"), this.#knob);
    this.element = h(`div.stick-box.${side}`, {}, this.#disc, this.#value);
    this.#disc.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      this.#pointer = event.pointerId;
      this.#disc.setPointerCapture(event.pointerId);
      this.#follow(event);
    });
    this.#disc.addEventListener("pointermove", (event) => event.pointerId === this.#pointer && this.#follow(event));
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"] as const) {
      this.#disc.addEventListener(name, (event) => event.pointerId === this.#pointer && this.letGo());
    }
  }

  letGo(): void {
    this.#pointer = undefined;
    this.push(0, 0);
  }

  /** Draw the knob where it is pushed to, with the value in words. */
  show(right: number, up: number, value: string): void {
    const length = Math.max(1, Math.hypot(right, up));
    this.#knob.style.left = `${50 + (50 * REACH * right) / length}%`;
    this.#knob.style.top = `${50 - (50 * REACH * up) / length}%`;
    setText(this.#value, value);
  }

  #follow({ clientX, clientY }: PointerEvent): void {
    const { left, top, width, height } = this.#disc.getBoundingClientRect();
    const radius = (REACH * Math.min(width, height)) / 2;
    const [right, up] = [(clientX - left - width / 2) / radius, (top + height / 2 - clientY) / radius];
    const length = Math.max(1, Math.hypot(right, up));
    this.push(right / length, up / length);
  }
}
