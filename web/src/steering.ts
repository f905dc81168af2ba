// SPDX-License-Identifier: Apache-2.0
// The helm on the screen: who is at it, the sticks, and the vehicle's own buttons.

import { decimal, h, panel, setText } from "./dom";
import type { Fleet } from "./fleet";
import { AXES, STILL, isStill, type Axis, type Helm } from "./helm";
import { Inputs } from "./inputs";
import type { Links } from "./links";
import type { Stream } from "./stream";

/** Services without a request that become buttons, in this order. */
const BUTTONS = ["takeoff", "land", "hover", "reset", "run", "pause", "bind", "unbind"];
/** What a positive value of each axis means. */
const DIRECTION: Record<Axis, string> = { x: "forward", y: "left", z: "up", yaw: "turn left" };
const WITHOUT_REQUEST = new Set(["std_srvs/srv/Trigger", "std_srvs/srv/Empty"]);

export class Steering {
  readonly element: HTMLElement;
  #take = h("button.primary.take", { onclick: () => this.#toggle() }, "Take the helm");
  #who = h("span.who");
  #withoutHold = h("p.hint", { hidden: true });
  #buttons = h("div.quick");
  #reading = h("output.reading");
  #speed = h("input", { type: "range", min: 0.1, max: 1, step: 0.05, value: 0.5, "aria-label": "Speed at full deflection" });
  #share = h("output");
  #keys = h("p.hint.keys");
  #left = h("div.stick.left", { role: "img", "aria-label": "Left stick: turn and climb. Keys: Q, E, R, F" });
  #right = h("div.stick.right", { role: "img", "aria-label": "Right stick: move. Keys: W, A, S, D" });
  #inputs = new Inputs();
  /** After a refusal nothing is sent until everything has been let go. */
  #mustLetGo = false;
  #shownButtons = "";

  constructor(private stream: Stream, private helm: Helm, private fleet: Fleet, private links: Links, private say: (text: string) => void) {
    this.element = panel("steering", "Steering", [this.#who, this.#take],
      this.#withoutHold,
      this.#buttons,
      h("div.sticks", {}, this.#left,
        h("div.centre", {}, this.#reading, h("label.speed", {}, "speed", this.#speed, this.#share), this.#keys),
        this.#right));
    this.#inputs.attach(this.#left, this.#right);
    this.#inputs.addEventListener("change", () => this.#move());
    this.#speed.addEventListener("input", () => this.#move());
    helm.addEventListener("change", () => this.#show());
    links.addEventListener("change", () => this.#show());
    helm.addEventListener("stop", () => this.#inputs.letGo());
    helm.addEventListener("refused", (event) => this.#onRefused((event as CustomEvent<string>).detail));
    fleet.addEventListener("change", () => this.#onSubject());
    stream.addEventListener("graph", () => this.#showButtons());
    // Who has looked away does not steer.
    window.addEventListener("blur", () => this.#inputs.letGo());
    window.addEventListener("pagehide", () => this.helm.release());
    document.addEventListener("visibilitychange", () => document.hidden && this.#leave());
  }

  #toggle(): void {
    const topic = this.fleet.subject.vehicle?.topic;
    if (this.helm.mine) this.#leave();
    else if (topic) this.helm.take(topic);
  }

  #leave(): void {
    this.#inputs.letGo();
    if (this.helm.mine) this.helm.release();
  }

  #onSubject(): void {
    if (this.helm.mine && this.helm.mine.topic !== this.fleet.subject.vehicle?.topic) this.#leave();
    this.#show();
    this.#showButtons();
  }

  #onRefused(reason: string): void {
    this.#mustLetGo = !isStill(this.#inputs.motion);
    this.helm.move(STILL);
    this.say(reason);
  }

  #move(): void {
    const pushed = this.#inputs.motion;
    if (isStill(pushed)) this.#mustLetGo = false;
    const share = Number(this.#speed.value);
    const motion = { ...STILL };
    for (const axis of AXES) motion[axis] = this.#mustLetGo ? 0 : pushed[axis] * share;
    if (this.helm.mine) this.helm.move(motion);
    const parts = this.#inputs.axes.map((axis) => `${DIRECTION[axis]} ${decimal(100 * motion[axis], 0)} %`);
    setText(this.#reading, parts.join("   "));
    setText(this.#share, `${decimal(100 * share, 0)} %`);
  }

  #show(): void {
    const vehicle = this.fleet.subject.vehicle;
    const isMine = vehicle?.pilot === "you";
    const { problem } = this.links;
    const isOther = vehicle?.pilot === "other";
    this.#inputs.axes = vehicle?.axes ?? [];
    this.#inputs.isActive = isMine && !problem;
    if (!this.#inputs.isActive) this.#inputs.letGo();
    this.element.classList.toggle("active", this.#inputs.isActive);
    const isRover = vehicle !== undefined && !vehicle.axes.includes("z");
    this.element.classList.toggle("rover", isRover);
    setText(this.#keys, `Hold to move: stick, gamepad, or keys. W A S D to ${isRover ? "drive" : "move, Q E to turn, R F to climb"}.`);
    this.element.classList.toggle("idle", !vehicle);
    this.#take.disabled = !vehicle || isOther || !this.helm.maySteer || (problem !== "" && !isMine);
    this.#withoutHold.hidden = !vehicle || vehicle.holds.length > 0;
    setText(this.#withoutHold, `${vehicle?.node ?? ""} has no hold: when the helm ends, it follows whoever commands it next.`);
    setText(this.#take, isMine ? "Release the helm" : "Take the helm");
    setText(this.#who, !vehicle ? "nothing here takes commands" : problem ? problem : isMine ? "you steer" : isOther ? "somebody else steers" : this.helm.maySteer ? "nobody steers" : "view only");
    this.#move();
  }

  #showButtons(): void {
    const services = BUTTONS.flatMap((name) => this.#serviceOf(name) ?? []);
    if (services.join() === this.#shownButtons) return;
    this.#shownButtons = services.join();
    this.#buttons.replaceChildren(...services.map((service) =>
      h("button", { onclick: () => void this.#press(service), "data-call": service },
        service.slice(service.lastIndexOf("/") + 1))));
  }

  /** A vehicle's service of that name: below a node's name, where nodes of ours have theirs, or else without one. */
  #serviceOf(name: string): string | undefined {
    const { prefix } = this.fleet.subject;
    const fitting = [...this.stream.services].filter(([service, { type }]) => {
      const words = service.startsWith(prefix) ? service.slice(prefix.length).split("/") : [];
      return words.length <= 2 && words.at(-1) === name && WITHOUT_REQUEST.has(type);
    });
    return fitting.map(([service]) => service).sort((a, b) => b.split("/").length - a.split("/").length)[0];
  }

  async #press(service: string): Promise<void> {
    try {
      const { message } = await this.stream.call(service, {});
      this.say(message || `${service}: done.`);
    } catch (error) {
      this.say((error as Error).message);
    }
  }
}
