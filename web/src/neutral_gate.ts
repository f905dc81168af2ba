// SPDX-License-Identifier: Apache-2.0
// Unintended inputs: a trigger that rests at one end, a lever left halfway. Inputs count only after they were at neutral.

/** Passes the values of inputs, each once it has been 0 since it was selected and since the gate was closed. */
export class NeutralGate<Name> {
  #sources = new Map<Name, string>();
  #open = new Set<Name>();

  /** Require all inputs to return to neutral first. */
  close(): void {
    this.#sources.clear();
    this.#open.clear();
  }

  /** Return the value if it counts, else 0. `source` identifies the input and its direction. */
  pass(name: Name, source: string, value: number): number {
    if (this.#sources.get(name) !== source) {
      this.#sources.set(name, source);
      this.#open.delete(name);
    }
    if (value === 0) this.#open.add(name);
    return this.#open.has(name) ? value : 0;
  }

  /** Inputs that have not been at neutral yet. */
  get closed(): Name[] {
    return [...this.#sources.keys()].filter((name) => !this.#open.has(name));
  }
}
