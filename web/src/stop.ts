// SPDX-License-Identifier: Apache-2.0
// STOP, for everybody and from everywhere on the page, and what then holds the vehicle until somebody resumes it.

import { h, setText } from "./dom";
import type { Fleet } from "./fleet";
import type { Helm, Vehicle } from "./helm";
import type { Stream } from "./stream";

/** Fields that somebody types into; a list, a slider or a box to tick is none. */
const TYPED_IN = "input:not([type=range], [type=checkbox], [type=radio], [type=button], [type=submit]), textarea, [contenteditable]";

export class Stop {
  readonly element: HTMLElement;
  readonly banner: HTMLElement;
  #stop = h("button.stop", { title: "Space or Escape", onclick: () => this.press() }, "STOP");
  #all = h("button.stop.all", { title: "Stop all vehicles", onclick: () => this.helm.stop() }, "STOP all");
  #text = h("strong");
  #why = h("span.why");
  #resume = h("button.primary.resume", { onclick: () => this.#resumable && this.helm.resume(this.#resumable) }, "Resume");

  constructor(private stream: Stream, private helm: Helm, private fleet: Fleet) {
    this.element = h("div.stops", { role: "group", "aria-label": "Stop" }, this.#stop, this.#all);
    this.banner = h("section.banner", { "aria-label": "Hold", role: "status", hidden: true }, h("div.banner-text", {}, this.#text, " ", this.#why), this.#resume);
    for (const source of [helm, fleet, stream]) for (const event of ["change", "graph", "status"]) source.addEventListener(event, () => this.#show());
    window.addEventListener("keydown", (event) => this.#onKey(event), { capture: true });
    window.addEventListener("keyup", (event) => this.#isOurs(event) && event.preventDefault(), { capture: true });
    // Who leaves full screen by Escape wanted to stop, and the browser has kept the key for itself.
    const onFullScreenLeft = (): void => void (helm.mine && this.press());
    document.addEventListener("fullscreenchange", () => document.fullscreenElement ?? onFullScreenLeft());
    matchMedia("(display-mode: fullscreen)").addEventListener("change", ({ matches }) => matches || onFullScreenLeft());
    this.#show();
  }

  /** Stop the vehicle that is shown, or all where all are shown. */
  press(): void {
    this.helm.stop(document.body.classList.contains("overviewing") ? undefined : this.#vehicle?.topic);
  }

  get #vehicle(): Vehicle | undefined {
    return this.fleet.subject.vehicle;
  }

  /** The topic of what Resume is for: the vehicle that is shown, or else one that has gone without an answer. */
  get #resumable(): string | undefined {
    return this.#vehicle?.held ? this.#vehicle.topic : this.helm.unanswered[0]?.topic;
  }

  /** Whether a key means STOP: a recording's timeline has Space, and whoever types has both. */
  #isOurs({ code, target }: KeyboardEvent): boolean {
    if (this.stream.isRecording || (code !== "Space" && code !== "Escape")) return false;
    const field = target instanceof Element ? target.closest<HTMLInputElement>(TYPED_IN) : null;
    return !field || (code === "Escape" && field.type === "search" && field.value === "");
  }

  #onKey(event: KeyboardEvent): void {
    const { code, target, repeat } = event;
    if (this.#isOurs(event)) {
      event.preventDefault(); // a button with the focus, Resume above all, is not pressed by it
      event.stopPropagation();
      if (!repeat) this.press();
    } else if (code === "Escape" && target instanceof HTMLInputElement && !this.stream.isRecording) {
      if (target.type === "search") {
        event.preventDefault();
        target.value = "";
        target.dispatchEvent(new Event("input"));
      } else target.blur(); // and the next one is STOP
    } else if (code === "Enter" && target instanceof HTMLInputElement && target.type === "checkbox") {
      target.click(); // as Space is taken
    }
  }

  #show(): void {
    const vehicle = this.#vehicle;
    this.element.hidden = this.stream.isRecording;
    const several = this.fleet.subjects.length > 1;
    this.#all.hidden = !several;
    document.body.classList.toggle("several", several);
    const held = vehicle?.held;
    const isWaiting = this.helm.isStopUnanswered;
    const { refusal } = this.stream;
    const gone = this.helm.unanswered.map(({ name }) => name).join(", ");
    this.banner.hidden = !refusal && (this.stream.isRecording || (!held && !gone && !isWaiting));
    this.#resume.hidden = !this.#resumable || !this.helm.maySteer;
    this.banner.classList.toggle("error", isWaiting || Boolean(refusal || held?.problem || gone));
    if (this.banner.hidden) {
      setText(this.#text, "");
      setText(this.#why, "");
    } else if (isWaiting) {
      setText(this.#text, "STOP has not reached the server yet");
      setText(this.#why, refusal || "It is sent again as soon as there is a connection.");
    } else if (refusal) {
      setText(this.#text, "This link does not open the page");
      setText(this.#why, refusal);
    } else if (vehicle && held) {
      const since = new Date(held.since * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
      const name = several ? `${vehicle.name}: ` : "";
      setText(this.#text, name + (held.problem ? `NOT STOPPED YET: ${held.problem}` : !held.is_sure ? "Stopping …"
        : vehicle.holds.length === 0 ? `Stopped since ${since}, and told to stand still again and again`
          : `Holding since ${since}, ${vehicle.commanders.length > 0 ? "the autopilot is paused" : "no command moves it"}`));
      setText(this.#why, [held.why, vehicle.holds.length === 0 ? "it has no hold, and may follow others" : "", this.helm.maySteer ? "" : "only who may steer can resume it",
        gone && `${gone} is gone, and has not answered STOP`].filter(Boolean).join("; "));
    } else {
      setText(this.#text, `NOT STOPPED: ${gone} is gone, and has not answered`);
      setText(this.#why, "STOP is sent to it as soon as it is back.");
    }
  }
}
