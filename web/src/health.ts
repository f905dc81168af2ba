// SPDX-License-Identifier: Apache-2.0
// Diagnostics as lamps, each with its message.

import { h, panel, setText } from "./dom";
import type { Helm } from "./helm";
import type { Stream } from "./stream";

export const LEVELS = ["ok", "warn", "error", "stale"] as const;
export type Level = (typeof LEVELS)[number];
/** State of a server without a client, which is no problem. */
const UNUSED = "waiting for a peer";
const WORD: Record<Level, string> = { ok: "OK", warn: "Warning", error: "Error", stale: "Silent" };
/** Diagnostics arrive once per second. After several missing ones, a source is silent. */
export const DIAGNOSTICS_SILENT_S = 3;
const FORGOTTEN_MS = 60_000;
const MOST = 64;

interface Status {
  element: HTMLElement;
  lamp: HTMLElement;
  message: HTMLElement;
  values: HTMLElement;
  level: Level;
  text: string;
  receivedMs: number;
}

/** Sends "change" when the worst level changes. */
export class Health extends EventTarget {
  readonly element: HTMLElement;
  #list = h("div.lamps");
  #nothing = h("p.hint.nothing", {}, "No diagnostics yet.");
  #statuses = new Map<string, Status>();
  #last = "";

  constructor(private stream: Stream, private helm: Helm) {
    super();
    this.element = panel("health", "Health", [], this.#nothing, this.#list);
    stream.subscribe("/diagnostics", ({ value }) => {
      for (const { name, level, message, values } of value.status) {
        // level is a byte, which some decoders return as a one-element array.
        this.#take(name, LEVELS[Number(level)] ?? "stale", message, values);
      }
      this.#sum();
    });
    setInterval(() => this.#age(), 1000);
    stream.addEventListener("status", () => this.#age());
  }

  /** Whether the server is gone, or does not respond. */
  get #isLost(): boolean {
    return this.stream.status !== "open" || this.helm.silentSeconds > 0;
  }

  /** The worst lamp with its message and source. */
  get verdict(): { level: Level; text: string; source: string } {
    const all = [...this.#statuses];
    if (this.#isLost) return { level: "stale", text: "Unknown", source: all.length > 0 ? "no connection" : "" };
    if (all.length === 0) return { level: "stale", text: "No diagnostics yet", source: "" };
    const worst = worstFirst(all);
    const [first] = worst;
    if (!first) return { level: "ok", text: all.length === 1 ? "OK" : `All ${all.length} OK`, source: "" };
    const more = worst.length > 1 ? ` and ${worst.length - 1} more` : "";
    return { level: first[1].level, text: first[1].text, source: `${shortName(first[0])}${more}` };
  }

  #take(name: string, level: Level, text: string, values: { key: string; value: string }[]): void {
    let status = this.#statuses.get(name);
    if (!status) {
      if (this.#statuses.size >= MOST) return;
      status = this.#add(name);
    }
    status.receivedMs = performance.now();
    this.#show(status, level, text);
    if (level === "ok" && text.startsWith(UNUSED)) {
      status.lamp.className = "lamp"; // grey
      status.lamp.title = status.lamp.ariaLabel = "Unused";
    }
    if ((status.element as HTMLDetailsElement).open || !status.values.hasChildNodes()) {
      status.values.replaceChildren(...values.flatMap(({ key, value }) => [h("dt", {}, key), h("dd", {}, value)]));
    }
  }

  #add(name: string): Status {
    const lamp = h("span.lamp", { role: "img" });
    const message = h("span.message");
    const values = h("dl.values");
    const element = h("details.status", { "data-status": name },
      h("summary", {}, lamp, h("span.name", {}, shortName(name)), message), values);
    const status: Status = { element, lamp, message, values, level: "stale", text: "", receivedMs: 0 };
    this.#statuses.set(name, status);
    const names = [...this.#statuses.keys()].sort();
    this.#list.replaceChildren(...names.map((each) => this.#statuses.get(each)!.element));
    return status;
  }

  #show(status: Status, level: Level, text: string): void {
    status.level = level;
    status.text = text;
    status.lamp.className = `lamp ${level}`;
    status.lamp.title = status.lamp.ariaLabel = WORD[level];
    setText(status.message, text);
  }

  #age(): void {
    if (this.stream.isRecording) return; // which may be paused
    const nowMs = performance.now();
    for (const [name, status] of this.#statuses) {
      const ageMs = nowMs - status.receivedMs;
      const isLost = this.#isLost;
      if (ageMs > FORGOTTEN_MS && !isLost) {
        status.element.remove();
        this.#statuses.delete(name);
      } else if (ageMs > 1000 * DIAGNOSTICS_SILENT_S || isLost) {
        this.#show(status, "stale", `silent for ${Math.round(ageMs / 1000)} s`);
      }
    }
    this.#sum();
  }

  #sum(): void {
    this.#nothing.hidden = this.#statuses.size > 0;
    const verdict = Object.values(this.verdict).join("\n");
    if (verdict === this.#last) return;
    this.#last = verdict;
    this.dispatchEvent(new Event("change"));
  }
}

/** Sources that are not OK. A silent one may have ended, which is worse than a warning elsewhere. */
export function worstFirst<T extends { level: Level }>(sources: readonly [string, T][]): [string, T][] {
  return (["error", "stale", "warn"] as const).flatMap((level) => sources.filter(([, each]) => each.level === level));
}

/** Name without its leading slash. */
function shortName(name: string): string {
  return name.replace(/^\//, "");
}
