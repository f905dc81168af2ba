// SPDX-License-Identifier: Apache-2.0
// How the connection to the server ended, and when: a clock time says more than "reconnecting" for ever.

/** Of WebSocket: the other side goes away, and says so. */
const GOING_AWAY = 1001;
const SERVER_ENDED = "The server has ended";

export class LostLink {
  #sinceMs?: number;
  #reason = "";

  /** Note the end of a connection that was open; attempts that fail later change nothing. */
  lost(nowMs: number, code: number, reason: string): void {
    if (this.#sinceMs !== undefined) return;
    this.#sinceMs = nowMs;
    this.#reason = code === GOING_AWAY ? reason.replace(/\.$/, "") || SERVER_ENDED : "";
  }

  found(): void {
    this.#sinceMs = undefined;
    this.#reason = "";
  }

  /** For how long there has been none, s; 0 while there is one, or was none yet. */
  ageS(nowMs: number): number {
    return this.#sinceMs === undefined ? 0 : Math.max(1, (nowMs - this.#sinceMs) / 1000);
  }

  /** What has happened, in words; empty while there is a connection, or was none yet. */
  get text(): string {
    if (this.#sinceMs === undefined) return "";
    const at = new Date(this.#sinceMs).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    return this.#reason ? `${this.#reason} (${at})` : `No connection since ${at}`;
  }
}
