// SPDX-License-Identifier: Apache-2.0
// Limits drawing to a share of the main thread, so that clicks are handled quickly even without a graphics card.

/** Share of the main thread's time. */
const SHARE = 1 / 3;
/** Unused time that may be saved. */
const MAX_CREDIT_MS = 20;
/** Duration above which a drawing gets fewer pixels: at its share it has ten frames per second or less. */
const SLOW_MS = 33;
const COARSER = Math.SQRT1_2, COARSEST = 0.25;
/** Number of slow, or fast, drawings in a row that change the resolution. */
const SLOW_IN_A_ROW = 3, FAST_IN_A_ROW = 60;

/** Resolution of one drawing, from COARSEST to 1. */
class Resolution {
  scale = 1;
  #slow = 0;
  #fast = 0;

  took(costMs: number): void {
    this.#slow = costMs > SLOW_MS ? this.#slow + 1 : 0;
    // It would still be fast at the next finer scale.
    this.#fast = costMs < (SLOW_MS / 2) * COARSER ** 2 ? this.#fast + 1 : 0;
    if (this.#slow >= SLOW_IN_A_ROW) this.#change(this.scale * COARSER);
    else if (this.#fast >= FAST_IN_A_ROW) this.#change(this.scale / COARSER);
  }

  #change(scale: number): void {
    // Powers of √½ may end close to 1.
    this.scale = scale > 0.99 ? 1 : Math.max(COARSEST, scale);
    this.#slow = this.#fast = 0;
  }
}

/** Grants drawing turns, first come, first served. By measured costs, it first reduces frames, then pixels. */
export class DrawingBudget {
  #waiting = new Map<object, (scale: number) => void>();
  #resolutions = new WeakMap<object, Resolution>();
  #creditMs = MAX_CREDIT_MS;
  #seenMs: number;
  #isAsked = false;

  constructor(private nowMs: () => number, private nextFrame: (call: () => void) => unknown) {
    this.#seenMs = nowMs();
  }

  /** Draw in one of the next frames, at the given resolution. A request replaces its owner's earlier one. */
  request(owner: object, draw: (scale: number) => void): void {
    this.#waiting.set(owner, draw);
    this.#ask();
  }

  /** Resolve when it is the owner's turn, for a drawing that is charged afterwards. */
  turn(owner: object): Promise<void> {
    return new Promise((resolve) => this.request(owner, () => resolve()));
  }

  /** Draw immediately, and charge the cost. */
  charge<T>(draw: () => T): T {
    const beganMs = this.nowMs();
    try {
      return draw();
    } finally {
      this.#earn();
      this.#creditMs -= this.#seenMs - beganMs;
    }
  }

  #ask(): void {
    if (this.#isAsked || this.#waiting.size === 0) return;
    this.#isAsked = true;
    this.nextFrame(() => {
      this.#isAsked = false;
      try {
        this.#serve();
      } finally {
        this.#ask();
      }
    });
  }

  #serve(): void {
    this.#earn();
    // New requests wait for the next frame.
    for (const [owner, draw] of [...this.#waiting]) {
      if (this.#creditMs <= 0) return;
      this.#waiting.delete(owner);
      const resolution = this.#resolutions.get(owner) ?? new Resolution();
      this.#resolutions.set(owner, resolution);
      const beganMs = this.nowMs();
      this.charge(() => draw(resolution.scale));
      resolution.took(this.nowMs() - beganMs);
    }
  }

  #earn(): void {
    const nowMs = this.nowMs();
    this.#creditMs = Math.min(MAX_CREDIT_MS, this.#creditMs + SHARE * (nowMs - this.#seenMs));
    this.#seenMs = nowMs;
  }
}

/** Budget of the page, which has one main thread. */
export const drawing = new DrawingBudget(() => performance.now(), (call) => requestAnimationFrame(call));
