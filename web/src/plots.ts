// SPDX-License-Identifier: Apache-2.0
// What matters of the chosen vehicle, over time and as a number.

import uPlot from "uplot";
import { decimal, h, oncePerFrame, panel, setText } from "./dom";
import type { Fleet } from "./fleet";
import type { Message, Stream } from "./stream";

interface Source {
  /** Below the vehicle's namespace; "*" stands for the last part of a name. */
  topic: string;
  read: (message: Message) => number | undefined;
}
interface Quantity {
  name: string;
  unit: string;
  places: number;
  /** The least range of the vertical axis, so that noise looks like noise. */
  span: number;
  /** Whether it is meaningless for a vehicle that stays on the ground. */
  flying?: boolean;
  /** The first one that exists is plotted. */
  sources: Source[];
}

const SPAN_S = 60;
const MAX_POINTS = 2400;
const SHORTEST_GAP_MS = 40;
const REFRESH_PERIOD_MS = 1000;
const STATE = "drone_controller/state";

const norm = ({ x, y, z }: { x: number; y: number; z: number }): number => Math.hypot(x, y, z);
const finite = (value: number): number | undefined => (Number.isFinite(value) ? value : undefined);
const degrees = (angle: number): number => (angle * 180) / Math.PI;

const QUANTITIES: Quantity[] = [
  { name: "Altitude", unit: "m", places: 2, span: 1, flying: true, sources: [
    { topic: "height", read: (m) => m.point.z },
    { topic: "odom", read: (m) => m.pose.pose.position.z },
  ] },
  { name: "Distance to target", unit: "m", places: 2, span: 1, sources: [{ topic: STATE, read: (m) => finite(m.distance) }] },
  { name: "Speed", unit: "m/s", places: 2, span: 1, sources: [
    { topic: "velocity", read: (m) => norm(m.twist.linear) },
    { topic: "odom", read: (m) => norm(m.twist.twist.linear) },
    { topic: "velocity", read: (m) => norm(m.vector) },
  ] },
  { name: "Heading", unit: "°", places: 0, span: 30, sources: [
    { topic: "imu/data", read: ({ orientation: q, orientation_covariance: c }) =>
      c[0] === -1 ? undefined : degrees(Math.atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y * q.y + q.z * q.z))) },
    { topic: "odom", read: ({ pose: { pose: { orientation: q } } }) =>
      degrees(Math.atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y * q.y + q.z * q.z))) },
  ] },
  { name: "Battery", unit: "%", places: 0, span: 10, sources: [
    { topic: "battery_state", read: (m) => finite(m.percentage * 100) },
  ] },
  { name: "Voltage", unit: "V", places: 1, span: 1, sources: [{ topic: "battery_state", read: (m) => finite(m.voltage) }] },
  { name: "Climb", unit: "", places: 2, span: 0.5, sources: [{ topic: "dronegui/state", read: (m) => m.gas }] },
  { name: "Pitch", unit: "", places: 2, span: 0.5, sources: [{ topic: "dronegui/state", read: (m) => m.pitch }] },
  { name: "Roll", unit: "", places: 2, span: 0.5, sources: [{ topic: "dronegui/state", read: (m) => m.roll }] },
  { name: "Yaw", unit: "", places: 2, span: 0.5, sources: [{ topic: "dronegui/state", read: (m) => m.yaw }] },
];
const MOST = 5;

export class Plots {
  readonly element: HTMLElement;
  #list = h("div.plots");
  #nothing = h("p.hint.nothing", {}, "No values to plot yet.");
  #plots: Plot[] = [];
  #shown = "";
  #isPaused = false;
  #pause: HTMLButtonElement;

  constructor(private stream: Stream, private fleet: Fleet) {
    this.#pause = h("button.small", { onclick: () => this.#setPaused(!this.#isPaused) }, "Pause");
    this.element = panel("plots", "Plots", [
      h("span.hint", {}, "drag to zoom, double-click to reset"), this.#pause,
    ], this.#nothing, this.#list);
    fleet.addEventListener("change", () => this.#arrange());
    // Time goes on without values, too.
    setInterval(() => this.#plots.forEach((plot) => plot.refresh()), REFRESH_PERIOD_MS);
  }

  #setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
    setText(this.#pause, isPaused ? "Resume" : "Pause");
    for (const plot of this.#plots) plot.isPaused = isPaused;
  }

  #arrange(): void {
    const topics = this.fleet.topics();
    const { prefix, vehicle } = this.fleet.subject;
    const isOnGround = vehicle !== undefined && !vehicle.axes.includes("z");
    const chosen = QUANTITIES.flatMap((quantity) => {
      if (quantity.flying && isOnGround) return [];
      const source = quantity.sources.find(({ topic }) => topics.has(topic));
      return source ? [{ quantity, source }] : [];
    });
    const shown = chosen.map(({ quantity, source }) => `${prefix}${source.topic} ${quantity.name}`).join("\n");
    if (shown === this.#shown) return;
    this.#shown = shown;
    for (const plot of this.#plots) plot.close();
    this.#plots = chosen.map(({ quantity, source }) => new Plot(this.stream, prefix, quantity, source, () => this.#choose()));
    this.#list.replaceChildren(...this.#plots.map((plot) => plot.element));
    this.#setPaused(this.#isPaused);
    this.#choose();
  }

  /** Show the first ones that have something to show: a topic may be there without a message. */
  #choose(): void {
    const full = this.#plots.filter((plot) => plot.hasValues).slice(0, MOST);
    for (const plot of this.#plots) plot.element.classList.toggle("empty", !full.includes(plot));
    this.#nothing.hidden = full.length > 0;
  }
}

class Plot {
  readonly element: HTMLElement;
  isPaused = false;
  #value: HTMLElement;
  #chart: HTMLElement = h("div.chart");
  #times: number[] = [];
  #values: number[] = [];
  #lastMs = 0;
  #plot?: uPlot;
  #isZoomed = false;
  #end: () => void;
  #observer: ResizeObserver;
  readonly refresh = oncePerFrame(() => this.isPaused || this.#draw());

  constructor(stream: Stream, prefix: string, private quantity: Quantity, source: Source, private onFirst: () => void) {
    this.#value = h("strong.value", {}, "–");
    this.element = h("div.plot", { "data-plot": quantity.name },
      h("div.plot-head", {}, h("span", {}, quantity.name), h("span.reading", {}, this.#value, `${quantity.unit === "°" ? "" : "\u00a0"}${quantity.unit}`)),
      this.#chart);
    this.#observer = new ResizeObserver(() => this.#resize());
    this.#observer.observe(this.#chart);
    this.#end = stream.subscribe(prefix + source.topic, (arrival) => {
      if (arrival.receivedMs - this.#lastMs < SHORTEST_GAP_MS) return;
      this.#lastMs = arrival.receivedMs;
      this.#add(source.read(arrival.value));
    });
  }

  get hasValues(): boolean {
    return this.#values.length > 0;
  }

  close(): void {
    this.#end();
    this.#observer.disconnect();
    this.#plot?.destroy();
  }

  #add(value: number | undefined): void {
    setText(this.#value, decimal(value, this.quantity.places));
    if (value === undefined) return;
    this.#times.push(Date.now() / 1000);
    this.#values.push(value);
    if (this.#values.length === 1) this.onFirst();
    if (this.#times.length > MAX_POINTS) {
      this.#times.splice(0, MAX_POINTS / 4);
      this.#values.splice(0, MAX_POINTS / 4);
    }
    this.element.dataset["points"] = String(Number(this.element.dataset["points"] ?? 0) + 1);
    this.refresh();
  }

  #resize(): void {
    const { clientWidth: width, clientHeight: height } = this.#chart;
    if (width && height) this.#plot?.setSize({ width, height });
  }

  #draw(): void {
    const { clientWidth: width, clientHeight: height } = this.#chart;
    if (!width || !height) return;
    this.#plot ??= this.#make(width, height);
    this.#plot.setData([this.#times, this.#values], false);
    if (!this.#isZoomed) {
      const now = Date.now() / 1000;
      this.#plot.setScale("x", { min: Math.max(now - SPAN_S, this.#times[0] ?? now), max: now });
    } else this.#plot.redraw();
  }

  /** Note in the document how many seconds are in view. */
  #showSpan({ scales: { x } }: uPlot): void {
    this.element.dataset["seconds"] = String((x?.max ?? 0) - (x?.min ?? 0));
  }

  #make(width: number, height: number): uPlot {
    const color = (name: string) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const axis = { stroke: color("--muted"), grid: { stroke: color("--grid"), width: 1 }, ticks: { show: false }, font: "10px system-ui" };
    return new uPlot({
      width,
      height,
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false, setScale: true } },
      scales: { x: { time: true }, y: { range: (_, low, high) => padded(low, high, this.quantity.span) } },
      axes: [
        { ...axis, size: 18, space: 70, values: (_, splits) => splits.map((s) => new Date(s * 1000).toLocaleTimeString([], { hour12: false })) },
        { ...axis, size: 38, space: 22, values: (_, splits) => splits.map((value) => String(Number(value.toFixed(6))).replace("-", "−")) },
      ],
      series: [{}, { stroke: color("--series"), width: 1.6, fill: color("--series-fill"), fillTo: (plot) => plot.scales["y"]?.min ?? 0, points: { show: false } }],
      hooks: {
        setSelect: [(plot) => (this.#isZoomed = plot.select.width > 0)],
        setScale: [(plot, key) => key === "x" && this.#showSpan(plot)],
        ready: [(plot) => plot.over.addEventListener("dblclick", () => (this.#isZoomed = false))],
      },
    }, [[], []], this.#chart);
  }
}

function padded(low: number, high: number, span: number): [number, number] {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [0, span];
  const margin = Math.max((high - low) * 0.1, (span - (high - low)) / 2);
  return [low - margin, high + margin];
}
