// SPDX-License-Identifier: Apache-2.0
// One look: is it connected, is it healthy, where is it, what is it about?

import { decimal, h, setText } from "./dom";
import { isKnown } from "./fields";
import type { Fleet } from "./fleet";
import type { Health } from "./health";
import type { Helm } from "./helm";
import type { Link, Links } from "./links";
import type { Message, Stream } from "./stream";

const CONTROLLER_STATE = "drone_bridge/msg/ControllerState";
const PERIOD_MS = 500;
const STALE_MS = 3_000;

export class Summary {
  readonly element: HTMLElement;
  #cells = {
    connection: new Cell("Connection"),
    health: new Cell("Health"),
    position: new Cell("Position"),
    doing: new Cell("Doing"),
  };
  #ends: (() => void)[] = [];
  #shown = "";
  #state?: { value: Message; receivedMs: number };
  #odometry?: { value: Message; receivedMs: number };
  #height?: { value: Message; receivedMs: number };
  #isHeld = false;
  #bytes = 0;

  constructor(private stream: Stream, private helm: Helm, private fleet: Fleet, private health: Health, private links: Links) {
    this.element = h("section.summary", { "aria-label": "Summary" }, ...Object.values(this.#cells).map((cell) => cell.element));
    fleet.addEventListener("change", () => this.#follow());
    health.addEventListener("change", () => this.#show());
    links.addEventListener("change", () => this.#show());
    setInterval(() => this.#show(), PERIOD_MS);
  }

  #follow(): void {
    const { prefix } = this.fleet.subject;
    const topics = this.fleet.topics();
    const state = [...topics].find(([, type]) => type === CONTROLLER_STATE)?.[0];
    const shown = [prefix, state, topics.has("odom"), topics.has("height")].join();
    if (shown === this.#shown) return;
    this.#shown = shown;
    for (const end of this.#ends) end();
    this.#state = this.#odometry = this.#height = undefined;
    this.#isHeld = false;
    const { stream } = this;
    this.#ends = [
      stream.subscribe(`${prefix}odom`, (arrival) => (this.#odometry = arrival)),
      stream.subscribe(`${prefix}held`, ({ value }) => (this.#isHeld = value.data === true)),
      stream.subscribe(`${prefix}height`, (arrival) => (this.#height = arrival)),
      ...(state ? [stream.subscribe(prefix + state, (arrival) => (this.#state = arrival))] : []),
    ];
  }

  #show(): void {
    this.#showConnection();
    const { level, text, source } = this.health.verdict;
    this.#cells.health.show(level, text, source);
    this.#showPosition();
    this.#showDoing();
  }

  #showConnection(): void {
    const rate = ((this.stream.bytesReceived - this.#bytes) * 1000) / PERIOD_MS;
    this.#bytes = this.stream.bytesReceived;
    const links = this.links.all;
    const broken = links.find(({ level }) => level === "error");
    const hasVehicle = this.fleet.subjects.length > 0;
    const level = broken ? "error" : !hasVehicle || links.some((link) => link.level !== "ok") ? "warn" : "ok";
    const amount = rate < 1e6 ? `${(rate / 1e3).toFixed(0)} kB/s` : `${(rate / 1e6).toFixed(1)} MB/s`;
    const isViewOnly = !this.helm.maySteer && hasVehicle && !this.stream.isRecording;
    this.#cells.connection.show(level,
      broken ? (broken.name === "server" ? broken.text : `${broken.name}: ${broken.text}`) : this.stream.isRecording ? "A recording" : "Connected",
      [...links.slice(broken ? links.indexOf(broken) : 0).map(described), hasVehicle ? "" : "no vehicle yet", amount, isViewOnly ? "view only" : ""].filter(Boolean).join(" · "));
  }

  #showPosition(): void {
    const odometry = fresh(this.#odometry, this.stream.isRecording);
    const point = odometry && isKnown(odometry.pose.covariance) ? odometry.pose.pose.position : undefined;
    const measured = fresh(this.#height, this.stream.isRecording);
    const height: number | undefined = measured?.point?.z ?? measured?.pose?.pose.position.z;
    if (point) this.#cells.position.show("none", ["x", "y", "z"].map((axis) => `${axis} ${decimal(point[axis])}`).join(" "), `metres in ${odometry.header.frame_id || "odom"}`);
    else if (height !== undefined) this.#cells.position.show("none", `${decimal(height)} m above ground`, "no horizontal position");
    else this.#cells.position.show("none", "Unknown", odometry ? "its odometry does not say" : "no odometry and no height");
  }

  /** Who commands the vehicle, and why. */
  #showDoing(): void {
    const state = fresh(this.#state, this.stream.isRecording);
    const doing = state ? `${state.behaviour}: ${state.state}`.replaceAll("_", " ") : "";
    const { vehicle } = this.fleet.subject;
    const commanders = vehicle?.commanders ?? [];
    const who = commanders.length > 0 ? commanders.join(" and ") : "nobody";
    const cell = this.#cells.doing;
    if (vehicle?.pilot) {
      cell.show("none", vehicle.pilot === "you" ? "Steered from here" : "Steered from another page", commanders.length > 0 ? `${who} is overruled${doing && `, ${doing}`}` : "");
    } else if (this.#isHeld) cell.show("warn", "Holding", commanders.length > 0 ? `${who} is refused until Resume is pressed` : "until Resume is pressed");
    else if (state) cell.show("none", doing, `${state.reason}${commanders.length > 0 ? ` (${who})` : ""}`);
    else if (commanders.length > 0) cell.show("none", `Commanded by ${who}`, "which gives no reasons");
    else if (this.stream.isRecording) cell.show("none", "Not recorded", "no controller has told what it did");
    else cell.show("none", "Nothing", "nobody commands it");
  }
}

function described({ name, level, text, ageS }: Link): string {
  const what = level === "error" ? `${name} ${text}` : name;
  return ageS === undefined ? what : `${what} ${decimal(ageS, ageS < 10 ? 1 : 0)} s`;
}

class Cell {
  readonly element: HTMLElement;
  #lamp = h("span.lamp");
  #text = h("strong");
  #more = h("span.more");

  constructor(name: string) {
    this.element = h("div.cell", { "data-cell": name.toLowerCase() }, h("span.cell-name", {}, this.#lamp, name), this.#text, this.#more);
  }

  show(level: string, text: string, more = ""): void {
    this.#lamp.className = `lamp ${level}`;
    setText(this.#text, text);
    setText(this.#more, more);
    this.element.title = more ? `${text} · ${more}` : text;
  }
}

function fresh(arrival: { value: Message; receivedMs: number } | undefined, isKept: boolean): Message | undefined {
  return arrival && (isKept || performance.now() - arrival.receivedMs < STALE_MS) ? arrival.value : undefined;
}
