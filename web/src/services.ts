// SPDX-License-Identifier: Apache-2.0
// Services, called with a form that is created from their type.

import { SWITCH, nameOf, questionOf } from "./actions";
import { h, twoUrgentPresses } from "./dom";
import { formFor } from "./forms";
import type { Helm } from "./helm";
import { opened } from "./open_forms";
import type { Stream } from "./stream";

/** Services of every node: parameters and lifecycle, which have their own tab or are for tools. */
const OF_EVERY_NODE = /^(rcl_interfaces|lifecycle_msgs|type_description_interfaces)\//;

export class Services {
  readonly element: HTMLElement;
  #list = h("div.services");
  #filter: HTMLInputElement;
  #all: HTMLInputElement;
  #known = new Map<string, { element: HTMLElement; id: number }>();

  constructor(private stream: Stream, private helm: Helm) {
    this.#filter = h("input", { type: "search", placeholder: "Filter services", "aria-label": "Filter services", oninput: () => this.#arrange() });
    this.#all = h("input", { type: "checkbox", onchange: () => this.#arrange() });
    this.element = h("div.tab-body", {},
      h("div.tab-tools", {}, this.#filter, h("label.check", {}, this.#all, "include standard services")), h("div.scroll", { tabindex: 0 }, this.#list));
    stream.addEventListener("graph", () => this.#arrange());
  }

  #arrange(): void {
    const filter = this.#filter.value.trim().toLowerCase();
    for (const [name, { element, id }] of this.#known) {
      if (this.stream.services.get(name)?.id === id) continue;
      element.remove();
      this.#known.delete(name);
    }
    for (const [name, service] of [...this.stream.services].sort(([a], [b]) => a.localeCompare(b))) {
      let known = this.#known.get(name);
      if (!known) this.#known.set(name, (known = { element: this.#make(name, service.type), id: service.id }));
      const isHidden = OF_EVERY_NODE.test(service.type) && !this.#all.checked;
      known.element.hidden = isHidden || (filter !== "" && !`${name} ${service.type}`.toLowerCase().includes(filter));
      if (known.element !== this.#list.lastElementChild) this.#list.append(known.element);
    }
    this.element.classList.toggle("empty", this.stream.services.size === 0);
  }

  #make(name: string, type: string): HTMLElement {
    const body = h("div.service-body");
    const element = h("details.service", { "data-service": name },
      h("summary", {}, h("span.name", {}, name), h("span.topic-type", {}, type)), body);
    // Forms are created on demand, because there may be hundreds of services.
    element.addEventListener("toggle", () => {
      if (element.open && !body.hasChildNodes()) this.#fill(name, body);
      if (element.open) opened(body, () => (element.open = false));
    });
    return element;
  }

  #fill(name: string, body: HTMLElement): void {
    const service = this.stream.services.get(name);
    if (!service?.request) return;
    if (service.type === SWITCH) return this.#fillSwitch(name, body);
    const form = formFor(this.stream.definitions(service.request.schema));
    const answer = h("pre.answer", { hidden: true });
    const emergency = this.helm.vehicles.map(({ emergencies }) => emergencies[name]).find(Boolean);
    const act = (): void => void this.#call(name, form.read, call, answer);
    const call: HTMLButtonElement = emergency ? twoUrgentPresses(nameOf(emergency), act, { type: "button", class: "emergency" }, questionOf(emergency))
      : h("button.primary", { type: "submit" }, "Call");
    const element = h("form", {
      onsubmit: (event) => {
        event.preventDefault();
        if (!emergency) act();
      },
    }, form.element, call, answer);
    body.append(element);
  }

  #fillSwitch(name: string, body: HTMLElement): void {
    const answer = h("pre.answer", { hidden: true });
    const buttons = [true, false].map((data) => {
      const button = h("button", { onclick: () => void this.#call(name, () => ({ data }), button, answer) }, data ? "On" : "Off");
      return button;
    });
    body.append(h("div.quick", {}, ...buttons), answer);
  }

  async #call(name: string, read: () => unknown, button: HTMLButtonElement, answer: HTMLElement): Promise<void> {
    button.disabled = true;
    answer.hidden = false;
    answer.className = "answer";
    try {
      answer.textContent = pretty(await this.stream.call(name, read()));
    } catch (error) {
      answer.classList.add("error");
      answer.textContent = (error as Error).message;
    }
    button.disabled = false;
  }
}

/** Message as text; 64-bit numbers and byte arrays are converted. */
export function pretty(message: unknown): string {
  const text = JSON.stringify(message, (_, value: unknown) => {
    if (typeof value === "bigint") return value.toString();
    return ArrayBuffer.isView(value) ? Array.from(value as unknown as ArrayLike<number>) : value;
  }, 2);
  return text === "{}" ? "Done." : text;
}
