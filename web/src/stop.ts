// SPDX-License-Identifier: Apache-2.0
// STOP, for everybody and from everywhere on the page, and what then holds the vehicle until somebody resumes it.

import { whenFullScreenLeft } from "./browser_features";
import { h, setText } from "./dom";
import type { Fleet } from "./fleet";
import type { Held, Helm, Vehicle } from "./helm";
import type { Stream } from "./stream";

/** Fields that somebody types into; a list, a slider or a box to tick is none. */
const TYPED_IN = "input:not([type=range], [type=checkbox], [type=radio], [type=button], [type=submit]), textarea, [contenteditable]";

/** What the server says of a vehicle that was held when its bridge started. */
const BEFORE = "from before this launch";

export class Stop {
  readonly element: HTMLElement;
  readonly banner: HTMLElement;
  #stop = h("button.stop", { title: "Space or Escape", onclick: () => this.press() }, "STOP");
  #all = h("button.stop.all", { title: "Stop all vehicles", onclick: () => this.helm.stop() }, "STOP all");
  #text = h("strong");
  #why = h("span.why");
  #resume = h("button.primary.resume", { onclick: () => this.#resumable && this.helm.resume(this.#resumable) }, "Resume");
  #resumeAll = h("button.primary.resume-all", { onclick: () => this.helm.resume() }, "Resume all");

  /** Of the vehicle that was shown last. */
  #topic?: string;

  constructor(private stream: Stream, private helm: Helm, private fleet: Fleet) {
    this.element = h("div.stops", { role: "group", "aria-label": "Stop" }, this.#stop, this.#all);
    this.banner = h("section.banner", { "aria-label": "Hold", role: "status", hidden: true }, h("div.banner-text", {}, this.#text, " ", this.#why), this.#resume, this.#resumeAll);
    for (const source of [helm, fleet, stream]) for (const event of ["change", "graph", "status"]) source.addEventListener(event, () => this.#show());
    window.addEventListener("keydown", (event) => this.#onKey(event), { capture: true });
    window.addEventListener("keyup", (event) => this.#isOurs(event) && event.preventDefault(), { capture: true });
    // Who leaves full screen by Escape wanted to stop, and the browser has kept the key for itself.
    whenFullScreenLeft(() => helm.mine && this.press());
    this.#show();
  }

  /** Stop the vehicle that is shown, or was shown before the connection was lost; all where all are shown. */
  press(): void {
    this.helm.stop(this.#isForAll ? undefined : this.#topic);
  }

  get #vehicle(): Vehicle | undefined {
    return this.fleet.subject.vehicle;
  }

  /** Whether all vehicles are shown. */
  get #isForAll(): boolean {
    return document.body.classList.contains("overviewing");
  }

  /** Those that are held. */
  get #held(): Vehicle[] {
    return this.helm.vehicles.filter(({ held }) => held);
  }

  /** What the banner is about: the vehicle that is shown, if it is held, or else all that are. */
  get #meant(): Vehicle[] {
    return this.#vehicle?.held && !this.#isForAll ? [this.#vehicle] : this.#held;
  }

  /** The topic of what Resume is for: one vehicle that is held, or else one that has gone without an answer. */
  get #resumable(): string | undefined {
    const [first, ...others] = this.#meant;
    return others.length > 0 ? undefined : (first?.topic ?? this.helm.unanswered[0]?.topic);
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
    this.#topic = this.#vehicle?.topic ?? this.#topic;
    this.element.hidden = this.stream.isRecording;
    const several = this.fleet.subjects.length > 1;
    setText(this.#stop, several && this.#isForAll ? "STOP all" : "STOP");
    this.#all.hidden = !several || this.#isForAll;
    document.body.classList.toggle("several", several);
    const held = this.#held;
    const meant = this.#meant;
    const isWaiting = this.helm.isStopUnanswered;
    const { refusal } = this.stream;
    const gone = this.helm.unanswered.map(({ name }) => name).join(", ");
    const { allStopped, limit } = this.helm;
    const isQuiet = held.length === 0 && !gone && !isWaiting && !allStopped && !limit;
    this.banner.hidden = !refusal && (this.stream.isRecording || isQuiet);
    this.#resume.hidden = !this.#resumable || !this.helm.maySteer;
    this.#resumeAll.hidden = (held.length < 2 && !allStopped) || !this.helm.maySteer;
    this.banner.classList.toggle("error", isWaiting || Boolean(refusal || gone || held.some((each) => each.held?.problem)));
    const mayNot = this.helm.maySteer || !this.helm.isOpen ? "" : "only viewers who may steer can resume";
    const lines: string[] = this.banner.hidden ? [""]
      : isWaiting ? ["STOP has not reached the server yet", refusal || "It will be sent again as soon as there is a connection."]
        : refusal ? ["This link is not valid", refusal]
          : meant.length === 0 && !gone ? [allStopped ? "All vehicles are stopped, also those to come" : limit, allStopped ?? ""]
          : meant.length === 0 ? [`NOT STOPPED: ${gone} is gone and has not answered`, "STOP will be sent as soon as it is back."]
            : meant.length > 1 ? [`${meant.length} vehicles hold`, ...meant.map((each) => `${each.name} ${summary(each)}`), mayNot]
              : [(several ? `${meant[0]!.name}: ` : "") + stateOf(meant[0]!), ...reasons(meant[0]!), mayNot];
    const [text = "", ...why] = lines;
    setText(this.#text, text);
    if (meant.length > 0 && allStopped) why.push("vehicles to come are stopped, too");
    if (text !== limit) why.push(limit);
    setText(this.#why, [...why, meant.length > 0 && gone && `${gone} is gone and has not answered STOP`].filter(Boolean).join("; "));
  }
}

function clock(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
}

/** Since when it holds; of one that held before its bridge started, nobody knows. */
function sinceOf({ since, why }: Held): string {
  return why === BEFORE ? "" : ` since ${clock(since)}`;
}

/** How a held vehicle is held, or why it is not yet. */
function stateOf({ held, holds, commanders }: Vehicle): string {
  if (held!.problem) return `NOT STOPPED YET: ${held!.problem}`;
  if (!held!.is_sure) return "Stopping …";
  if (holds.length === 0) return `Stopped${sinceOf(held!)}; zero commands are sent repeatedly`;
  return `Holding${sinceOf(held!)}, ${commanders.length > 0 ? `${commanders.join(" and ")} is ignored` : "no command moves it"}`;
}

function reasons({ held, holds }: Vehicle): string[] {
  return [held!.why, holds.length === 0 ? "it can't be held, and may follow other commands" : "", held!.unkept];
}

/** Since when it is held and why, or why it is not yet, in few words. */
export function summary({ held }: Vehicle): string {
  return held!.problem ? `NOT STOPPED YET: ${held!.problem}` : [sinceOf(held!).trim(), held!.why && `(${held!.why})`].filter(Boolean).join(" ");
}
