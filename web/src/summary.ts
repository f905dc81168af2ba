// SPDX-License-Identifier: Apache-2.0
// One look: is it connected, is it healthy, where is it, what is it about?

import { decimal, h, setText } from "./dom";
import type { Fleet } from "./fleet";
import type { Health } from "./health";
import type { Helm } from "./helm";
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
  #bytes = 0;

  constructor(private stream: Stream, private helm: Helm, private fleet: Fleet, private health: Health) {
    this.element = h("section.summary", { "aria-label": "Summary" }, ...Object.values(this.#cells).map((cell) => cell.element));
    fleet.addEventListener("change", () => this.#follow());
    health.addEventListener("change", () => this.#show());
    stream.addEventListener("status", () => this.#show());
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
    const { stream } = this;
    this.#ends = [
      stream.subscribe(`${prefix}odom`, (arrival) => (this.#odometry = arrival)),
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
    const { status } = this.stream;
    const who = this.fleet.subject.vehicle?.node;
    const { silentSeconds } = this.helm;
    if (status !== "open") this.#cells.connection.show("error", status === "lost" ? "Lost, reconnecting …" : "Connecting …");
    else if (silentSeconds) this.#cells.connection.show("error", "Not responding", `for ${silentSeconds.toFixed(0)} s`);
    else if (this.fleet.subjects.length === 0) this.#cells.connection.show("warn", "Connected", "no vehicle yet");
    else {
      const amount = rate < 1e6 ? `${(rate / 1e3).toFixed(0)} kB/s` : `${(rate / 1e6).toFixed(1)} MB/s`;
      this.#cells.connection.show("ok", "Connected", `${who ? `${who} · ` : ""}${amount}${this.helm.maySteer && who ? "" : " · view only"}`);
    }
  }

  #showPosition(): void {
    const odometry = fresh(this.#odometry);
    const point = odometry?.pose.pose.position;
    const height: number | undefined = fresh(this.#height)?.point.z;
    if (point) this.#cells.position.show("none", ["x", "y", "z"].map((axis) => `${axis} ${decimal(point[axis])}`).join(" "), `metres in ${odometry.header.frame_id || "odom"}`);
    else if (height !== undefined) this.#cells.position.show("none", `${decimal(height)} m above ground`, "no horizontal position");
    else this.#cells.position.show("none", "Unknown", "no odometry and no height");
  }

  #showDoing(): void {
    const state = fresh(this.#state);
    const overruled = state ? `${state.behaviour} is overruled`.replaceAll("_", " ") : "";
    const pilot = this.fleet.subject.vehicle?.pilot;
    if (pilot) this.#cells.doing.show("none", pilot === "you" ? "Steered from here" : "Steered from another page", overruled);
    else if (state) this.#cells.doing.show("none", `${state.behaviour}: ${state.state}`.replaceAll("_", " "), state.reason);
    else if (this.fleet.topics().has("cmd_vel")) this.#cells.doing.show("none", "Following cmd_vel", "its publisher gives no reasons");
    else this.#cells.doing.show("none", "Nothing", "no controller is running");
  }
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

function fresh(arrival: { value: Message; receivedMs: number } | undefined): Message | undefined {
  return arrival && performance.now() - arrival.receivedMs < STALE_MS ? arrival.value : undefined;
}
