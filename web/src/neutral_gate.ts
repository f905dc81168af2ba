// SPDX-License-Identifier: Apache-2.0
// Inputs nobody gives: a trigger that rests at one end, a lever left halfway. None counts until it was at neutral once.

/** Passes the values of inputs, each once it has been 0 since it was chosen and since the gate was closed. */
export class NeutralGate<Name> {
  #sources = new Map<Name, string>();
  #open = new Set<Name>();

  /** Have all inputs return to neutral first. */
  close(): void {
    this.#sources.clear();
    this.#open.clear();
  }

  /** Return the value if it counts, else 0. `source` says which input it is read from, and how. */
  pass(name: Name, source: string, value: number): number {
    if (this.#sources.get(name) !== source) {
      this.#sources.set(name, source);
      this.#open.delete(name);
    }
    if (value === 0) this.#open.add(name);
    return this.#open.has(name) ? value : 0;
  }

  /** The inputs that have not been at neutral yet. */
  get closed(): Name[] {
    return [...this.#sources.keys()].filter((name) => !this.#open.has(name));
  }
}
