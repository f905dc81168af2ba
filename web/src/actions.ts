// SPDX-License-Identifier: Apache-2.0
// The vehicle's own buttons: services without a request, and switches.

import { h, twoPresses } from "./dom";
import type { Fleet } from "./fleet";
import type { Stream } from "./stream";

/** Services without a request that become buttons, in this order. */
const BUTTONS = ["takeoff", "land", "land_on_pad", "reset", "run", "pause", "bind", "unbind"];
/** What can't be undone; a drone's reset is an emergency stop, and drops it. */
const GRAVE = new Set(["takeoff", "land on pad", "reset"]);
const WITHOUT_REQUEST = new Set(["std_srvs/srv/Trigger", "std_srvs/srv/Empty"]);
export const SWITCH = "std_srvs/srv/SetBool";
/** STOP and Resume are for that. */
const HOLD = "hold";

export class Actions {
  readonly element = h("div.quick");
  #shown = "";

  constructor(private stream: Stream, private fleet: Fleet, private say: (text: string) => void) {
    stream.addEventListener("graph", () => this.#show());
    fleet.addEventListener("change", () => this.#show());
  }

  #show(): void {
    const buttons = BUTTONS.flatMap((name) => this.#servicesOf((last, type) => last === name && WITHOUT_REQUEST.has(type))[0] ?? []);
    const switches = this.#servicesOf((last, type) => last !== HOLD && type === SWITCH);
    const shown = [...buttons, ...switches].join();
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.element.replaceChildren(...buttons.map((service) => this.#button(service)), ...switches.map((service) => this.#switch(service)));
  }

  #button(service: string): HTMLElement {
    const name = lastOf(service);
    const attributes = { "data-call": service };
    if (GRAVE.has(name)) return twoPresses(name, () => void this.#call(service, {}), attributes);
    return h("button", { ...attributes, onclick: () => void this.#call(service, {}) }, name);
  }

  #switch(service: string): HTMLElement {
    const button = h("button.switch", { role: "switch", "aria-checked": "false", "data-call": service }, lastOf(service));
    button.addEventListener("click", () => {
      const data = button.ariaChecked !== "true";
      void this.#call(service, { data }).then((isDone) => isDone && (button.ariaChecked = String(data)));
    });
    return button;
  }

  /** The vehicle's services: below a node's name, where nodes of ours have theirs, or else without one. */
  #servicesOf(isWanted: (name: string, type: string) => boolean): string[] {
    const { prefix } = this.fleet.subject;
    const fitting = [...this.stream.services].filter(([service, { type }]) => {
      const words = service.startsWith(prefix) ? service.slice(prefix.length).split("/") : [];
      return words.length > 0 && words.length <= 2 && isWanted(words.at(-1)!, type) && !service.startsWith(`${this.stream.node}/`);
    });
    return fitting.map(([service]) => service).sort((a, b) => b.split("/").length - a.split("/").length || a.localeCompare(b));
  }

  async #call(service: string, request: object): Promise<boolean> {
    try {
      const { message, success } = await this.stream.call(service, request);
      this.say(message || `${service}: done.`);
      return success !== false;
    } catch (error) {
      this.say((error as Error).message);
      return false;
    }
  }
}

function lastOf(service: string): string {
  return service.slice(service.lastIndexOf("/") + 1).replaceAll("_", " ");
}
