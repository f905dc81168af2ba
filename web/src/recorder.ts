// SPDX-License-Identifier: Apache-2.0
// The recorder's button.

import { h } from "./dom";
import type { Stream } from "./stream";

const SERVICE = "/web_bridge/record";

export class Recorder {
  readonly element: HTMLButtonElement;
  #folder = "";

  constructor(private stream: Stream, private say: (text: string) => void) {
    this.element = h("button.record", { onclick: () => void this.#toggle(), "aria-pressed": "false" }, h("span.dot"), h("span.label", {}, "Record"));
    stream.subscribe("/web_bridge/recording", ({ value }) => {
      this.#folder = value.data;
      this.#show();
    });
    stream.addEventListener("graph", () => this.#show());
  }

  #show(): void {
    this.element.hidden = !this.stream.services.has(SERVICE);
    this.element.setAttribute("aria-pressed", String(this.#folder !== ""));
    this.element.querySelector(".label")!.textContent = this.#folder ? "Stop" : "Record";
    this.element.title = this.#folder ? `Recording into ${this.#folder}` : "Record all topics into a bag, where web_bridge runs";
  }

  async #toggle(): Promise<void> {
    this.element.disabled = true;
    try {
      const { message } = await this.stream.call(SERVICE, { data: this.#folder === "" });
      this.say(message);
    } catch (error) {
      this.say((error as Error).message);
    }
    this.element.disabled = false;
  }
}
