// SPDX-License-Identifier: Apache-2.0
// The newest values of some quantities of one vehicle, in words.

import { decimal } from "./dom";
import type { Subject } from "./fleet";
import { QUANTITIES } from "./quantities";
import type { Stream } from "./stream";

const STALE_MS = 3_000;

export class Readings {
  #latest = new Map<string, { text: string; receivedMs: number }>();
  #ends: (() => void)[] = [];
  #followed = "";

  /** Of a value that comes more often than each `periodMs` some are left out. */
  constructor(private stream: Stream, private names: string[], private periodMs: number) {}

  /** Subscribe to what the vehicle has of the quantities, if that is not so already. */
  follow({ prefix, vehicle }: Subject, topics: Map<string, string>): void {
    const chosen = QUANTITIES.filter(({ name, flying }) => this.names.includes(name) && (!flying || vehicle?.axes.includes("z") !== false))
      .flatMap((quantity) => quantity.sources.filter(({ topic }) => topics.has(topic)).map((source) => ({ quantity, source })));
    const followed = [prefix, ...chosen.map(({ source }) => source.topic)].join();
    if (followed === this.#followed) return;
    this.close();
    this.#followed = followed;
    this.#ends = chosen.map(({ quantity: { name, places, unit }, source }) => this.stream.subscribe(prefix + source.topic, (arrival) => {
      const known = this.#latest.get(name);
      if (known && arrival.receivedMs - known.receivedMs < this.periodMs) return;
      const value = source.read(arrival.value);
      if (value !== undefined) this.#latest.set(name, { text: `${decimal(value, Math.min(1, places))} ${unit}`, receivedMs: arrival.receivedMs });
    }));
  }

  /** A value with its unit; undefined where there is none, or none any more. */
  text(name: string): string | undefined {
    const latest = this.#latest.get(name);
    return latest && (this.stream.isRecording || performance.now() - latest.receivedMs < STALE_MS) ? latest.text : undefined;
  }

  close(): void {
    for (const end of this.#ends) end();
    this.#ends = [];
    this.#latest.clear();
    this.#followed = "";
  }
}
