// SPDX-License-Identifier: Apache-2.0
// Reason and time of a connection's end. A clock time is more useful than a permanent "reconnecting".

/** WebSocket close code: the other side is going away. */
const GOING_AWAY = 1001;
const SERVER_ENDED = "The server has ended";

export class LostLink {
  #sinceMs?: number;
  #reason = "";

  /** Record the end of an open connection. Later failed attempts change nothing. */
  lost(nowMs: number, code: number, reason: string): void {
    if (this.#sinceMs !== undefined) return;
    this.#sinceMs = nowMs;
    this.#reason = code === GOING_AWAY ? reason.replace(/\.$/, "") || SERVER_ENDED : "";
  }

  found(): void {
    this.#sinceMs = undefined;
    this.#reason = "";
  }

  /** Time without a connection, s; 0 while there is one, or before the first. */
  ageS(nowMs: number): number {
    return this.#sinceMs === undefined ? 0 : Math.max(1, (nowMs - this.#sinceMs) / 1000);
  }

  /** Description of the end; empty while connected, or before the first connection. */
  get text(): string {
    if (this.#sinceMs === undefined) return "";
    const at = new Date(this.#sinceMs).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    return this.#reason ? `${this.#reason} (${at})` : `No connection since ${at}`;
  }
}
