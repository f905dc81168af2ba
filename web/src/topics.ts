// SPDX-License-Identifier: Apache-2.0
// All topics with their types and rates. Measured while the list is looked at, but for pictures, which are a lot of data.

import { h, setText } from "./dom";
import type { Stream } from "./stream";

const WINDOW_MS = 2_000;
const PICTURES = new Set(["sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage", "sensor_msgs/msg/PointCloud2"]);

interface Row {
  element: HTMLElement;
  rate: HTMLElement;
  count: number;
  bytes: number;
  end?: () => void;
  isMeasured: boolean;
}

export class Topics {
  readonly element: HTMLElement;
  #body = h("tbody");
  #filter: HTMLInputElement;
  #rows = new Map<string, Row>();
  #isVisible = false;
  #sinceMs = performance.now();

  constructor(private stream: Stream) {
    this.#filter = h("input", { type: "search", placeholder: "Filter topics", "aria-label": "Filter topics", oninput: () => this.#arrange() });
    this.element = h("div.tab-body", {}, h("div.tab-tools", {}, this.#filter),
      h("div.scroll", {}, h("table.topics", {}, h("thead", {}, h("tr", {}, h("th", {}, "topic"), h("th.number", {}, "rate"))), this.#body)));
    stream.addEventListener("graph", () => this.#arrange());
    new IntersectionObserver((entries) => {
      this.#isVisible = entries.some((entry) => entry.isIntersecting);
      this.#arrange();
    }).observe(this.element);
    setInterval(() => this.#show(), WINDOW_MS);
  }

  #arrange(): void {
    const filter = this.#filter.value.trim().toLowerCase();
    for (const [topic, row] of this.#rows) {
      if (!this.stream.topics.has(topic)) {
        row.end?.();
        row.element.remove();
        this.#rows.delete(topic);
      }
    }
    for (const topic of [...this.stream.topics.keys()].sort()) {
      const type = this.stream.topics.get(topic)!.schemaName;
      const row = this.#rows.get(topic) ?? this.#add(topic, type);
      row.element.hidden = filter !== "" && !`${topic} ${type}`.toLowerCase().includes(filter);
      this.#body.append(row.element);
      const wanted = this.#isVisible && !row.element.hidden && row.isMeasured;
      if (wanted && !row.end) {
        row.end = this.stream.subscribe(topic, ({ bytes }) => {
          row.count += 1;
          row.bytes += bytes;
        });
      } else if (!wanted && row.end) {
        row.end();
        row.end = undefined;
      }
    }
  }

  #add(topic: string, type: string): Row {
    const rate = h("td.number");
    const isMeasured = !PICTURES.has(type);
    const row: Row = { element: h("tr"), rate, count: 0, bytes: 0, isMeasured };
    const measure = h("button.link", { title: "Pictures are a lot of data, so they are measured on request" }, "measure");
    measure.addEventListener("click", () => {
      row.isMeasured = true;
      rate.replaceChildren("…");
      this.#arrange();
    });
    rate.append(isMeasured ? "…" : measure);
    row.element.append(h("td", {}, h("div.topic-name", {}, topic), h("div.topic-type", {}, type)), rate);
    this.#rows.set(topic, row);
    return row;
  }

  #show(): void {
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
