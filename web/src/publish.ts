// SPDX-License-Identifier: Apache-2.0
// Form to publish a message, once or periodically. Commands to a vehicle go through the helm.

import { h, icon, setText } from "./dom";
import { formFor, type Form } from "./forms";
import type { Helm } from "./helm";
import { AXES, STILL } from "./helm";
import { opened } from "./open_forms";
import { documentAddress, type Message, type Stream } from "./stream";

/** Topic with a subscriber, with the definition of its type. */
interface Taker {
  topic: string;
  type: string;
  schema: string;
}

/** Topics that move a vehicle immediately. */
const COMMAND = /(^|\/)(cmd_\w+|helm)$/;
const TWIST = /^geometry_msgs\/msg\/Twist(Stamped)?$/;
/** Time for which one command moves a vehicle. After that, the helm is neutral again. */
const ONCE_MS = 300;
const MOST_HZ = 50;

export class Publisher {
  readonly button = h("button.small.publish", { onclick: () => void this.open("") }, "Publish …");
  readonly element = h("div.publisher", { hidden: true });
  #takers = new Map<string, Taker>();
  #topic = h("select", { "aria-label": "Topic to publish on", onchange: () => this.#fill() });
  #rate = h("input", { type: "number", min: 0.1, max: MOST_HZ, step: "any", value: "10", "aria-label": "Messages per second" });
  #note = h("p.hint", { role: "status" });
  #once = h("button.primary", { onclick: () => this.#send() }, "Publish once");
  #repeat = h("button", { onclick: () => this.#toggle() });
  #body = h("div");
  #form?: Form;
  #timer = 0;
  #count = 0;
  #opening = 0;
  /** Of the helm, m/s and rad/s. */
  #limits: [number, number] = [1, 1];

  constructor(private stream: Stream, private helm: Helm) {
    this.element.append(
      h("div.topic-tools", {}, this.#topic, h("button.small", { "aria-label": "Close the form", onclick: () => this.#close() }, icon("remove"))),
      this.#body,
      h("div.topic-tools", {}, this.#once, this.#repeat, h("label.check", {}, "at", this.#rate, "Hz")),
      this.#note);
    stream.addEventListener("graph", () => this.#show());
    stream.addEventListener("error", (event) => !this.element.hidden && setText(this.#note, (event as CustomEvent<string>).detail));
    helm.addEventListener("change", () => this.#show());
    for (const event of ["refused", "stop"]) helm.addEventListener(event, () => this.#stop());
    // A goal that is published again when a connection or a suspended page comes back was not asked for.
    stream.addEventListener("status", () => stream.status !== "open" && this.#stop());
    document.addEventListener("visibilitychange", () => document.hidden && this.#stop());
    this.#show();
  }

  /** Show the form for a topic, or for any subscribed topic; an already filled form is kept. */
  async open(topic: string): Promise<void> {
    const opening = ++this.#opening;
    const takers = await fetch(documentAddress("takers.json")).then((answer) => answer.json()).catch(() => []) as Taker[];
    if (opening !== this.#opening) return; // pressed again meanwhile
    const chosen = this.element.hidden ? "" : this.#topic.value;
    this.#takers = new Map(takers.map((taker) => [taker.topic, taker]));
    const channel = this.stream.topics.get(topic);
    if (channel && !this.#takers.has(topic)) this.#takers.set(topic, { topic, type: channel.schemaName, schema: channel.schema });
    const names = [...this.#takers.keys()].sort();
    this.#topic.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
    const isKept = chosen !== "" && (topic || chosen) === chosen && this.#takers.has(chosen);
    const allowed = names.find((name) => this.#refusalOf(this.#takers.get(name)) === "");
    const first = isKept ? chosen : topic || allowed;
    if (first) this.#topic.value = first;
    void this.#readLimits();
    this.element.hidden = false;
    opened(this.element, () => this.#close());
    this.element.scrollIntoView({ block: "nearest" });
    if (isKept) this.#show();
    else this.#fill();
  }

  async #readLimits(): Promise<void> {
    const { values } = await this.stream.call(`${this.stream.node}/get_parameters`, { names: ["max_speed", "max_turn_rate"] }).catch(() => ({ values: [] }));
    if (values.length === 2) this.#limits = [values[0].double_value, values[1].double_value];
  }

  #close(): void {
    this.#opening += 1;
    this.#stop();
    this.element.hidden = true;
  }

  get #taker(): Taker | undefined {
    return this.#takers.get(this.#topic.value);
  }

  #fill(): void {
    this.#stop();
    const taker = this.#taker;
    this.#form = taker && formFor(this.stream.definitions(taker.schema));
    this.#body.replaceChildren(...(taker && this.#form ? [h("p.topic-type", {}, taker.type), this.#form.element] : [h("p.hint", {}, "No topic has a subscriber.")]));
    this.#show();
  }

  /** Reason why a message may not be published; empty if it may. */
  #refusalOf(taker: Taker | undefined): string {
    if (!taker) return "Choose a topic.";
    const emergency = this.helm.emergencyOn(taker.topic);
    if (emergency) return `In flight ${emergency.effect}. Press its button beside the sticks.`;
    if (!COMMAND.test(taker.topic)) return "";
    const mine = this.helm.mine?.topic;
    const isHelms = mine !== undefined && TWIST.test(taker.type) && taker.topic.startsWith(mine.slice(0, mine.lastIndexOf("/") + 1));
    return isHelms ? "" : TWIST.test(taker.type) ? "This moves the vehicle. Take its helm first." : "This commands the vehicle's motors, which the page does not allow.";
  }

  #show(): void {
    const may = this.stream.capabilities.includes("clientPublish");
    this.button.hidden = !may;
    document.body.classList.toggle("may-publish", may);
    document.body.classList.toggle("publishing", this.#timer !== 0);
    const refusal = this.#refusalOf(this.#taker);
    this.#once.disabled = this.#repeat.disabled = refusal !== "";
    setText(this.#repeat, this.#timer ? "Stop publishing" : "Publish repeatedly");
    if (refusal) this.#stop();
    if (!this.#timer) setText(this.#note, refusal);
  }

  #toggle(): void {
    if (this.#timer) return this.#stop();
    const hz = Math.min(MOST_HZ, Math.max(0.1, Number(this.#rate.value) || 1));
    this.#timer = window.setInterval(() => this.#send(), 1000 / hz);
    this.#send();
    this.#show();
  }

  #stop(): void {
    if (!this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = 0;
    if (this.helm.mine) this.helm.move(STILL);
    this.#show();
  }

  #send(): void {
    const taker = this.#taker;
    if (!taker || !this.#form) return;
    try {
      const message = this.#form.read();
      if (COMMAND.test(taker.topic)) this.#steer(message);
      else this.stream.publish(taker.topic, taker.type, taker.schema, message);
      this.#count += 1;
      setText(this.#note, `${this.#count} published.`);
    } catch (error) {
      this.#stop();
      setText(this.#note, (error as Error).message);
    }
  }

  /** Publish through the helm with all its safety measures: it is clamped to the sticks' range, and ends with the page. */
  #steer(message: Message): void {
    const { linear, angular } = message.twist ?? message;
    const wanted = { x: linear.x, y: linear.y, z: linear.z, yaw: angular.z };
    const [speed, turnRate] = this.#limits;
    const motion = { ...STILL };
    for (const axis of AXES) motion[axis] = Math.max(-1, Math.min(1, wanted[axis] / (axis === "yaw" ? turnRate : speed) || 0));
    this.helm.move(motion);
    if (!this.#timer) setTimeout(() => !this.#timer && this.helm.mine && this.helm.move(STILL), ONCE_MS);
  }
}
