// SPDX-License-Identifier: Apache-2.0
// All topics: type, rate and bandwidth, and when opened, the newest message as a tree. Visible rows are measured, except
// images, which are large data and measured only when opened.

import { decimal, h, setText } from "./dom";
import { MessageTree } from "./tree";
import type { Publisher } from "./publish";
import type { Arrival, Stream } from "./stream";

const WINDOW_MS = 2_000;
const TREE_PERIOD_MS = 200;
const LARGE = new Set(["sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage", "sensor_msgs/msg/PointCloud2"]);

interface Row {
  type: string;
  element: HTMLDetailsElement;
  rate: HTMLElement;
  count: number;
  bytes: number;
  isLarge: boolean;
  end?: () => void;
  opened?: { stamp: HTMLElement; tree: MessageTree; newest?: Arrival; shownMs: number };
}

export class Topics {
  readonly element: HTMLElement;
  #list = h("div.topics");
  #filter: HTMLInputElement;
  #rows = new Map<string, Row>();
  #isVisible = false;
  #sinceMs = performance.now();

  constructor(private stream: Stream, private publisher: Publisher, private plot: (topic: string, path: string) => void) {
    this.#filter = h("input", { type: "search", placeholder: "Filter topics", "aria-label": "Filter topics", oninput: () => this.#arrange() });
    this.element = h("div.tab-body", {}, h("div.tab-tools", {}, this.#filter, publisher.button), h("div.scroll", { tabindex: 0 }, publisher.element, this.#list));
    stream.addEventListener("graph", () => this.#arrange());
    new IntersectionObserver((entries) => {
      this.#isVisible = entries.some((entry) => entry.isIntersecting);
      this.#arrange();
    }).observe(this.element);
    setInterval(() => this.#measure(), WINDOW_MS);
    setInterval(() => this.#isVisible && this.#rows.forEach((row) => this.#show(row)), TREE_PERIOD_MS);
  }

  #arrange(): void {
    const filter = this.#filter.value.trim().toLowerCase();
    for (const [topic, row] of this.#rows) {
      if (this.stream.topics.get(topic)?.schemaName === row.type) continue;
      row.end?.();
      row.element.remove();
      this.#rows.delete(topic);
    }
    let before: Element | null = this.#list.firstElementChild;
    for (const topic of [...this.stream.topics.keys()].sort()) {
      const type = this.stream.topics.get(topic)!.schemaName;
      const row = this.#rows.get(topic) ?? this.#add(topic, type);
      row.element.hidden = filter !== "" && !`${topic} ${type}`.toLowerCase().includes(filter);
      if (row.element === before) before = before.nextElementSibling;
      else this.#list.insertBefore(row.element, before);
      this.#follow(topic, row);
    }
  }

  #follow(topic: string, row: Row): void {
    const wanted = this.#isVisible && !row.element.hidden && (!row.isLarge || row.element.open);
    if (wanted === (row.end !== undefined)) return;
    row.end?.();
    row.end = wanted
      ? this.stream.subscribe(topic, (arrival) => {
        row.count += 1;
        row.bytes += arrival.bytes;
        if (row.opened && row.element.open) row.opened.newest = arrival;
      })
      : undefined;
  }

  #add(topic: string, type: string): Row {
    const isLarge = LARGE.has(type);
    const rate = h("span.number", { title: isLarge ? "Large messages: measured only while open" : "" }, isLarge ? "" : "…");
    const element = h("details.topic", { "data-topic-row": topic },
      h("summary", {}, h("span.topic-name", {}, topic), rate, h("span.topic-type", {}, type)));
    const row: Row = { type, element, rate, count: 0, bytes: 0, isLarge };
    element.addEventListener("toggle", () => {
      if (element.open && !row.opened) this.#open(topic, row);
      this.#follow(topic, row);
    });
    this.#rows.set(topic, row);
    return row;
  }

  #open(topic: string, row: Row): void {
    const stamp = h("span.hint");
    const tree = new MessageTree(topic, (path) => this.plot(topic, path));
    row.opened = { stamp, tree, shownMs: 0 };
    row.element.append(h("div.topic-body", {}, h("div.topic-tools", {}, stamp,
      h("button.small.publishes", { onclick: () => this.publisher.open(topic) }, "Publish …")), tree.element));
    // A latched message arrived before its row was opened.
    row.end?.();
    row.end = undefined;
  }

  #show({ element, opened }: Row): void {
    if (!opened || !element.open || element.hidden) return;
    const { newest, stamp, tree } = opened;
    if (!newest) return setText(stamp, "no message yet");
    const ageS = (performance.now() - newest.receivedMs) / 1000;
    try {
      const { value } = newest;
      const of = value.header?.stamp;
      const stamped = of ? `stamp ${of.sec}.${String(of.nanosec).padStart(9, "0").slice(0, 3)} · ` : "";
      setText(stamp, `${stamped}received ${decimal(ageS, 1)} s ago · ${newest.bytes} bytes`);
      if (newest.receivedMs !== opened.shownMs) tree.show(value);
      opened.shownMs = newest.receivedMs;
    } catch (error) {
      setText(stamp, `The message is unreadable: ${(error as Error).message}`);
    }
  }

  #measure(): void {
    const nowMs = performance.now();
    const seconds = (nowMs - this.#sinceMs) / 1000;
    this.#sinceMs = nowMs;
    for (const row of this.#rows.values()) {
      if (!row.end) continue;
      const rate = row.count / seconds;
      setText(row.rate, row.count === 0 ? "–" : `${rate >= 10 ? rate.toFixed(0) : rate.toFixed(1)} Hz · ${size(row.bytes / seconds)}`);
      row.count = row.bytes = 0;
    }
  }
}

function size(bytesPerSecond: number): string {
  if (bytesPerSecond < 1e3) return `${bytesPerSecond.toFixed(0)} B/s`;
  return bytesPerSecond < 1e6 ? `${(bytesPerSecond / 1e3).toFixed(0)} kB/s` : `${(bytesPerSecond / 1e6).toFixed(1)} MB/s`;
}
