// SPDX-License-Identifier: Apache-2.0
// Response of sticks: the limit of each axis, and the mapping of gamepad axes. Stored in the browser.

import type { Alarm } from "./alarm";
import { gamepads, storage } from "./browser_features";
import { h, setText } from "./dom";
import type { Fleet } from "./fleet";
import { AXES, STILL, type Axis, type Helm, type Motion } from "./helm";
import { STOP_BUTTON, chosenPad } from "./pad_choice";

/** Direction of a positive value, by axis. */
export const DIRECTION: Record<Axis, string> = { x: "forward", y: "left", z: "up", yaw: "turn left" };

/** Values at full deflection, by axis, in percent. */
type Limits = Record<string, { limit?: number }>;
const MIN_LIMIT = 10;
const MAX_LIMIT = 100;

/** Mapping of a gamepad's axis to one of ours, and whether it is reversed. */
type Mapping = Partial<Record<Axis, { axis: number; isReversed: boolean }>>;
/** Input of a gamepad along one of our axes, with its source. */
export interface Push {
  axis: Axis;
  source: string;
  value: number;
}
/** Axes of a standard gamepad in browsers: right and back are positive. */
const STANDARD: Mapping = {
  x: { axis: 3, isReversed: true }, y: { axis: 2, isReversed: true }, z: { axis: 1, isReversed: true }, yaw: { axis: 0, isReversed: true },
};
const DEAD_ZONE = 0.12;
const PERIOD_MS = 200;
const CHOSEN_PAD = "gamepad";

export class Feel {
  readonly element: HTMLElement;
  #name = h("input", { type: "text", maxlength: 24, placeholder: "as the server numbers you", "aria-label": "Your name" });
  #limits = h("tbody");
  #mapping = h("tbody");
  #pads = h("select", { "aria-label": "Gamepad that steers", onchange: () => this.#choose(this.#pads.value) });
  #choice = h("label.field", { hidden: true }, h("span", {}, "Gamepad that steers"), this.#pads);
  #pad = h("p.hint");
  #shownPads = "";
  #node = "";

  constructor(helm: Helm, fleet: Fleet, alarm: Alarm) {
    const reset = h("button.small", { onclick: () => this.#reset() }, "Reset");
    this.element = h("div.tab-body", {}, h("div.scroll.feel", { tabindex: 0 },
      h("label.field", {}, h("span", {}, "Your name, as others see it"), this.#name),
      h("table", {}, h("caption", {}, "Sticks, keys and gamepad, in %"), head("", "limit"), this.#limits),
      h("p.hint", {}, "Limit is the value at full deflection."),
      h("table", {}, h("caption", {}, "Gamepad"), head("", "axis", "reversed", "now"), this.#mapping),
      this.#choice, this.#pad, alarm.element, reset,
      h("p.hint", {}, "Parameters, such as limits.*: drone-bridge param in a shell. Services and topics: drone-bridge service, topic, or Foxglove at this address.")));
    this.#name.value = storage.get("name") ?? "";
    this.#name.addEventListener("change", () => {
      storage.set("name", this.#name.value);
      helm.greet(this.#name.value);
    });
    helm.addEventListener("open", () => this.#name.value && helm.greet(this.#name.value));
    fleet.addEventListener("change", () => this.#follow(fleet.subject.vehicle?.node ?? ""));
    window.addEventListener("gamepadconnected", () => this.#fill());
    setInterval(() => this.#showPad(), PERIOD_MS);
    this.#fill();
  }

  /** Apply the limits to an input. */
  limited(pushed: Motion): Motion {
    const motion = { ...STILL };
    for (const axis of AXES) motion[axis] = Math.max(-1, Math.min(1, (pushed[axis] * this.#limit(axis)) / 100));
    return motion;
  }

  /** The gamepad that steers. */
  get pad(): Gamepad | undefined {
    return chosenPad(gamepads(), storage.get(CHOSEN_PAD), (pad) => this.isMapped(pad));
  }

  /** Whether any axes of a gamepad are mapped. Axes of an unknown gamepad are mapped by its owner. */
  isMapped(pad: Gamepad): boolean {
    return Object.keys(this.#mapped(pad)).length > 0;
  }

  /** Inputs of a gamepad, along each mapped axis. */
  read(pad: Gamepad): Push[] {
    return Object.entries(this.#mapped(pad)).map(([axis, { axis: index, isReversed }]) => ({
      axis: axis as Axis,
      source: [pad.index, pad.id, index, isReversed].join(" "),
      value: beyondDeadZone(pad.axes[index] ?? 0) * (isReversed ? -1 : 1) || 0,
    }));
  }

  #limit(axis: Axis): number {
    return stored<Limits>(this.#limitsKey)[axis]?.limit ?? MAX_LIMIT;
  }

  get #limitsKey(): string {
    return `feel ${this.#node}`;
  }

  #mapped({ id, mapping }: Gamepad): Mapping {
    return { ...(mapping === "standard" ? STANDARD : {}), ...stored<Mapping>(`gamepad ${id}`) };
  }

  #choose(id: string): void {
    storage.set(CHOSEN_PAD, id);
    this.#fill();
  }

  #follow(node: string): void {
    if (node === this.#node) return;
    this.#node = node;
    this.#fill();
  }

  #reset(): void {
    storage.remove(this.#limitsKey);
    const { pad } = this;
    if (pad) storage.remove(`gamepad ${pad.id}`);
    storage.remove(CHOSEN_PAD);
    this.#fill();
  }

  #fill(): void {
    this.#limits.replaceChildren(...AXES.map((axis) => {
      const input = h("input", { type: "number", min: MIN_LIMIT, max: MAX_LIMIT, step: 1, value: this.#limit(axis), "aria-label": `limit of ${DIRECTION[axis]}, %`, "data-feel": `limit ${axis}` });
      input.addEventListener("change", () => {
        if (input.reportValidity() && input.value !== "") store(this.#limitsKey, axis, { limit: Number(input.value) });
      });
      return h("tr", {}, h("th", { scope: "row" }, DIRECTION[axis]), h("td", {}, input));
    }));
    const { pad } = this;
    this.#shownPads = this.#padNames;
    this.#pads.replaceChildren(...gamepads().map(({ id }) => h("option", { value: id }, id)));
    this.#choice.hidden = this.#pads.options.length < 2;
    if (pad) this.#pads.value = pad.id;
    const mapping = pad ? this.#mapped(pad) : {};
    this.#mapping.replaceChildren(...(pad ? AXES : []).map((axis) => {
      const isStandard = pad!.mapping === "standard";
      const select = h("select", { "aria-label": `Axis for ${DIRECTION[axis]}` },
        !isStandard && h("option", { value: "" }, "–"), ...pad!.axes.map((_, index) => h("option", { value: index }, String(index))));
      const reversed = h("input", { type: "checkbox", checked: mapping[axis]?.isReversed ?? false, "aria-label": `${DIRECTION[axis]} reversed` });
      select.value = String(mapping[axis]?.axis ?? "");
      for (const input of [select, reversed]) {
        input.addEventListener("change", () => store(`gamepad ${pad!.id}`, axis, select.value === "" ? undefined : { axis: Number(select.value), isReversed: reversed.checked }));
      }
      return h("tr", { "data-pad": axis }, h("th", { scope: "row" }, DIRECTION[axis]), h("td", {}, select), h("td", {}, reversed), h("td.now"));
    }));
    this.#showPad();
  }

  #showPad(): void {
    if (this.#padNames !== this.#shownPads) return this.#fill();
    const { pad } = this;
    setText(this.#pad, !pad ? "No gamepad yet. To connect one, press one of its buttons."
      : `${pad.id}. ${this.isMapped(pad) ? "" : "Its axes are unknown. Choose them above. "}Button ${STOP_BUTTON} (B, or a circle) on every gamepad is STOP.`);
    const pushes = pad ? this.read(pad) : [];
    for (const row of this.#mapping.children) {
      const push = pushes.find(({ axis }) => axis === (row as HTMLElement).dataset["pad"]);
      setText(row.querySelector(".now")!, push ? `${Math.round(100 * push.value)} %` : "");
    }
  }

  get #padNames(): string {
    return [this.pad?.id, ...gamepads().map(({ index, id }) => `${index} ${id}`)].join("\n");
  }
}

function head(...names: string[]): HTMLElement {
  return h("thead", {}, h("tr", {}, ...names.map((name) => (name ? h("th", { scope: "col" }, name) : h("td")))));
}

function stored<T>(key: string): Partial<T> {
  return { ...(storage.read(key) as Partial<T> | undefined) };
}

function store(key: string, axis: Axis, value: object | undefined): void {
  storage.set(key, JSON.stringify({ ...stored<Record<string, object>>(key), [axis]: value }));
}

/** A worn stick does not return exactly to the centre. */
export function beyondDeadZone(value: number): number {
  const size = Math.abs(value);
  return size < DEAD_ZONE ? 0 : (Math.sign(value) * (Math.min(1, size) - DEAD_ZONE)) / (1 - DEAD_ZONE);
}
