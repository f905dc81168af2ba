// SPDX-License-Identifier: Apache-2.0
// The last state of a vehicle whose bridge has left: a bridge that ends sends stop as its last command.

export class Departure {
  #sinceMs?: number;
  /** The last state in few words, and the reason; empty while a vehicle is there, or was not there yet. */
  text = "";
  more = "";

  /** Note that the last vehicle has left. `isSilent`: its bridge had been silent before, and so has not ended by itself. */
  left(nowMs: number, movement: string, isSilent: boolean): void {
    if (this.#sinceMs !== undefined) return;
    this.#sinceMs = nowMs;
    this.text = isSilent ? "Gone" : movement === "Landed" ? movement : "Stopped";
    this.more = isSilent ? "its bridge was silent before" : "its bridge has ended, and sent stop as its last command";
  }

  came(): void {
    this.#sinceMs = undefined;
    this.text = this.more = "";
  }

  /** Time without a vehicle, s; 0 while there is one, or before the first. */
  ageS(nowMs: number): number {
    return this.#sinceMs === undefined ? 0 : Math.max(1, (nowMs - this.#sinceMs) / 1000);
  }
}
