// SPDX-License-Identifier: Apache-2.0
// Recordings on the machine of web_bridge: their folder, and buttons to watch, report and download each of them.

import { h } from "./dom";
import type { Helm } from "./helm";
import { documentAddress, type Stream } from "./stream";

interface Recording {
  name: string;
  bytes: number;
  changed_s: number;
  /** Whether it is the last minute of the wire, which only can be downloaded. */
  is_wire: boolean;
}

interface Found {
  folder: string;
  recordings: Recording[];
}

export class Recordings {
  readonly element: HTMLElement;
  #where = h("span");
  /** Whether the wire was saved, which the list that is loaded meanwhile does not replace. */
  #saved = h("span");
  #list = h("div.recordings");
  /** Folder of the bag that is being recorded; empty without one. */
  #folder = "";

  constructor(private stream: Stream, private helm: Helm) {
    const reload = h("button.small", { onclick: () => void this.#load() }, "Reload");
    const save = h("button.small", { title: "Save the last minute of all vehicles' bytes, for a fault report", onclick: () => void this.#saveWire() }, "Save wire");
    this.element = h("div.tab-body", {}, h("div.tab-tools", {}, h("p.hint", {}, this.#where, " ", this.#saved), save, reload), h("div.scroll", { tabindex: 0 }, this.#list));
    new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && void this.#load()).observe(this.element);
    stream.addEventListener("recording", (event) => {
      this.#folder = (event as CustomEvent<string>).detail;
      if (this.element.checkVisibility()) void this.#load();
    });
    helm.addEventListener("watching", (event) => this.#open((event as CustomEvent<{ recording: string; link: string }>).detail));
    helm.addEventListener("refused", () => this.#enable());
  }

  async #load(): Promise<void> {
    if (this.stream.isRecording) return;
    const answer = await fetch(documentAddress("recordings.json")).catch(() => undefined);
    if (!answer?.ok) return void (this.#where.textContent = "The list can't be read: no connection.");
    const { folder, recordings }: Found = await answer.json();
    this.#where.textContent = this.#folder ? `Recording into ${this.#folder}.` : recordings.length > 0 ? `In ${folder}, the newest first.` : `None in ${folder} yet. Press Record, or start with record:=true.`;
    this.#list.replaceChildren(...recordings.map((each) => this.#row(each)));
  }

  async #saveWire(): Promise<void> {
    const services = [...this.stream.services.keys()].filter((name) => name.endsWith("/save_wire"));
    const answers = await Promise.all(services.map((name) => this.stream.call(name, {}).catch((error) => error as Error)));
    this.#saved.textContent = answers.map(({ message }) => message).join(" ") || "No vehicle is here.";
  }

  #row({ name, bytes, changed_s: changedS, is_wire: isWire }: Recording): HTMLElement {
    const size = bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(0)} MB`;
    const watch = h("button.small.watch", {
      title: "Play it on a separate page",
      onclick: () => {
        watch.disabled = true;
        watch.textContent = "Opening …";
        this.helm.watch(name);
      },
    }, "Watch");
    const may = this.helm.maySteer && !this.#folder.endsWith(`/${name}`); // while it is recorded, it is incomplete
    return h("div.recording-row", { "data-recording": name },
      h("span.recording-name", { title: new Date(changedS * 1000).toLocaleString() }, name), h("span.hint", {}, size),
      may && !isWire && watch, may && !isWire && h("a.button.report", { href: documentAddress(`reports/${encodeURIComponent(name)}`).href, target: "_blank", title: "Its verdict, events, track and plots, on a page of its own" }, "Report"),
      may && h("a.button", { href: documentAddress(`recordings/${encodeURIComponent(name)}`).href, download: `${name}.mcap` }, "Download"));
  }

  #open({ recording, link }: { recording: string; link: string }): void {
    this.#enable();
    window.open(link); // which a browser may block
    const row = [...this.#list.children].find((each) => (each as HTMLElement).dataset["recording"] === recording);
    row?.querySelector(".playing")?.remove();
    row?.append(h("a.playing", { href: link, target: "_blank" }, "Open"));
  }

  #enable(): void {
    for (const button of this.#list.querySelectorAll<HTMLButtonElement>(".watch")) {
      button.disabled = false;
      button.textContent = "Watch";
    }
  }
}
