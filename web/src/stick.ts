// SPDX-License-Identifier: Apache-2.0
// Stick on the screen: a disc with a knob, which shows the input from any device.

import { h, setText } from "./dom";

/** Maximum distance of the knob from the centre, as a share of the disc's radius. */
const REACH = 0.68;

/** Sends the deflection to the right and up, from -1 to 1, and zero as soon as it is released. */
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

  /** Draw the knob at its deflection, with the value as text. */
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
