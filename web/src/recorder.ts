// SPDX-License-Identifier: Apache-2.0
// Button of the recorder.

import { h } from "./dom";
import type { Stream } from "./stream";

export class Recorder {
  readonly element: HTMLButtonElement;
  #folder = "";
  #topic = "";

  constructor(private stream: Stream, private say: (text: string) => void) {
    this.element = h("button.record", { onclick: () => void this.#toggle(), "aria-pressed": "false" }, h("span.dot"), h("span.label", {}, "Record"));
    stream.addEventListener("graph", () => {
      this.#listen();
      this.#show();
    });
  }

  /** Subscribe to the recording state of this page's server, once its name is known. */
  #listen(): void {
    if (this.#topic || !this.stream.node) return;
    this.#topic = `${this.stream.node}/recording`;
    this.stream.subscribe(this.#topic, ({ value }) => {
      this.#folder = value.data;
      this.stream.dispatchEvent(new CustomEvent("recording", { detail: this.#folder }));
      this.#show();
    });
  }

  get #service(): string {
    return `${this.stream.node}/record`;
  }

  #show(): void {
    this.element.hidden = !this.stream.services.has(this.#service);
    this.element.setAttribute("aria-pressed", String(this.#folder !== ""));
    this.element.querySelector(".label")!.textContent = this.#folder ? "Recording" : "Record";
    this.element.title = this.#folder ? `Recording into ${this.#folder}; press to stop` : "Record all topics into a bag on the machine of web_bridge";
  }

  async #toggle(): Promise<void> {
    this.element.disabled = true;
    try {
      const { message } = await this.stream.call(this.#service, { data: this.#folder === "" });
      this.say(message);
    } catch (error) {
      this.say((error as Error).message);
    }
    this.element.disabled = false;
  }
}
