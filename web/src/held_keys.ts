// SPDX-License-Identifier: Apache-2.0
// Held keys, as far as a browser reports them: macOS reports no release while Cmd is down.

/** Parts of a keyboard event. */
export interface Key {
  code: string;
  key: string;
  repeat: boolean;
  ctrlKey: boolean;
  altKey: boolean;
  metaKey: boolean;
}

/** With one of these, or a menu, the release of another key may never be reported. */
const MODIFIERS = new Set(["Alt", "AltGraph", "CapsLock", "ContextMenu", "Control", "Fn", "Hyper", "Meta", "OS", "Shift", "Super"]);

export function isModifier({ key, ctrlKey, altKey, metaKey }: Omit<Key, "code" | "repeat">): boolean {
  return ctrlKey || altKey || metaKey || MODIFIERS.has(key);
}

export class HeldKeys {
  #held = new Set<string>();

  get codes(): Iterable<string> {
    return this.#held;
  }

  /** Handle a pressed key. Return whether the set of active keys has changed. */
  down(event: Key): boolean {
    const { code, repeat } = event;
    if (isModifier(event)) return this.letGo();
    // A repeating key was pressed before the helm was taken, or before all keys were released.
    if (repeat || this.#held.has(code)) return false;
    this.#held.add(code);
    return true;
  }

  /** Handle a released key. Return whether the set of active keys has changed. */
  up({ code, key }: Pick<Key, "code" | "key">): boolean {
    return MODIFIERS.has(key) ? this.letGo() : this.#held.delete(code);
  }

  /** Release all keys: each is active again when it is pressed anew. Return whether any was held. */
  letGo(): boolean {
    const hadAny = this.#held.size > 0;
    this.#held.clear();
    return hadAny;
  }
}
