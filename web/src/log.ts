// SPDX-License-Identifier: Apache-2.0
// Log of all nodes, newest last.

import { h, oncePerFrame } from "./dom";
import type { Message, Stream } from "./stream";

/** Number of lines that the server keeps. */
const MOST = 1000;
/** Distance from the end at which the log follows new lines, pixels. */
const END_PX = 40;
const LEVEL: Record<number, string> = { 10: "debug", 20: "info", 30: "warn", 40: "error", 50: "error" };

export class Log {
  readonly element: HTMLElement;
  #lines = h("ol.log", { "aria-live": "off", tabindex: 0, "aria-label": "Log" });
  #hint = h("p.hint.nothing", {}, "No messages yet.");
  #waiting: Message[] = [];
  #known = new Set<string>();
  #least = 20;
  /** Whether the newest line is kept in view: until the user scrolls away from it, even if the log's height changes. */
  #isFollowing = true;
  #heightPx = 0;
  #refresh = oncePerFrame(() => this.#show());

  constructor(stream: Stream) {
    const filter = h("select", { "aria-label": "Minimum severity", onchange: () => this.#filter(Number(filter.value)) },
      h("option", { value: 20 }, "all messages"), h("option", { value: 30 }, "warnings and errors"), h("option", { value: 40 }, "errors"));
    this.element = h("div.tab-body", {}, h("div.tab-tools", {}, filter), this.#hint, this.#lines);
    this.#lines.addEventListener("scroll", () => this.#onScroll());
    new ResizeObserver(() => this.#onResize()).observe(this.#lines);
    stream.addEventListener("seek", () => this.#clear());
    stream.subscribe("/rosout", ({ value }) => {
      // After a reconnection the last messages are repeated.
      const identity = `${value.stamp.sec}.${value.stamp.nanosec} ${value.name} ${value.msg}`;
      if (this.#known.has(identity)) return;
      this.#known.add(identity);
      if (this.#known.size > 2 * MOST) this.#known.delete(this.#known.values().next().value!);
      this.#waiting.push(value);
      if (this.#waiting.length > MOST) this.#waiting.shift();
      this.#refresh();
    });
  }

  #clear(): void {
    this.#known.clear();
    this.#waiting = [];
    this.#lines.replaceChildren();
  }

  #filter(least: number): void {
    this.#least = least;
    for (const line of this.#lines.children) (line as HTMLElement).hidden = Number((line as HTMLElement).dataset["level"]) < least;
    this.#follow();
  }

  #show(): void {
    this.#hint.hidden = true;
    // Lines from before the subscription arrive node by node.
    const lines = this.#waiting.splice(0).sort((a, b) => a.stamp.sec - b.stamp.sec || a.stamp.nanosec - b.stamp.nanosec);
    for (const { stamp, level, name, msg } of lines) {
      const time = new Date(stamp.sec * 1000).toLocaleTimeString([], { hour12: false });
      const line = h("li", { class: LEVEL[level] ?? "info", "data-level": level },
        h("time", {}, time), level >= 30 && h("span.level", {}, level >= 40 ? "Error" : "Warning"),
        h("span.name", {}, name), h("span.text", {}, msg));
      line.hidden = level < this.#least;
      this.#lines.append(line);
    }
    while (this.#lines.childElementCount > MOST) this.#lines.firstElementChild!.remove();
    this.#follow();
  }

  #onScroll(): void {
    const { scrollHeight, scrollTop, clientHeight } = this.#lines;
    // The event of our own scrolling may arrive after the log was resized.
    if (clientHeight === this.#heightPx) this.#isFollowing = scrollHeight - scrollTop - clientHeight < END_PX;
  }

  #onResize(): void {
    this.#heightPx = this.#lines.clientHeight;
    this.#follow();
  }

  #follow(): void {
    if (this.#isFollowing) this.#lines.scrollTop = this.#lines.scrollHeight;
  }
}
