// SPDX-License-Identifier: Apache-2.0
// All vehicles of a fleet at a glance: state, battery, height, a small camera; a tap goes to the vehicle.

import { cameraTopics } from "./cameras";
import { h, setText } from "./dom";
import type { Fleet, Subject } from "./fleet";
import { drawPicture } from "./pictures";
import type { Links } from "./links";
import { Readings } from "./readings";
import type { Stream } from "./stream";

const PERIOD_MS = 500;
const SHOWN = ["Battery", "Altitude", "Speed"];

export class Overview {
  readonly element = h("section.overview", { role: "main", "aria-label": "All vehicles", hidden: true });
  readonly button = h("button.small.overview-button", { "aria-pressed": "false", hidden: true, onclick: () => this.#open(!this.#isOpen) }, "All vehicles");
  #cards = new Map<string, Card>();
  #isOpen = false;

  constructor(private stream: Stream, private fleet: Fleet, private links: Links) {
    fleet.addEventListener("change", () => this.#arrange());
    document.addEventListener("visibilitychange", () => this.#arrange());
    setInterval(() => this.#cards.forEach((card) => card.show()), PERIOD_MS);
  }

  #open(isOpen: boolean): void {
    this.#isOpen = isOpen;
    this.element.hidden = !isOpen;
    document.body.classList.toggle("overviewing", isOpen);
    this.button.setAttribute("aria-pressed", String(isOpen));
    this.#arrange();
  }

  #arrange(): void {
    const { subjects } = this.fleet;
    this.button.hidden = subjects.length < 2;
    if (subjects.length < 2 && this.#isOpen) return this.#open(false);
    // What is not looked at is not subscribed to.
    const wanted = this.#isOpen && !document.hidden ? subjects : [];
    const present = new Set(wanted.map(({ prefix }) => prefix));
    for (const [prefix, card] of this.#cards) {
      if (present.has(prefix)) continue;
      card.close();
      this.#cards.delete(prefix);
    }
    for (const subject of wanted) {
      let card = this.#cards.get(subject.prefix);
      if (!card) {
        card = new Card(this.stream, this.links, subject, () => {
          this.fleet.choose(subject.prefix);
          this.#open(false);
        });
        this.#cards.set(subject.prefix, card);
        this.element.append(card.element);
      }
      card.follow(subject, this.fleet.topics(subject.prefix));
    }
  }
}

class Card {
  readonly element: HTMLElement;
  #lamp = h("span.lamp");
  #state = h("span.card-state");
  #values = h("dl.card-values");
  #picture = h("canvas", { width: 4, height: 3, role: "img", "aria-label": "Its camera" });
  #readings: Readings;
  #doing = "";
  #ends: (() => void)[] = [];
  #followed?: string;
  #isDrawing = false;

  constructor(private stream: Stream, private links: Links, private subject: Subject, onChoose: () => void) {
    this.#readings = new Readings(stream, SHOWN, PERIOD_MS);
    this.element = h("button.card", { "data-card": subject.name, onclick: onChoose },
      this.#picture, h("span.card-head", {}, this.#lamp, h("strong", {}, subject.name)), this.#state, this.#values);
  }

  follow(subject: Subject, topics: Map<string, string>): void {
    this.subject = subject;
    this.#readings.follow(subject, topics);
    const [camera] = cameraTopics(topics);
    const state = [...topics].find(([, type]) => type === "drone_bridge/msg/ControllerState")?.[0];
    const followed = [state, camera].join();
    if (followed === this.#followed) return;
    this.#followed = followed;
    this.#end();
    const { prefix } = subject;
    this.#picture.hidden = camera === undefined;
    this.#ends = [
      ...(state ? [this.stream.subscribe(prefix + state, ({ value }) => (this.#doing = `${value.behaviour}: ${value.state}`.replaceAll("_", " ")))] : []),
      ...(camera ? [this.#watch(prefix + camera)] : []),
    ];
  }

  close(): void {
    this.#end();
    this.#readings.close();
    this.element.remove();
  }

  #end(): void {
    for (const end of this.#ends) end();
    this.#ends = [];
  }

  show(): void {
    const links = this.links.of(this.subject.prefix, this.subject.vehicle?.node);
    const broken = links.find(({ level }) => level === "error");
    const { pilot, held } = this.subject.vehicle ?? {};
    this.#lamp.className = `lamp ${broken ? "error" : held ? "warn" : "ok"}`;
    setText(this.#state, broken ? `${broken.name}: ${broken.text}` : held ? "Holding" : pilot ? "Steered" : this.#doing || "Idle");
    const values = SHOWN.flatMap((name) => {
      const text = this.#readings.text(name);
      return text ? [[name, text]] : [];
    });
    const text = values.flat().join("\n");
    if (this.#values.dataset["text"] === text) return;
    this.#values.dataset["text"] = text;
    this.#values.replaceChildren(...values.flatMap(([name, value]) => [h("dt", {}, name!), h("dd", {}, value!)]));
  }

  /** A picture now and then: subscribed only until it has come. */
  #watch(topic: string): () => void {
    let end = (): void => undefined;
    const ask = (): void => {
      end();
      end = this.stream.subscribe(topic, (arrival) => {
        end();
        if (!this.#isDrawing) void this.#draw(arrival.value);
      });
    };
    ask();
    const timer = setInterval(ask, 2 * PERIOD_MS);
    return () => {
      clearInterval(timer);
      end();
    };
  }

  async #draw(picture: { format?: string; data: Uint8Array<ArrayBuffer> }): Promise<void> {
    this.#isDrawing = true;
    try {
      await drawPicture(this.#picture, picture);
      this.element.dataset["drawn"] = String(Number(this.element.dataset["drawn"] ?? 0) + 1);
    } catch {
      this.#picture.hidden = true; // an encoding that browsers don't show
    }
    this.#isDrawing = false;
  }
}
