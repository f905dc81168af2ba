// SPDX-License-Identifier: Apache-2.0
// Overview of all vehicles: activity, commander, battery, height, a small camera image. A tap opens the vehicle.

import { Activity } from "./activity";
import { cameraTopics } from "./cameras";
import { h, setText, setValue } from "./dom";
import type { Fleet, Subject } from "./fleet";
import type { Helm } from "./helm";
import { drawPicture } from "./pictures";
import type { Links } from "./links";
import { Readings } from "./readings";
import { summary } from "./stop";
import type { Arrival, Stream } from "./stream";

const PERIOD_MS = 500;
const SHOWN = ["Battery", "Altitude", "Above start", "Depth"];

export class Overview {
  readonly element = h("section.overview", { role: "main", "aria-label": "All vehicles", hidden: true });
  readonly button = h("button.small.overview-button", { "aria-pressed": "false", hidden: true, onclick: () => this.#open(!this.#isOpen) }, "All vehicles");
  #cards = new Map<string, Card>();
  #isOpen = false;

  /** `portray` draws a vehicle alone on a canvas, and returns whether it can. */
  constructor(private stream: Stream, private helm: Helm, private fleet: Fleet, private links: Links, private portray: (prefix: string, canvas: HTMLCanvasElement) => boolean) {
    fleet.addEventListener("change", () => this.#arrange());
    fleet.addEventListener("chosen", () => this.close());
    document.addEventListener("visibilitychange", () => this.#arrange());
    setInterval(() => this.#cards.forEach((card) => card.show()), PERIOD_MS);
  }

  /** Show the chosen vehicle again. */
  close(): void {
    if (this.#isOpen) this.#open(false);
  }

  #open(isOpen: boolean): void {
    this.#isOpen = isOpen;
    this.element.hidden = !isOpen;
    document.body.classList.toggle("overviewing", isOpen);
    this.button.setAttribute("aria-pressed", String(isOpen));
    this.fleet.dispatchEvent(new Event("change"));
  }

  #arrange(): void {
    const { subjects } = this.fleet;
    this.button.hidden = subjects.length < 2;
    if (subjects.length < 2 && this.#isOpen) return this.#open(false);
    // Hidden cards have no subscriptions.
    const wanted = this.#isOpen && !document.hidden ? subjects : [];
    const shown = this.#isOpen ? subjects : [this.fleet.subject];
    this.helm.show(document.hidden ? [] : shown.flatMap(({ vehicle }) => vehicle ? [vehicle.topic] : []));
    const present = new Set(wanted.map(({ prefix }) => prefix));
    for (const [prefix, card] of this.#cards) {
      if (present.has(prefix)) continue;
      card.close();
      this.#cards.delete(prefix);
    }
    for (const subject of wanted) {
      let card = this.#cards.get(subject.prefix);
      if (!card) {
        card = new Card(this.stream, this.helm, this.links, subject, () => this.fleet.choose(subject.prefix), (canvas) => this.portray(subject.prefix, canvas));
        this.#cards.set(subject.prefix, card);
        this.element.append(card.element);
      }
      card.follow(subject, this.fleet.topics(subject.prefix));
      card.show();
    }
  }
}

class Card {
  readonly element: HTMLElement;
  #lamp = h("span.lamp");
  #state = h("span.card-state");
  #who = h("span.card-who");
  #values = new Map(SHOWN.map((name) => [name, h("dd")]));
  #picture = h("canvas", { width: 4, height: 3, role: "img", "aria-label": "Its camera", hidden: true });
  #noImage = h("span.no-image", { hidden: true }, "no image yet");
  #resume = h("button.primary.resume-one", { onclick: () => this.helm.resume(this.subject.vehicle?.topic) }, "Resume");
  #readings: Readings;
  #activity: Activity;
  #end = (): void => undefined;
  #camera?: string;
  #isDrawing = false;
  #drawn?: Arrival;

  constructor(private stream: Stream, private helm: Helm, private links: Links, private subject: Subject, onChoose: () => void, private portray: (canvas: HTMLCanvasElement) => boolean) {
    this.#readings = new Readings(stream, SHOWN, PERIOD_MS);
    this.#activity = new Activity(stream);
    const values = [...this.#values].map(([name, value]) => h("div", { hidden: true }, h("dt", {}, name), value));
    this.element = h("article.card", { "data-card": subject.name }, this.#picture, this.#noImage,
      h("button.card-open", { "aria-label": `Go to ${subject.name}`, onclick: onChoose }),
      h("span.card-head", {}, this.#lamp, h("strong", {}, subject.name), h("span.card-title", {}, subject.vehicle?.title ?? ""), this.#resume), this.#state, this.#who, h("dl.card-values", {}, ...values));
  }

  follow(subject: Subject, topics: Map<string, string>): void {
    this.subject = subject;
    this.#readings.follow(subject, topics);
    this.#activity.follow(subject, topics);
    const [camera] = cameraTopics(topics);
    if (camera === this.#camera) return;
    this.#camera = camera;
    this.#end();
    this.#end = camera ? this.#watch(subject.prefix + camera) : () => undefined;
    this.#picture.hidden = camera === undefined;
    this.#picture.ariaLabel = "Its camera";
  }

  close(): void {
    this.#end();
    this.#readings.close();
    this.#activity.close();
    this.element.remove();
  }

  show(): void {
    const { vehicle } = this.subject;
    const links = this.links.of(this.subject.prefix, vehicle?.node);
    const broken = links.find(({ level }) => level === "error");
    const isHeld = vehicle ? vehicle.held !== null : this.#activity.isHeld;
    const isGone = !vehicle && this.helm.vehicles.length > 0;
    const { movement } = this.#activity;
    const [, activity, more] = this.#activity.doing(vehicle, isHeld);
    this.#lamp.className = `lamp ${this.helm.link.text || isGone ? "stale" : broken ? "error" : isHeld ? "warn" : "ok"}`;
    setText(this.#state, isGone ? "Gone" : broken ? `${broken.name}: ${broken.text}` : isHeld ? ["On hold", movement.toLowerCase()].filter(Boolean).join(", ") : movement || activity);
    setText(this.#who, vehicle?.held ? summary(vehicle) : isGone ? "" : [movement && activity !== movement && activity, more].filter(Boolean).join(" · "));
    this.#resume.hidden = !isHeld || !this.helm.maySteer;
    for (const [name, element] of this.#values) {
      const reading = this.#readings.of(name);
      element.parentElement!.hidden = !reading;
      if (reading) setValue(element, reading.text, reading.silentS);
    }
    const silentS = this.#drawn ? this.stream.silentS(this.#drawn) : 0;
    if (!this.#camera) {
      this.#picture.hidden = !this.portray(this.#picture);
      this.#picture.ariaLabel = "Its model";
    }
    this.#noImage.hidden = !this.#camera || this.#picture.hidden || (this.#drawn !== undefined && silentS === 0);
    setText(this.#noImage, this.#drawn ? `no image for ${Math.floor(silentS)} s` : "no image yet");
    this.element.classList.toggle("stale", silentS > 0);
  }

  /** Image at a low rate: subscribed only until it arrives. */
  #watch(topic: string): () => void {
    let end = (): void => undefined;
    const ask = (): void => {
      end();
      end = this.stream.subscribe(topic, (arrival) => {
        end();
        this.#drawn = arrival;
        if (!this.#isDrawing) void this.#draw();
      });
    };
    ask();
    const timer = setInterval(ask, 2 * PERIOD_MS);
    return () => {
      clearInterval(timer);
      end();
    };
  }

  async #draw(): Promise<void> {
    this.#isDrawing = true;
    try {
      await drawPicture(this.#picture, () => this.#drawn!.value);
      this.element.dataset["drawn"] = String(Number(this.element.dataset["drawn"] ?? 0) + 1);
    } catch {
      this.#picture.hidden = true; // an encoding that browsers can't show
    }
    this.#isDrawing = false;
  }
}
