// SPDX-License-Identifier: Apache-2.0
// Newest values of some quantities of one vehicle, as text.

import type { Subject } from "./fleet";
import { quantitiesOf, textOf } from "./quantities";
import type { Stream, When } from "./stream";

export class Readings {
  #latest = new Map<string, When & { value: number; text: string }>();
  #ends: (() => void)[] = [];
  #followed = "";

  /** At most one value per `periodMs` is used. */
  constructor(private stream: Stream, private names: string[], private periodMs: number) {}

  /** Subscribe to the vehicle's sources of the quantities, if that is not done already. */
  follow({ prefix, vehicle }: Subject, topics: Map<string, string>): void {
    const chosen = quantitiesOf(vehicle, topics).filter(({ name }) => this.names.includes(name))
      .flatMap((quantity) => quantity.sources.filter(({ topic }) => topics.has(topic)).map((source) => ({ quantity, source })));
    const followed = [prefix, ...chosen.map(({ source }) => source.topic)].join();
    if (followed === this.#followed) return;
    this.close();
    this.#followed = followed;
    this.#ends = chosen.map(({ quantity, quantity: { name, unit }, source }) => this.stream.subscribe(prefix + source.topic, (arrival) => {
      const known = this.#latest.get(name);
      if (known && arrival.receivedMs - known.receivedMs < this.periodMs) return;
      const value = source.read(arrival.value);
      if (value !== undefined) this.#latest.set(name, { value, text: `${textOf(quantity, value, 1)} ${unit}`, receivedMs: arrival.receivedMs, timeS: arrival.timeS });
    }));
  }

  /** Newest value, as a number and with its unit, and the time without one since then; undefined without a value. */
  of(name: string): { value: number; text: string; silentS: number } | undefined {
    const latest = this.#latest.get(name);
    return latest && { ...latest, silentS: this.stream.silentS(latest) };
  }

  close(): void {
    for (const end of this.#ends) end();
    this.#ends = [];
    this.#latest.clear();
    this.#followed = "";
  }
}
