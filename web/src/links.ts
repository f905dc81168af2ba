// SPDX-License-Identifier: Apache-2.0
// Links between the page and the vehicle: page to server, server to bridge, bridge to vehicle, each with its age.

import type { Fleet } from "./fleet";
import type { Helm } from "./helm";
import { DIAGNOSTICS_SILENT_S, LEVELS, type Level } from "./health";
import type { Stream } from "./stream";

export interface Link {
  name: string;
  level: Level;
  /** State, as text. */
  text: string;
  /** Time since the last data, s. */
  ageS?: number;
}

const PERIOD_MS = 500;
/** Less than the time after which middleware removes a node that is killed, 10 s or more. One that ends leaves at once. */
const LEAST_LEASE_S = 6;
/** States of a working link in bridges and servers. */
const WORKING = new Set(["connected", "sending", "listening", "serving"]);
/** Conditions of a bridge's cameras, the cause first. */
const NO_PICTURES = ["video_port", "no_video", "video_format"];

interface Report {
  receivedMs: number;
  level: Level;
  message: string;
  values: Map<string, string>;
}

/** Sends "change" when the level of a link of the chosen vehicle changes. */
export class Links extends EventTarget {
  #reports = new Map<string, Report>();
  #last = "";

  constructor(private stream: Stream, private helm: Helm, private fleet: Fleet) {
    super();
    stream.subscribe("/diagnostics", ({ value, receivedMs }) => {
      for (const { name, level, message, values } of value.status) {
        this.#reports.set(name.replace(/^\//, ""), {
          receivedMs, level: LEVELS[Number(level)] ?? "stale", message,
          values: new Map(values.map((each: { key: string; value: string }) => [each.key, each.value])),
        });
      }
      this.#notice();
    });
    for (const source of [stream, helm, fleet]) for (const event of ["status", "change"]) source.addEventListener(event, () => this.#notice());
    setInterval(() => this.#notice(), PERIOD_MS);
  }

  /** Links of the chosen vehicle, from the page on. Links behind a broken one are not listed. */
  get all(): Link[] {
    return this.of(this.fleet.subject.prefix, this.fleet.subject.vehicle?.node);
  }

  /** Reason why steering would not reach the chosen vehicle from the server; empty if it does. */
  get problem(): string {
    const broken = this.all.slice(1).find(({ level }) => level === "error");
    return broken ? `${broken.name}: ${broken.text}` : "";
  }

  of(prefix: string, node: string | undefined): Link[] {
    const page = this.#page();
    if (page.level === "error" || !node) return [page];
    const report = this.#report(prefix, node);
    if (!report) return [page];
    const ageS = (performance.now() - report.receivedMs) / 1000;
    const bridge: Link = ageS > DIAGNOSTICS_SILENT_S
      ? { name: node, level: "error", text: "silent", ageS }
      : { name: node, level: "ok", text: "running", ageS };
    return bridge.level === "error" ? [page, bridge] : [page, bridge, vehicle(report, ageS)];
  }

  /** Whether a node that has left had been silent before, so it has not ended by itself. */
  wasSilent(prefix: string, node: string | undefined): boolean {
    const report = node ? this.#report(prefix, node) : undefined;
    return report !== undefined && performance.now() - report.receivedMs > 1000 * LEAST_LEASE_S;
  }

  /** Why its bridge publishes no picture, and what to do; empty if it does not report that. */
  lacksPictures(prefix: string, node: string | undefined): string {
    const report = node ? this.#report(prefix, node) : undefined;
    const isNew = report && performance.now() - report.receivedMs < 1000 * DIAGNOSTICS_SILENT_S;
    return isNew ? NO_PICTURES.map((key) => report.values.get(key)).find(Boolean) ?? "" : "";
  }

  #report(prefix: string, node: string): Report | undefined {
    const name = `${prefix}${node}: `.replace(/^\//, "");
    return [...this.#reports].find(([each]) => `${each}: `.startsWith(name))?.[1];
  }

  #page(): Link {
    const { status, refusal, limit } = this.stream;
    const name = "server";
    if (refusal) return { name, level: "error", text: "Link refused" };
    if (status !== "open") return { name, level: "error", text: limit || this.helm.link.text || "Connecting …" };
    const { silentSeconds } = this.helm;
    if (silentSeconds) return { name, level: "error", text: "Not responding", ageS: silentSeconds };
    return { name, level: "ok", text: this.stream.isRecording ? "a recording" : "connected", ageS: this.helm.ageSeconds };
  }

  #notice(): void {
    const sum = this.all.map(({ name, level, text }) => `${name} ${level} ${text}`).join();
    if (sum === this.#last) return;
    this.#last = sum;
    this.dispatchEvent(new Event("change"));
  }
}

/** The last link, as reported by the bridge. Its own warnings, such as dropped input, do not prevent steering. */
function vehicle({ level, message, values }: Report, ageS: number): Link {
  const state = values.get("state");
  const silentS = Number(values.get("peer_silent_s") || 0);
  const name = "vehicle";
  if (state === undefined) return { name, level, text: message };
  if (!WORKING.has(state)) return { name, level: "error", text: values.get("last_error") ? `${state}: ${values.get("last_error")}` : state };
  if (/silent for \d/.test(message)) return { name, level: "error", text: "silent", ageS: silentS };
  return { name, level: "ok", text: state, ageS: silentS + ageS };
}
