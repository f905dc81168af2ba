// SPDX-License-Identifier: Apache-2.0
// Interfaces that a browser may lack, or refuse where it has them: used here only, and each may fail.

/** Sends "change" when something more is found missing. */
class Missing extends EventTarget {
  #reasons = new Map<string, string>();

  /** In sentences. */
  get sentences(): string[] {
    return [...this.#reasons].map(([name, reason]) => `${name}: ${reason}.`);
  }

  report(name: string, reason: string): void {
    if (this.#reasons.has(name)) return;
    this.#reasons.set(name, reason.replace(/\.$/, ""));
    this.dispatchEvent(new Event("change"));
  }
}

/** What this page has to do without. */
export const missing = new Missing();

/** Return what a function returns, or a fallback, and report why the feature is missing. */
export function attempt<T>(name: string, use: () => T, fallback: T): T {
  try {
    return use();
  } catch (error) {
    missing.report(name, reasonOf(error));
    return fallback;
  }
}

export function reasonOf(error: unknown): string {
  return error instanceof Error || (typeof DOMException !== "undefined" && error instanceof DOMException) ? error.message : String(error);
}

const SETTINGS = "Settings are not kept";

/** What is remembered across visits or, in a browser that blocks storage, as long as the page is open. */
export const storage = {
  local: new Map<string, string>(),

  get(key: string): string | undefined {
    return this.local.get(key) ?? attempt(SETTINGS, () => stores().getItem(key) ?? undefined, undefined);
  },

  set(key: string, value: string): void {
    const isStored = attempt(SETTINGS, () => (stores().setItem(key, value), true), false);
    if (isStored) this.local.delete(key);
    else this.local.set(key, value);
  },

  remove(key: string): void {
    this.local.delete(key);
    attempt(SETTINGS, () => stores().removeItem(key), undefined);
  },

  /** What was stored as JSON; undefined if nothing was, or something else. */
  read(key: string): unknown {
    try {
      return JSON.parse(this.get(key) ?? "null") ?? undefined;
    } catch {
      return undefined;
    }
  },
};

function stores(): Storage {
  const { localStorage } = globalThis;
  if (!localStorage) throw new Error("this browser has no storage");
  return localStorage;
}

/** The gamepads that are connected. */
export function gamepads(): Gamepad[] {
  return attempt("No gamepads", () => {
    if (typeof navigator.getGamepads !== "function") {
      throw new Error(globalThis.isSecureContext ? "this browser has no interface for them" : "this browser offers them only over https or on this machine");
    }
    return [...navigator.getGamepads()].filter((each): each is Gamepad => Boolean(each?.connected));
  }, []);
}

/** What needs WebGL; undefined where there is none. */
export function withWebGL<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    missing.report("No scene", "this browser has no WebGL");
    return undefined;
  }
}

/** Call back when full screen is left. */
export function whenFullScreenLeft(call: () => void): void {
  attempt("Leaving full screen does not stop", () => {
    document.addEventListener("fullscreenchange", () => document.fullscreenElement ?? call());
    matchMedia("(display-mode: fullscreen)").addEventListener("change", ({ matches }) => matches || call());
  }, undefined);
}
