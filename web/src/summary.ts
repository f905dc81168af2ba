// SPDX-License-Identifier: Apache-2.0
// Summary: connection, health, position, activity.

import { Activity } from "./activity";
import { Departure } from "./departure";
import { decimal, h, setText, setValue } from "./dom";
import { isKnown } from "./fields";
import type { Fleet, Subject } from "./fleet";
import type { Health } from "./health";
import type { Helm } from "./helm";
import type { Link, Links } from "./links";
import type { Arrival, Message, Stream } from "./stream";

const PERIOD_MS = 500;
const ODOMETRY = "nav_msgs/msg/Odometry";

export class Summary {
  readonly element: HTMLElement;
  #cells = {
    connection: new Cell("Connection"),
    health: new Cell("Health"),
    position: new Cell("Position"),
    doing: new Cell("Doing"),
  };
  #amount = h("span.amount");
  #ends: (() => void)[] = [];
  /** Prefix and topics that are shown. */
  #prefix?: string;
  #topics = new Set<string>();
  #odometry?: Arrival;
  #height?: Arrival;
  /** Whether the position is worth showing. */
  #isGood = false;
  #activity: Activity;
  #departure = new Departure();
  /** The one that was shown last. */
  #vehicle?: Subject;
  #bytes = 0;
  #bytesPerS = 0;

  constructor(private stream: Stream, private helm: Helm, private fleet: Fleet, private health: Health, private links: Links) {
    this.#activity = new Activity(stream);
    this.element = h("section.summary", { "aria-label": "Summary" }, ...Object.values(this.#cells).map((cell) => cell.element));
    this.#cells.connection.head.append(this.#amount);
    fleet.addEventListener("change", () => {
      this.#noteDeparture();
      this.#follow();
      this.#show();
    });
    health.addEventListener("change", () => this.#show());
    links.addEventListener("change", () => this.#show());
    setInterval(() => {
      this.#bytesPerS = ((stream.bytesReceived - this.#bytes) * 1000) / PERIOD_MS;
      this.#bytes = stream.bytesReceived;
      this.#show();
    }, PERIOD_MS);
  }

  #noteDeparture(): void {
    const before = this.#vehicle;
    const { subject, subjects } = this.fleet;
    // Its topics may be there a little longer.
    if (before?.vehicle ? this.helm.vehicles.length > 0 && (subject.vehicle || subject.prefix !== before.prefix) : subjects.length > 0) {
      this.#departure.came();
      this.#vehicle = subject;
    } else if (before) {
      const isSilent = this.links.wasSilent(before.prefix, before.vehicle?.node);
      this.#departure.left(Date.now(), this.#activity.movement, isSilent);
    }
  }

  #follow(): void {
    if (this.#departure.text) return; // the last values stay
    const { prefix } = this.fleet.subject;
    const topics = this.fleet.topics();
    this.#activity.follow(this.fleet.subject, topics);
    const isSame = prefix === this.#prefix;
    // A topic may leave before its vehicle does: its last value stays.
    const shown = new Set(isSame ? this.#topics : []);
    if (topics.get("odom") === ODOMETRY) shown.add("odom");
    if (topics.has("height")) shown.add("height");
    if (isSame && shown.size === this.#topics.size) return;
    this.#prefix = prefix;
    this.#topics = shown;
    for (const end of this.#ends) end();
    this.#odometry = this.#height = undefined;
    this.#isGood = false;
    const { stream } = this;
    this.#ends = [
      ...(shown.has("odom") ? [stream.subscribe(`${prefix}odom`, (arrival) => (this.#odometry = arrival))] : []),
      stream.subscribe(`${prefix}height`, (arrival) => (this.#height = arrival)),
      // Odometry that moves a frame has a position, however uncertain it is.
      stream.subscribe("/tf", (arrival) => (this.#isGood ||= arrival.value.transforms.some((each: Message) => each.child_frame_id === this.#odometry?.value.child_frame_id))),
    ];
  }

  #show(): void {
    this.#showConnection();
    const lostS = this.helm.link.ageS(Date.now()) || this.helm.silentSeconds;
    const { health, position, doing } = this.#cells;
    const goneS = this.#departure.ageS(Date.now());
    if (goneS > 0) {
      position.age(goneS);
      doing.show("stale", this.#departure.text, this.#departure.more, goneS);
    }
    if (lostS > 0) {
      health.show("stale", "Unknown", "no connection", lostS);
      if (goneS === 0) [position, doing].forEach((cell) => cell.age(lostS));
      return;
    }
    const { vehicle } = this.fleet.subject;
    const isHeld = vehicle ? this.helm.isStopped(vehicle) : this.#activity.isHeld;
    const { level, text, source } = this.health.verdict;
    if (isHeld && level === "ok") health.show("warn", "On hold", vehicle?.held?.why); // which is not reported yet
    else health.show(level, text, source);
    if (goneS > 0) return;
    doing.show(...this.#activity.doing(vehicle, isHeld));
    this.#showPosition();
  }

  #showConnection(): void {
    const rate = this.#bytesPerS;
    const links = this.links.all;
    const broken = links.find(({ level }) => level === "error");
    const hasVehicle = this.fleet.subjects.length > 0;
    const level = broken ? "error" : !hasVehicle || links.some((link) => link.level !== "ok") ? "warn" : "ok";
    const amount = rate < 1e6 ? `${(rate / 1e3).toFixed(0)} kB/s` : `${(rate / 1e6).toFixed(1)} MB/s`;
    const isViewOnly = this.helm.maySteer === false && hasVehicle && !this.stream.isRecording;
    this.#cells.connection.show(level,
      broken ? (broken.name === "server" ? broken.text : `${broken.name}: ${broken.text}`) : this.stream.isRecording ? "A recording" : "Connected",
      [...links.map(described), this.#departure.text ? "no vehicle any more" : hasVehicle ? "" : "no vehicle yet", isViewOnly ? "view only" : ""].filter(Boolean).join(" · "));
    setText(this.#amount, amount);
  }

  #showPosition(): void {
    const odometry = this.#odometry?.value;
    // Data that a controller uses is good enough to be shown, also after the controller's end.
    this.#isGood ||= Boolean(odometry && (isKnown(odometry.pose.covariance) || this.fleet.subject.vehicle?.takes_goals));
    const point = odometry && this.#isGood ? odometry.pose.pose.position : undefined;
    const measured = this.#height?.value;
    const height: number | undefined = measured?.point?.z ?? measured?.pose?.pose.position.z;
    const { position } = this.#cells;
    if (point) position.show("none", ["x", "y", "z"].map((axis) => `${axis} ${decimal(point[axis])}`).join(" "), `metres in ${odometry.header.frame_id || "odom"}`, this.stream.silentS(this.#odometry!));
    else if (height !== undefined) position.show("none", `${decimal(height)} m above ground`, "no horizontal position", this.stream.silentS(this.#height!));
    else position.show("none", "Unknown", odometry ? "odometry without a known position" : this.#topics.size > 0 ? "no message yet" : "no odometry and no height");
  }

}

function described({ name, ageS }: Link): string {
  return ageS === undefined ? name : `${name} ${decimal(ageS, ageS < 10 ? 1 : 0)} s`;
}

class Cell {
  readonly element: HTMLElement;
  readonly head: HTMLElement;
  #lamp = h("span.lamp");
  #text = h("strong");
  #more = h("span.more");
  #shown = "";

  constructor(name: string) {
    this.head = h("span.cell-name", {}, this.#lamp, name);
    this.element = h("div.cell", { "data-cell": name.toLowerCase() }, this.head, this.#text, this.#more);
  }

  /** Keep the last values, with their age. */
  age(silentS: number): void {
    this.show("stale", this.#shown, this.#more.textContent ?? "", silentS);
  }

  show(level: string, text: string, more = "", silentS = 0): void {
    this.#shown = text;
    this.#lamp.className = `lamp ${level}`;
    setValue(this.#text, text, silentS);
    setText(this.#more, more);
    this.element.title = [this.#text.textContent, more].filter(Boolean).join(" · ");
  }
}
