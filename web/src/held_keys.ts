// SPDX-License-Identifier: Apache-2.0
// The keys that are held, as far as a browser reports it: macOS reports no release while Cmd is down.

/** What a keyboard event has. */
export interface Key {
  code: string;
  key: string;
  repeat: boolean;
  ctrlKey: boolean;
  altKey: boolean;
  metaKey: boolean;
}

/** With any of them, or a menu, the release of another key may never be reported. */
const MODIFIERS = new Set(["Alt", "AltGraph", "CapsLock", "ContextMenu", "Control", "Fn", "Hyper", "Meta", "OS", "Shift", "Super"]);

export function isModifier({ key, ctrlKey, altKey, metaKey }: Omit<Key, "code" | "repeat">): boolean {
  return ctrlKey || altKey || metaKey || MODIFIERS.has(key);
}

export class HeldKeys {
  #held = new Set<string>();

  get codes(): Iterable<string> {
    return this.#held;
  }

  /** Take a key that goes down. Return whether other keys count from now on. */
  down(event: Key): boolean {
    const { code, repeat } = event;
    if (isModifier(event)) return this.letGo();
    // A key that repeats was pressed before: before the helm was taken, or before all were let go.
    if (repeat || this.#held.has(code)) return false;
    this.#held.add(code);
    return true;
  }

  /** Take a key that goes up. Return whether other keys count from now on. */
  up({ code, key }: Pick<Key, "code" | "key">): boolean {
    return MODIFIERS.has(key) ? this.letGo() : this.#held.delete(code);
  }

  /** Let go of all keys: each counts again when it is pressed anew. Return whether any was held. */
  letGo(): boolean {
    const hadAny = this.#held.size > 0;
    this.#held.clear();
    return hadAny;
  }
}
