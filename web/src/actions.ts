// SPDX-License-Identifier: Apache-2.0
// Buttons of the vehicle: services without a request, and switches.

import { h, twoPresses, twoUrgentPresses } from "./dom";
import type { Fleet } from "./fleet";
import type { Emergency, Helm } from "./helm";
import type { Stream } from "./stream";

/** Names of services without a request that become buttons, in this order, after those that the server names. */
const BUTTONS = ["takeoff", "land", "land_on_pad", "flat_trim", "reset", "emergency", "run", "pause", "bind", "unbind"];
/** Of these, those that move the vehicle: refused on hold, although a controller may accept them, and while another person steers. */
const MOVES = new Set(["takeoff", "land on pad"]);
/** Of these, those that can't be undone. */
const GRAVE = new Set([...MOVES, "reset"]);
/** What a switch does when it is on, where its service does not say so. */
const SWITCHES: Record<string, string> = { light: "light on", "set camera": "look down" };
/** Number of the requests of a class that are buttons at once. */
const MOST_BUTTONS = 8;
const WITHOUT_REQUEST = new Set(["std_srvs/srv/Trigger", "std_srvs/srv/Empty"]);
export const SWITCH = "std_srvs/srv/SetBool";
/** STOP and Resume are the first choice. */
const APART = new Set(["hold", "assume_flying", "hover"]);

export class Actions {
  #emergencies = h("div.emergencies");
  #buttons = h("div.buttons");
  #others = h("div.buttons");
  #services = h("details", { hidden: true }, h("summary", {}, "Services"), this.#others);
  readonly element = h("div.quick", {}, this.#buttons, this.#services, this.#emergencies);
  #shown = "";

  constructor(private stream: Stream, private helm: Helm, private fleet: Fleet, private say: (text: string) => void) {
    stream.addEventListener("graph", () => this.#show());
    fleet.addEventListener("change", () => this.#show());
  }

  #show(): void {
    const named = Object.keys(this.#moving).filter((service) => this.stream.services.has(service));
    const nodes = new Set(named.map(nodeOf)); // which name all of theirs
    const fixed = BUTTONS.flatMap((name) => this.#servicesOf((last, type) => last === name && WITHOUT_REQUEST.has(type))[0] ?? []);
    const buttons = [...named, ...fixed.filter((service) => !nodes.has(nodeOf(service)))];
    const switches = this.#servicesOf((last, type) => !APART.has(last) && type === SWITCH);
    const known = this.fleet.subject.vehicle?.emergencies ?? {};
    const emergencies = buttons.filter((service) => service in known);
    const shown = [...buttons.map((service) => `${service} ${this.#moving[service]}`), ...switches, "emergencies", ...emergencies].join();
    if (shown === this.#shown) return;
    this.#shown = shown;
    const usual = buttons.filter((service) => !(service in known));
    const others = usual.filter((service) => named.indexOf(service) >= MOST_BUTTONS);
    const first = usual.filter((service) => !others.includes(service));
    this.#buttons.replaceChildren(...first.map((service) => this.#button(service)), ...switches.map((service) => this.#switch(service)));
    this.#others.replaceChildren(...others.map((service) => this.#button(service)));
    this.#services.hidden = !others.length;
    this.#emergencies.replaceChildren(...emergencies.map((service) => this.#emergency(service, known[service]!)));
  }

  /** Separate from the other buttons. The second press confirms, and makes a single call. */
  #emergency(service: string, emergency: Emergency): HTMLElement {
    return twoUrgentPresses(nameOf(emergency), () => void this.#call(service, {}), { "data-call": service, class: "emergency" }, questionOf(emergency));
  }

  #button(service: string): HTMLElement {
    const name = lastOf(service);
    const attributes = { "data-call": service };
    if (this.#moving[service] ?? GRAVE.has(name)) return twoPresses(name, () => void this.#call(service, {}), attributes);
    return h("button", { ...attributes, onclick: () => void this.#call(service, {}) }, name);
  }

  #switch(service: string): HTMLElement {
    const button = h("button.switch", { role: "switch", "aria-checked": "false", "data-call": service }, SWITCHES[lastOf(service)] ?? lastOf(service));
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

  /** Requests named by the server, and whether each may move the vehicle. */
  get #moving(): Record<string, boolean> {
    return this.fleet.subject.vehicle?.buttons ?? {};
  }

  /** Why a service that moves the vehicle is not called now, a sentence, or an empty text. */
  #refusal(service: string): string {
    const name = lastOf(service), { vehicle } = this.fleet.subject;
    if (!(this.#moving[service] ?? MOVES.has(name))) return "";
    if (this.helm.isStopped(vehicle)) return `The vehicle is on hold and ignores ${name}. Press Resume first.`;
    return vehicle?.pilot === "other" ? `${vehicle.pilot_name || "Another person"} is steering. Take the helm before ${name}.` : "";
  }

  async #call(service: string, request: object): Promise<boolean> {
    const refusal = this.#refusal(service);
    if (refusal) {
      this.say(refusal);
      return false;
    }
    try {
      const { message, success } = await this.stream.call(service, request);
      this.say(outcome(lastOf(service), message, success));
      return success !== false;
    } catch (error) {
      this.say(`${lastOf(service)}: ${(error as Error).message}`);
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

/** A sentence for the answer of a service: a robot's own word, such as "ok", needs one. */
export function outcome(name: string, message: string, success?: boolean): string {
  if (/\.$/.test(message)) return message;
  if (success === false) return `${name} failed: ${message || "no reason was given"}.`;
  return !message ? `${name}: done.` : message === "sent" ? `${name} was sent.` : `${name}: the vehicle answers "${message}".`;
}

function nodeOf(service: string): string {
  return service.slice(0, service.lastIndexOf("/"));
}

function lastOf(service: string): string {
  return service.slice(service.lastIndexOf("/") + 1).replaceAll("_", " ");
}
