// SPDX-License-Identifier: Apache-2.0
// How sticks feel: trim, expo and limit of each axis, and which axis of a gamepad is which. Kept in the browser.

import { h, setText } from "./dom";
import type { Fleet } from "./fleet";
import { AXES, STILL, isStill, type Axis, type Helm, type Motion } from "./helm";

/** What a positive value of each axis means. */
export const DIRECTION: Record<Axis, string> = { x: "forward", y: "left", z: "up", yaw: "turn left" };

/** All in percent. */
interface Shape {
  /** Added while anything is pushed: what is let go is neutral. */
  trim: number;
  /** 0 is a straight line, 100 a cube, which is fine in the middle. */
  expo: number;
  /** What a full push gives. */
  limit: number;
}
const SHAPES: [keyof Shape, number, number][] = [["trim", -20, 20], ["expo", 0, 100], ["limit", 10, 100]];
const PLAIN: Shape = { trim: 0, expo: 0, limit: 100 };

/** Which axis of a gamepad moves along which of ours, and whether it points the other way. */
type Mapping = Record<Axis, { axis: number; isReversed: boolean }>;
/** As browsers count the axes of a standard gamepad: right and back are positive. */
const STANDARD: Mapping = {
  x: { axis: 3, isReversed: true }, y: { axis: 2, isReversed: true }, z: { axis: 1, isReversed: true }, yaw: { axis: 0, isReversed: true },
};
/** The red button of most gamepads, B or a circle. */
export const STOP_BUTTON = 1;
const DEAD_ZONE = 0.12;
const PERIOD_MS = 200;

export function connectedGamepad(): Gamepad | undefined {
  return navigator.getGamepads().find((each) => each?.connected && each.axes.length >= 2) ?? undefined;
}

export class Feel {
  readonly element: HTMLElement;
  #name = h("input", { type: "text", maxlength: 24, placeholder: "as the server numbers you", "aria-label": "Your name" });
  #shapes = h("tbody");
  #mapping = h("tbody");
  #pad = h("p.hint");
  #node = "";

  constructor(helm: Helm, fleet: Fleet) {
    const reset = h("button.small", { onclick: () => this.#reset() }, "As they were");
    this.element = h("div.tab-body", {}, h("div.scroll.feel", { tabindex: 0 },
      h("label.field", {}, h("span", {}, "Your name, as others see it"), this.#name),
      h("table", {}, h("caption", {}, "Sticks, keys and gamepad, in %"), head("", "trim", "expo", "limit"), this.#shapes),
      h("table", {}, h("caption", {}, "Gamepad"), head("", "axis", "reversed", "now"), this.#mapping),
      this.#pad, reset));
    this.#name.value = localStorage.getItem("name") ?? "";
    this.#name.addEventListener("change", () => {
      localStorage.setItem("name", this.#name.value);
      helm.greet(this.#name.value);
    });
    helm.addEventListener("open", () => this.#name.value && helm.greet(this.#name.value));
    fleet.addEventListener("change", () => this.#follow(fleet.subject.vehicle?.node ?? ""));
    window.addEventListener("gamepadconnected", () => this.#fill());
    setInterval(() => this.#showPad(), PERIOD_MS);
    this.#fill();
  }

  /** What a push comes to, by trim, expo and limit. */
  shaped(pushed: Motion): Motion {
    if (isStill(pushed)) return STILL;
    const motion = { ...STILL };
    for (const axis of AXES) {
      const { trim, expo, limit } = this.#shape(axis);
      const value = pushed[axis];
      const bent = (1 - expo / 100) * value + (expo / 100) * value ** 3;
      motion[axis] = Math.max(-1, Math.min(1, (bent * limit + trim) / 100));
    }
    return motion;
  }

  /** What a gamepad pushes. */
  read(pad: Gamepad): Motion {
    const motion = { ...STILL };
    for (const axis of AXES) {
      const { axis: index, isReversed } = this.#mapped(pad.id)[axis];
      motion[axis] = beyondDeadZone(pad.axes[index] ?? 0) * (isReversed ? -1 : 1) || 0;
    }
    return motion;
  }

  #shape(axis: Axis): Shape {
    return { ...PLAIN, ...stored<Record<string, Shape>>(this.#shapesKey)[axis] };
  }

  get #shapesKey(): string {
    return `feel ${this.#node}`;
  }

  #mapped(id: string): Mapping {
    return { ...STANDARD, ...stored<Mapping>(`gamepad ${id}`) };
  }

  #follow(node: string): void {
    if (node === this.#node) return;
    this.#node = node;
    this.#fill();
  }

  #reset(): void {
    localStorage.removeItem(this.#shapesKey);
    const pad = connectedGamepad();
    if (pad) localStorage.removeItem(`gamepad ${pad.id}`);
    this.#fill();
  }

  #fill(): void {
    this.#shapes.replaceChildren(...AXES.map((axis) => h("tr", {}, h("th", { scope: "row" }, DIRECTION[axis]),
      ...SHAPES.map(([name, min, max]) => {
        const input = h("input", { type: "number", min, max, step: 1, value: this.#shape(axis)[name], "aria-label": `${name} of ${DIRECTION[axis]}, %`, "data-feel": `${name} ${axis}` });
        input.addEventListener("change", () => {
          if (!input.reportValidity() || input.value === "") return;
          store(this.#shapesKey, axis, { ...this.#shape(axis), [name]: Number(input.value) });
        });
        return h("td", {}, input);
      }))));
    const pad = connectedGamepad();
    const mapping = this.#mapped(pad?.id ?? "");
    this.#mapping.replaceChildren(...(pad ? AXES : []).map((axis) => {
      const select = h("select", { "aria-label": `Axis for ${DIRECTION[axis]}` }, ...pad!.axes.map((_, index) => h("option", { value: index }, String(index))));
      const reversed = h("input", { type: "checkbox", checked: mapping[axis].isReversed, "aria-label": `${DIRECTION[axis]} reversed` });
      select.value = String(mapping[axis].axis);
      for (const input of [select, reversed]) {
        input.addEventListener("change", () => store(`gamepad ${pad!.id}`, axis, { axis: Number(select.value), isReversed: reversed.checked }));
      }
      return h("tr", { "data-pad": axis }, h("th", { scope: "row" }, DIRECTION[axis]), h("td", {}, select), h("td", {}, reversed), h("td.now"));
    }));
    this.#showPad();
  }

  #showPad(): void {
    const pad = connectedGamepad();
    if (Boolean(pad) !== this.#mapping.hasChildNodes()) return this.#fill();
    setText(this.#pad, pad ? `${pad.id}. Its button ${STOP_BUTTON} (B, or a circle) is STOP.` : "No gamepad yet: press one of its buttons to connect it.");
    if (!pad) return;
    const motion = this.read(pad);
    for (const row of this.#mapping.children) setText(row.querySelector(".now")!, `${Math.round(100 * motion[(row as HTMLElement).dataset["pad"] as Axis])} %`);
  }
}

function head(...names: string[]): HTMLElement {
  return h("thead", {}, h("tr", {}, ...names.map((name) => (name ? h("th", { scope: "col" }, name) : h("td")))));
}

function stored<T>(key: string): Partial<T> {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "{}") as Partial<T>;
  } catch {
    return {};
  }
}

function store(key: string, axis: Axis, value: object): void {
  localStorage.setItem(key, JSON.stringify({ ...stored<Record<string, object>>(key), [axis]: value }));
}

/** A worn stick does not come back to the middle. */
export function beyondDeadZone(value: number): number {
  const size = Math.abs(value);
  return size < DEAD_ZONE ? 0 : (Math.sign(value) * (Math.min(1, size) - DEAD_ZONE)) / (1 - DEAD_ZONE);
}
