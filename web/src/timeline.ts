// SPDX-License-Identifier: Apache-2.0
// Time of a recording: play, pause, speed, and a slider for any position, with marked events.

import { h, icon, setText } from "./dom";
import { documentAddress, type Stream } from "./stream";

interface Happening {
  timeS: number;
  kind: "warning" | "error" | "state";
  text: string;
}

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10];
const PERIOD_MS = 100;
/** Lead time before an event, to show its cause. */
const BEFORE_S = 0.5;
const STEP_S = 5;

export class Timeline {
  readonly element: HTMLElement;
  #play = h("button.play", { "aria-label": "Play or pause", onclick: () => this.#toggle() });
  #line = h("input.line", { type: "range", min: 0, max: 1, step: "any", value: 0, "aria-label": "Time in the recording" });
  #marks = h("div.marks");
  #time = h("output.time");
  #speed = h("select", { "aria-label": "Speed", onchange: () => this.#control(this.#isPaused) },
    ...SPEEDS.map((speed) => h("option", { value: speed, selected: speed === 1 }, `${speed} ×`)));
  #events = h("select", { "aria-label": "Go to event", onchange: () => this.#goTo() });
  #happenings: Happening[] = [];
  /** Range of the recording, both 0 until known. */
  #startS = 0;
  #endS = 0;
  #isAsked = false;
  #isDragged = false;
  #shownIcon = "";

  constructor(private stream: Stream) {
    this.element = h("section.timeline", { id: "timeline", "aria-label": "Timeline", hidden: true },
      this.#play, h("div.line-box", {}, this.#marks, this.#line), this.#time, this.#speed, this.#events);
    this.#line.addEventListener("input", () => {
      this.#isDragged = true;
      this.#seek(Number(this.#line.value));
    });
    this.#line.addEventListener("change", () => (this.#isDragged = false));
    stream.addEventListener("graph", () => void this.#ask());
    window.addEventListener("keydown", (event) => this.#onKey(event));
    setInterval(() => this.#show(), PERIOD_MS);
  }

  get #isPaused(): boolean {
    return this.stream.playback?.isPlaying !== true;
  }

  /** Request the events, once: the server has to read the whole recording for that. */
  async #ask(): Promise<void> {
    this.element.hidden = !this.stream.isRecording;
    document.body.classList.toggle("recording", this.stream.isRecording);
    if (!this.stream.isRecording || this.#isAsked) return;
    this.#isAsked = true;
    try {
      const { start_ns, end_ns, events } = await (await fetch(documentAddress("events.json"))).json();
      [this.#startS, this.#endS] = [Number(start_ns) / 1e9, Number(end_ns) / 1e9];
      this.#happenings = events.map(({ time_ns, kind, text }: { time_ns: string; kind: Happening["kind"]; text: string }) => ({ timeS: Number(time_ns) / 1e9, kind, text }));
    } catch {
      this.#isAsked = false;
      return;
    }
    this.#line.max = String(this.#endS - this.#startS);
    this.#marks.replaceChildren(...this.#happenings.map(({ timeS, kind, text }) =>
      h("span", { class: `mark-${kind}`, title: text, style: `left: ${(100 * (timeS - this.#startS)) / (this.#endS - this.#startS)}%` })));
    this.#events.replaceChildren(h("option", { value: "" }, this.#happenings.length === 1 ? "1 event" : `${this.#happenings.length} events`),
      ...this.#happenings.map(({ timeS, kind, text }, index) => h("option", { value: index }, `${clock(timeS - this.#startS)} ${kind === "state" ? "" : `${kind}: `}${text}`)));
    this.element.dataset["events"] = String(this.#happenings.length);
    this.#show();
  }

  #onKey(event: KeyboardEvent): void {
    const isTyping = (event.target as Element | null)?.closest("input, select, textarea, button, summary") != null;
    if (!this.stream.isRecording || isTyping || event.ctrlKey || event.altKey || event.metaKey) return;
    const at = (this.stream.playback?.timeS ?? this.#startS) - this.#startS;
    if (event.code === "Space") this.#toggle();
    else if (event.code === "ArrowLeft") this.#seek(at - STEP_S);
    else if (event.code === "ArrowRight") this.#seek(at + STEP_S);
    else return;
    event.preventDefault();
  }

  #toggle(): void {
    this.#control(!this.#isPaused);
  }

  #control(isPaused: boolean, seekS?: number): void {
    this.stream.control(isPaused, Number(this.#speed.value), seekS);
  }

  #seek(offsetS: number): void {
    if (this.#endS > 0) this.#control(this.#isPaused, this.#startS + Math.min(Math.max(0, offsetS), this.#endS - this.#startS));
  }

  #goTo(): void {
    const happening = this.#happenings[Number(this.#events.value)];
    if (this.#events.value !== "" && happening) this.#seek(happening.timeS - this.#startS - BEFORE_S);
    this.#events.value = "";
  }

  #show(): void {
    const { playback } = this.stream;
    if (!playback || this.element.hidden || this.#endS === 0) return;
    const atS = Math.min(Math.max(0, playback.timeS - this.#startS), this.#endS - this.#startS);
    if (!this.#isDragged) this.#line.value = String(atS);
    this.element.dataset["at"] = atS.toFixed(2);
    this.element.dataset["playing"] = String(playback.isPlaying);
    setText(this.#time, `${clock(atS)} of ${clock(this.#endS - this.#startS)}`);
    const wanted = playback.isPlaying ? "pause" : "play";
    if (wanted === this.#shownIcon) return;
    this.#shownIcon = wanted;
    this.#play.replaceChildren(icon(wanted));
  }
}

function clock(seconds: number): string {
  const whole = Math.max(0, seconds);
  return `${Math.floor(whole / 60)}:${(whole % 60).toFixed(1).padStart(4, "0")}`;
}
