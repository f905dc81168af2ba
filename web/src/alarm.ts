// SPDX-License-Identifier: Apache-2.0
// Sound and vibration at STOP and when the link to the server or the vehicle breaks. Off by default.

import { attempt, storage } from "./browser_features";
import { h } from "./dom";
import type { Helm } from "./helm";
import type { Links } from "./links";

const STORED = "alarm";
const TONE_HZ = 660, TONE_S = 0.4;
const VIBRATION_MS = [200, 100, 200];

export class Alarm {
  readonly element: HTMLElement;
  #wanted = h("input", { type: "checkbox", checked: storage.get(STORED) === "on" });
  #wasBroken = false;

  constructor(helm: Helm, private links: Links) {
    this.element = h("label.check", {}, this.#wanted, "Sound and vibration at STOP and when a link is lost");
    this.#wanted.addEventListener("change", () => {
      storage.set(STORED, this.#wanted.checked ? "on" : "off");
      this.#give(); // as a test; browsers also need a press before they allow sound
    });
    helm.addEventListener("stop", () => this.#give());
    links.addEventListener("change", () => this.#look());
  }

  #look(): void {
    const isBroken = this.links.all.some(({ level }) => level === "error");
    if (isBroken && !this.#wasBroken) this.#give();
    this.#wasBroken = isBroken;
  }

  #give(): void {
    if (!this.#wanted.checked) return;
    navigator.vibrate?.(VIBRATION_MS);
    attempt("No sound", () => {
      const context = new AudioContext();
      const tone = new OscillatorNode(context, { frequency: TONE_HZ });
      tone.connect(context.destination);
      tone.onended = () => void context.close();
      tone.start();
      tone.stop(context.currentTime + TONE_S);
    }, undefined);
  }
}
