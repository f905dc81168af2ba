// SPDX-License-Identifier: Apache-2.0
// Buttons of the vehicle: services without a request, and switches.

import { h, twoPresses, twoUrgentPresses } from "./dom";
import type { Fleet } from "./fleet";
import type { Emergency, Helm } from "./helm";
import type { Stream } from "./stream";

/** Names of services without a request that become buttons, in this order. */
const BUTTONS = ["takeoff", "land", "land_on_pad", "flat_trim", "reset", "emergency", "run", "pause", "bind", "unbind"];
/** Actions that a held vehicle does not carry out, although a controller may accept them. */
const MOVES = new Set(["takeoff", "land on pad"]);
/** Actions that can't be undone. */
const GRAVE = new Set(["takeoff", "land on pad", "reset"]);
const WITHOUT_REQUEST = new Set(["std_srvs/srv/Trigger", "std_srvs/srv/Empty"]);
export const SWITCH = "std_srvs/srv/SetBool";
/** STOP and Resume are the first choice. The other services are listed under Services, with their descriptions. */
const APART = new Set(["hold", "assume_flying", "hover"]);

export class Actions {
  #emergencies = h("div.emergencies");
  #buttons = h("div.buttons");
  readonly element = h("div.quick", {}, this.#buttons, this.#emergencies);
  #shown = "";

  constructor(private stream: Stream, private helm: Helm, private fleet: Fleet, private say: (text: string) => void) {
    stream.addEventListener("graph", () => this.#show());
    fleet.addEventListener("change", () => this.#show());
  }

  #show(): void {
    const buttons = BUTTONS.flatMap((name) => this.#servicesOf((last, type) => last === name && WITHOUT_REQUEST.has(type))[0] ?? []);
    const switches = this.#servicesOf((last, type) => !APART.has(last) && type === SWITCH);
    const known = this.fleet.subject.vehicle?.emergencies ?? {};
    const emergencies = buttons.filter((service) => service in known);
    const shown = [...buttons, ...switches, "emergencies", ...emergencies].join();
    if (shown === this.#shown) return;
    this.#shown = shown;
    const usual = buttons.filter((service) => !(service in known));
    this.#buttons.replaceChildren(...usual.map((service) => this.#button(service)), ...switches.map((service) => this.#switch(service)));
    this.#emergencies.replaceChildren(...emergencies.map((service) => this.#emergency(service, known[service]!)));
  }

  /** Separate from the other buttons. The second press confirms, and makes a single call. */
  #emergency(service: string, emergency: Emergency): HTMLElement {
    return twoUrgentPresses(nameOf(emergency), () => void this.#call(service, {}), { "data-call": service, class: "emergency" }, questionOf(emergency));
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

  /** The vehicle's services: below a node's name for our nodes, else without one. */
  #servicesOf(isWanted: (name: string, type: string) => boolean): string[] {
    const { prefix } = this.fleet.subject;
    const fitting = [...this.stream.services].filter(([service, { type }]) => {
      const words = this.fleet.isIn(prefix, service) ? service.slice(prefix.length).split("/") : [];
      return words.length > 0 && words.length <= 2 && isWanted(words.at(-1)!, type) && !service.startsWith(`${this.stream.node}/`);
    });
    return fitting.map(([service]) => service).sort((a, b) => b.split("/").length - a.split("/").length || a.localeCompare(b));
  }

  async #call(service: string, request: object): Promise<boolean> {
    if (MOVES.has(lastOf(service)) && this.helm.isStopped(this.fleet.subject.vehicle)) {
      this.say(`The vehicle is on hold and ignores ${lastOf(service)}. Press Resume first.`);
      return false;
    }
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

/** Label of an emergency's button, and its question between two presses. */
export function nameOf({ action }: Emergency): string {
  return `Emergency: ${action}`;
}

export function questionOf({ effect }: Emergency): string {
  return `Press again: ${effect}`;
}

function lastOf(service: string): string {
  return service.slice(service.lastIndexOf("/") + 1).replaceAll("_", " ");
}
