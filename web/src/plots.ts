// SPDX-License-Identifier: Apache-2.0
// Numbers over time, all on one time axis: the default quantities of the chosen vehicle, or the user's selection.

import uPlot from "uplot";
import { storage } from "./browser_features";
import { h, icon, panel, setText, setValue } from "./dom";
import { drawing } from "./drawing_budget";
import { numericPaths } from "./fields";
import type { Fleet } from "./fleet";
import type { Helm } from "./helm";
import { opened } from "./open_forms";
import { QUANTITIES, fieldQuantity, quantitiesOf, textOf, turned, type Entry, type Quantity } from "./quantities";
import { whenRestarted } from "./restarts";
import type { Stream, When } from "./stream";

const SPAN_S = 60;
const MAX_POINTS = 2400;
const SHORTEST_GAP_S = 0.04;
const REFRESH_PERIOD_MS = 250;
/** Until the user has chosen a layout. */
const MOST_BY_ITSELF = 5;
const AXIS_PX = 46, TICK_PX = 56, EDGE_PX = 8;
const STORED = "plots ";

/** Time range of all plots: the last minute as far as there are values, a whole recording, or the zoomed range. */
class Axis {
  zoomed?: [number, number];
  /** Of a recording. */
  whole?: [number, number];
  readonly sync = uPlot.sync("time");

  constructor(private stream: Stream, private firstS: () => number) {}

  get range(): [number, number] {
    const nowS = this.stream.nowS;
    return this.zoomed ?? this.whole ?? [Math.min(Math.max(nowS - SPAN_S, this.firstS()), nowS - 1), nowS];
  }
}

export class Plots {
  readonly element: HTMLElement;
  #list = h("div.plots", { title: "Drag to zoom, double-click to reset" });
  #nothing = h("p.hint.nothing", {}, "No values to plot yet.");
  #plots: Plot[] = [];
  #shown = "";
  #isPaused = false;
  #pause: HTMLButtonElement;
  #reset: HTMLButtonElement;
  #add: HTMLElement;
  #topic = h("select", { "aria-label": "Topic to plot", onchange: () => this.#listPaths() });
  #path = h("select", { "aria-label": "Field to plot" });
  #axis: Axis;
  #layout?: Entry[];
  /** Subject of the plots, and all topics that it has had: the values of a vehicle that has left stay. */
  #prefix?: string;
  #topics = new Map<string, string>();

  constructor(private stream: Stream, private fleet: Fleet, helm: Helm) {
    this.#axis = new Axis(stream, () => Math.min(...this.#plots.filter(({ isShown }) => isShown).map(({ firstS }) => firstS)));
    this.#pause = h("button.small", { onclick: () => this.#setPaused(!this.#isPaused) }, "Pause");
    this.#reset = h("button.small", { title: "Back to the default plots", onclick: () => this.#store(undefined) }, "Reset");
    const adding = h("button.small", { "aria-expanded": "false", onclick: () => {
      this.#add.hidden = !this.#add.hidden;
      adding.setAttribute("aria-expanded", String(!this.#add.hidden));
      this.#listTopics();
      if (!this.#add.hidden) opened(this.#add, () => adding.click());
    } }, "Add …");
    this.#add = h("div.tab-tools.add-plot", { hidden: true }, this.#topic, this.#path,
      h("button.primary", { onclick: () => this.#path.value && this.add(this.#topic.value, this.#path.value) }, "Add"));
    this.element = panel("plots", "Plots", [this.#reset, adding, this.#pause],
      this.#add, this.#nothing, this.#list);
    fleet.addEventListener("change", () => this.#arrange());
    whenRestarted(helm, (topic) => topic === this.fleet.subject.vehicle?.topic && this.#plots.forEach((plot) => plot.interrupt()));
    stream.addEventListener("seek", () => this.#plots.forEach((plot) => plot.forget()));
    // Time advances without values, too.
    setInterval(() => this.#plots.forEach((plot) => plot.tick()), REFRESH_PERIOD_MS);
  }

  /** Plot a field of a topic, at the top. */
  add(topic: string, path: string): void {
    const layout = this.#current();
    if (!layout.some((each) => "topic" in each && each.topic === topic && each.path === path)) this.#store([{ topic, path }, ...layout]);
    this.#list.scrollTop = 0;
  }

  get #key(): string {
    return STORED + this.fleet.subject.prefix;
  }

  /** Current plots, as a layout that can be changed. */
  #current(): Entry[] {
    return this.#layout ?? this.#plots.filter((plot) => plot.isShown).map((plot) => plot.entry);
  }

  #store(layout: Entry[] | undefined): void {
    if (layout) storage.set(this.#key, JSON.stringify(layout));
    else storage.remove(this.#key);
    this.#arrange();
  }

  #stored(): Entry[] | undefined {
    const layout = storage.read(this.#key);
    if (!Array.isArray(layout)) return undefined;
    return layout.filter((each) => typeof each?.quantity === "string" || (typeof each?.topic === "string" && typeof each.path === "string"));
  }

  #move(entry: Entry, by: number): void {
    const layout = this.#current();
    const index = layout.findIndex((each) => JSON.stringify(each) === JSON.stringify(entry));
    if (index < 0) return;
    layout.splice(index, 1);
    if (by) layout.splice(Math.max(0, index + by), 0, entry);
    this.#store(layout);
  }

  #listTopics(): void {
    const chosen = this.#topic.value;
    const topics = [...this.stream.topics.keys()].filter((topic) => this.#numbersOf(topic).length > 0).sort();
    // Those of the current vehicle come first.
    const { prefix } = this.fleet.subject;
    topics.sort((a, b) => Number(b.startsWith(prefix)) - Number(a.startsWith(prefix)));
    this.#topic.replaceChildren(...topics.map((topic) => h("option", { value: topic }, topic)));
    if (topics.includes(chosen)) this.#topic.value = chosen;
    this.#listPaths();
  }

  /** Paths of a topic's numbers; none for a type that can't be parsed, such as one from an .idl file. */
  #numbersOf(topic: string): string[] {
    try {
      return numericPaths(this.stream.definitions(this.stream.topics.get(topic)!.schema));
    } catch {
      return [];
    }
  }

  #listPaths(): void {
    const paths = this.#numbersOf(this.#topic.value);
    const first = paths.filter((path) => !/stamp\.|covariance/.test(path));
    this.#path.replaceChildren(...[...first, ...paths.filter((path) => !first.includes(path))].map((path) => h("option", { value: path }, path)));
  }

  #setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
    setText(this.#pause, isPaused ? "Resume" : "Pause");
    for (const plot of this.#plots) plot.isPaused = isPaused;
  }

  #arrange(): void {
    const { subject, subjects } = this.fleet;
    if (subjects.length === 0 && this.#plots.length > 0) return;
    const { prefix, vehicle } = subject;
    if (prefix !== this.#prefix) this.#topics = new Map();
    this.#prefix = prefix;
    const topics = this.#topics;
    for (const [topic, type] of this.fleet.topics()) topics.set(topic, type);
    this.#layout = this.#stored();
    const entries = this.#layout ?? quantitiesOf(vehicle, topics).map(({ name }): Entry => ({ quantity: name }));
    const chosen = entries.flatMap((entry): { entry: Entry; quantity: Quantity; sources: string[] }[] => {
      if ("topic" in entry) return this.stream.topics.has(entry.topic) || this.#plots.some((plot) => "topic" in plot.entry && plot.entry.topic === entry.topic) ? [{ entry, quantity: fieldQuantity(entry.topic, entry.path), sources: [entry.topic] }] : [];
      const quantity = QUANTITIES.find(({ name }) => name === entry.quantity);
      const sources = quantity?.sources.filter(({ topic }) => topics.has(topic)) ?? [];
      return quantity && sources.length > 0 ? [{ entry, quantity: { ...quantity, sources }, sources: sources.map(({ topic }) => prefix + topic) }] : [];
    });
    const shown = [String(this.#layout !== undefined), ...chosen.map(({ quantity, sources }) => `${quantity.name} ${sources.join()}`)].join("\n");
    if (shown === this.#shown) return;
    this.#shown = shown;
    const before = new Map(this.#plots.map((plot) => [plot.identity, plot]));
    this.#plots = chosen.map(({ entry, quantity, sources }) => {
      const plot = before.get(`${quantity.name} ${sources.join()}`) ?? new Plot(this.stream, this.#axis, entry, quantity, sources, {
        onFirst: () => this.#choose(), onMove: (by) => this.#move(entry, by), onZoom: () => this.#plots.forEach((each) => each.refresh()),
      });
      before.delete(plot.identity);
      return plot;
    });
    for (const plot of before.values()) plot.close();
    this.#list.replaceChildren(...this.#plots.map((plot) => plot.element));
    this.#reset.hidden = this.#layout === undefined;
    this.#setPaused(this.#isPaused);
    this.#choose();
  }

  /** Show the first plots that have values: a topic may exist without a message. */
  #choose(): void {
    const shown = this.#layout ? this.#plots : this.#plots.filter((plot) => plot.hasValues).slice(0, MOST_BY_ITSELF);
    for (const plot of this.#plots) {
      plot.isShown = shown.includes(plot);
      plot.isLast = plot === shown.at(-1);
    }
    this.#nothing.hidden = shown.length > 0;
  }
}

interface Events {
  onFirst: () => void;
  onMove: (by: number) => void;
  onZoom: () => void;
}

class Plot {
  readonly element: HTMLElement;
  readonly identity: string;
  isPaused = false;
  #value = h("strong.value", {}, "–");
  #cursor = h("div.plot-cursor", { hidden: true });
  /** Last value, if there is one. */
  #latest?: When & { value: number };
  #chart: HTMLElement = h("div.chart");
  #times: number[] = [];
  /** Null where the vehicle has restarted: no line joins the values before and after. */
  #values: (number | null)[] = [];
  #spoken = Infinity;
  #plot?: uPlot;
  #ends: (() => void)[];
  #observer: ResizeObserver;
  #isShown = true;
  #isLast = false;

  constructor(private stream: Stream, private axis: Axis, readonly entry: Entry, private quantity: Quantity, topics: string[], private events: Events) {
    this.identity = `${quantity.name} ${topics.join()}`;
    const { name } = quantity;
    const tool = (label: "up" | "down" | "remove", what: string, by: number): HTMLElement =>
      h("button.small", { "aria-label": `${what}: ${name}`, title: what, onclick: () => events.onMove(by) }, icon(label));
    this.element = h("div.plot", { "data-plot": name },
      h("div.plot-head", {},
        h("span.plot-title", {}, h("span.plot-name", {}, name),
          h("span.plot-tools", {}, tool("up", "Move up", -1), tool("down", "Move down", 1), tool("remove", "Remove", 0))),
        this.#value),
      this.#chart);
    this.#observer = new ResizeObserver(() => this.#resize());
    this.#observer.observe(this.#chart);
    this.#ends = quantity.sources.map((source, rank) => stream.subscribe(topics[rank]!, (arrival) => {
      if (rank > this.#spoken || arrival.timeS - (this.#times.at(-1) ?? -Infinity) < SHORTEST_GAP_S && this.#times.length > 0 && arrival.timeS >= this.#times.at(-1)!) return;
      const value = source.read(arrival.value);
      if (value !== undefined) this.#spoken = rank;
      if (value === undefined) return;
      this.#latest = { value, timeS: arrival.timeS, receivedMs: arrival.receivedMs };
      this.#showValue();
      if (!stream.isRecording) this.#add(arrival.timeS, value);
    }));
    if (stream.isRecording) void this.#recall(topics);
  }

  get hasValues(): boolean {
    return this.#values.length > 0;
  }

  /** Time of its first value, s since 1970. */
  get firstS(): number {
    return this.#times[0] ?? Infinity;
  }

  get isShown(): boolean {
    return this.#isShown;
  }

  set isShown(isShown: boolean) {
    this.#isShown = isShown;
    this.element.classList.toggle("empty", !isShown);
  }

  /** The last plot has the time axis of all plots. */
  set isLast(isLast: boolean) {
    if (isLast === this.#isLast) return;
    this.#isLast = isLast;
    this.element.classList.toggle("last", isLast);
    this.#plot?.destroy();
    this.#plot = undefined;
    this.#draw();
  }

  /** The last value is from another time. */
  forget(): void {
    this.#latest = undefined;
    this.#spoken = Infinity;
  }

  /** Mark a restart of the vehicle by a gap. */
  interrupt(): void {
    if (this.stream.isRecording || this.#values.length === 0 || this.#values.at(-1) === null) return;
    this.#times.push(Math.max(this.stream.nowS, this.#times.at(-1)!));
    this.#values.push(null);
    this.element.dataset["gaps"] = String(Number(this.element.dataset["gaps"] ?? 0) + 1);
  }

  tick(): void {
    this.#showValue();
    this.#placeCursor();
    if (!this.stream.isRecording) this.refresh();
  }

  /** Plot recorded values. */
  async #recall(topics: string[]): Promise<void> {
    for (const [rank, { read }] of this.quantity.sources.entries()) {
      const { span, messages } = await this.stream.history(topics[rank]!);
      this.axis.whole = span;
      for (const { timeS, value } of messages) this.#add(timeS, read(value));
      if (this.hasValues) return;
    }
  }

  #showValue(): void {
    if (this.isPaused) return;
    const { unit } = this.quantity;
    const value = this.#latest && `${textOf(this.quantity, this.#latest.value)}${unit === "°" ? "" : "\u00a0"}${unit}`;
    const silentS = this.#latest ? this.stream.silentS(this.#latest) : 0;
    setValue(this.#value, value ?? "–", silentS);
    this.element.classList.toggle("old", silentS > 0);
  }

  /** Mark the current time of a recording. */
  #placeCursor(): void {
    const left = this.#plot?.valToPos(this.stream.nowS, "x") ?? -1;
    this.#cursor.hidden = !this.stream.isRecording || left < 0;
    this.#cursor.style.left = `${left}px`;
  }

  /** Draw in one of the next frames. */
  refresh(): void {
    drawing.request(this, () => this.isPaused || this.#draw());
  }

  close(): void {
    for (const end of this.#ends) end();
    this.#observer.disconnect();
    this.#plot?.destroy();
  }

  #add(timeS: number, value: number | undefined): void {
    if (value === undefined) return;
    const last = this.#values.at(-1);
    // An angle that passes the end of a turn continues, by whole turns.
    this.#values.push(this.quantity.turnsAt !== undefined && last !== undefined && last !== null ? value + 360 * Math.round((last - value) / 360) : value);
    this.#times.push(timeS);
    if (this.#values.length === 1) this.events.onFirst();
    if (this.#times.length > MAX_POINTS) {
      this.#times.splice(0, MAX_POINTS / 4);
      this.#values.splice(0, MAX_POINTS / 4);
    }
    this.element.dataset["points"] = String(Number(this.element.dataset["points"] ?? 0) + 1);
    this.refresh();
  }

  #resize(): void {
    const { clientWidth: width, clientHeight: height } = this.#chart;
    if (width && height && this.#plot) this.#plot.setSize({ width, height });
    else this.#draw(); // it has just become visible
  }

  #draw(): void {
    const { clientWidth: width, clientHeight: height } = this.#chart;
    if (!width || !height) return;
    this.#plot ??= this.#make(width, height);
    this.#plot.setData([this.#times, this.#values], false);
    const [min, max] = this.axis.range;
    this.#plot.setScale("x", { min, max });
    this.#placeCursor();
  }

  /** Report the visible seconds in the document, for tests. */
  #showSpan({ scales: { x } }: uPlot): void {
    this.element.dataset["seconds"] = String((x?.max ?? 0) - (x?.min ?? 0));
  }

  #zoom(range: [number, number] | undefined): void {
    this.axis.zoomed = range;
    this.events.onZoom();
    this.#draw();
  }

  #make(width: number, height: number): uPlot {
    const color = (name: string) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const axis = { stroke: color("--muted"), grid: { stroke: color("--grid"), width: 1 }, ticks: { show: false }, font: "10px system-ui" };
    return new uPlot({
      width,
      height,
      padding: [6, EDGE_PX, this.#isLast ? 0 : 4, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false, setScale: false }, sync: { key: this.axis.sync.key, scales: ["x", null] } },
      scales: { x: { time: true }, y: { range: (_, low, high) => padded(low, high, this.quantity.span) } },
      axes: [
        { ...axis, size: this.#isLast ? 18 : 0, space: 70, values: (plot, splits, _, __, step) => splits.map((s) => (this.#isLast && fitsBefore(plot, s) ? timeText(s, step) : "")) },
        { ...axis, size: AXIS_PX, space: 22, values: (_, splits, __, ___, step) => splits.map((value) => valueText(turned(value, this.quantity.turnsAt), step)) },
      ],
      series: [{}, { stroke: color("--series"), width: 1.6, fill: color("--series-fill"), fillTo: (plot) => plot.scales["y"]?.min ?? 0, points: { show: false } }],
      hooks: {
        setSelect: [(plot) => {
          if (plot.select.width < 2) return;
          this.#zoom([plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x")]);
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }],
        setScale: [(plot, key) => key === "x" && this.#showSpan(plot)],
        ready: [(plot) => {
          plot.over.addEventListener("dblclick", () => this.#zoom(undefined));
          plot.over.append(this.#cursor);
        }],
      },
    }, [[], []], this.#chart);
  }
}

/** Whether a tick is far enough from the right edge for its label. */
function fitsBefore(plot: uPlot, seconds: number): boolean {
  return plot.bbox.width / devicePixelRatio - plot.valToPos(seconds, "x") > TICK_PX / 2 - EDGE_PX;
}

/** Label of a time tick, with tenths if ticks are that close. */
function timeText(seconds: number, step: number): string {
  const text = new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });
  return step < 1 ? `${text}${(seconds % 1).toFixed(Math.min(3, Math.ceil(-Math.log10(step)))).slice(1)}` : text;
}

/** Label of a tick, with enough decimal places to differ from the next one. */
function valueText(value: number, step: number): string {
  const places = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step) - 1e-9)));
  const large = Math.abs(value) >= 1e6;
  return (large ? value.toExponential(2) : value.toFixed(places)).replace("-", "−").replace(/^−(0(\.0+)?)$/, "$1");
}

function padded(low: number, high: number, span: number): [number, number] {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [0, span];
  const margin = Math.max((high - low) * 0.1, (span - (high - low)) / 2, Math.abs(high) * 1e-9);
  return [low - margin, high + margin];
}
