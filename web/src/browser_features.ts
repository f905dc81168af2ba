// SPDX-License-Identifier: Apache-2.0
// Interfaces that a browser may lack, or refuse. They are used only here, and each may fail.

/** Sends "change" when another missing feature is detected. */
class Missing extends EventTarget {
  #reasons = new Map<string, string>();

  /** As sentences. */
  get sentences(): string[] {
    return [...this.#reasons].map(([name, reason]) => `${name}: ${reason}.`);
  }

  report(name: string, reason: string): void {
    if (this.#reasons.has(name)) return;
    this.#reasons.set(name, reason.replace(/\.$/, ""));
    this.dispatchEvent(new Event("change"));
  }
}

/** Features that this page does not have in this browser. */
export const missing = new Missing();

/** Return the result of a function, or a fallback, and report why the feature is missing. */
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

const SETTINGS = "Settings are not saved";

/** Settings kept across visits or, if a browser blocks storage, while the page is open. */
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

  /** Stored JSON; undefined if there is none, or it is invalid. */
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

/** Connected gamepads. */
export function gamepads(): Gamepad[] {
  return attempt("No gamepads", () => {
    if (typeof navigator.getGamepads !== "function") {
      throw new Error(globalThis.isSecureContext ? "this browser does not support gamepads" : "this browser supports gamepads only over https or on this machine");
    }
    return [...navigator.getGamepads()].filter((each): each is Gamepad => Boolean(each?.connected));
  }, []);
}

/** Run a function that needs WebGL; undefined without WebGL. */
export function withWebGL<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    missing.report("No scene", "this browser does not support WebGL");
    return undefined;
  }
}

/** Call back when full-screen mode ends. */
export function whenFullScreenLeft(call: () => void): void {
  attempt("Leaving full screen does not trigger STOP", () => {
    document.addEventListener("fullscreenchange", () => document.fullscreenElement ?? call());
    matchMedia("(display-mode: fullscreen)").addEventListener("change", ({ matches }) => matches || call());
  }, undefined);
}

/** Replace a browser's language that is none, such as en-US@posix of LANG=C, with which Intl refuses to format numbers. */
export function mendLanguage(): void {
  try {
    Intl.getCanonicalLocales(navigator.language);
  } catch {
    Object.defineProperty(navigator, "language", { configurable: true, value: "en" });
  }
}

/** Return whether all numbers of points and quaternions are finite. */
export function areFinite(...parts: Record<string, unknown>[]): boolean {
  return parts.every((part) => Object.values(part).every(Number.isFinite));
}
