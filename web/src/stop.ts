// SPDX-License-Identifier: Apache-2.0
// STOP, for everyone and everywhere on the page, and the hold that follows until a person resumes the vehicle.

import { whenFullScreenLeft } from "./browser_features";
import { are, h, onPress, setText } from "./dom";
import type { Fleet } from "./fleet";
import { commandersOf, type Held, type Helm, type Vehicle } from "./helm";
import { closeNewest } from "./open_forms";
import type { Stream } from "./stream";

/** Fields for text input, unlike lists, sliders or check boxes. */
const TYPED_IN = "input:not([type=range], [type=checkbox], [type=radio], [type=button], [type=submit]), textarea, [contenteditable]";

/** Reason that the server gives for a vehicle that was held when its bridge started. */
const BEFORE = "from before this launch";

export class Stop {
  readonly element: HTMLElement;
  readonly banner: HTMLElement;
  #stop = h("button.stop", { title: "Space or Escape" }, "STOP");
  #all = h("button.stop.all", { title: "Stop all vehicles" }, "STOP all");
  #text = h("strong");
  #why = h("span.why");
  #resume = h("button.primary.resume", { onclick: () => this.#resumable && this.helm.resume(this.#resumable) }, "Resume");
  #resumeAll = h("button.primary.resume-all", { onclick: () => this.helm.resume() }, "Resume all");

  /** Of the vehicle that was shown last. */
  #topic?: string;

  constructor(private stream: Stream, private helm: Helm, private fleet: Fleet) {
    this.element = h("div.stops", { role: "group", "aria-label": "Stop" }, this.#stop, this.#all);
    this.banner = h("section.banner", { "aria-label": "Hold", role: "status", hidden: true }, h("div.banner-text", {}, this.#text, " ", this.#why), this.#resume, this.#resumeAll);
    onPress(this.#stop, () => this.press());
    onPress(this.#all, () => this.helm.stop());
    for (const source of [helm, fleet, stream]) for (const event of ["change", "graph", "status"]) source.addEventListener(event, () => this.#show());
    window.addEventListener("keydown", (event) => this.#onKey(event), { capture: true });
    window.addEventListener("keyup", (event) => this.#isOurs(event) && event.preventDefault(), { capture: true });
    // A user who leaves full screen by Escape wanted to stop, but the browser has consumed the key.
    whenFullScreenLeft(() => helm.mine && this.press());
    this.#show();
  }

  /** Stop the current vehicle, or the last one before the connection was lost; all, if all are shown. */
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

  /** Held vehicles. */
  get #held(): Vehicle[] {
    return this.helm.vehicles.filter(({ held }) => held);
  }

  /** Vehicles of the banner: the current one if it is held, or else all held ones. */
  get #meant(): Vehicle[] {
    return this.#vehicle?.held && !this.#isForAll ? [this.#vehicle] : this.#held;
  }

  /** Topic for Resume: one held vehicle, or else one that has disappeared without confirming STOP. */
  get #resumable(): string | undefined {
    const [first, ...others] = this.#meant;
    return others.length > 0 ? undefined : (first?.topic ?? this.helm.unanswered[0]?.topic);
  }

  /** Whether this page steers, or commands by another of its parts. */
  get #commands(): boolean {
    const goal = this.#vehicle?.goal?.state;
    return this.helm.mine !== undefined || goal === "asked" || goal === "going";
  }

  /** Whether a key means STOP. A recording's timeline uses Space, and text input uses it, too. Escape leaves a field only while this page commands nothing. */
  #isOurs({ code, target }: KeyboardEvent): boolean {
    if (this.stream.isRecording || (code !== "Space" && code !== "Escape")) return false;
    if (code === "Escape" && this.#commands) return true;
    const field = target instanceof Element ? target.closest<HTMLInputElement>(TYPED_IN) : null;
    return !field || (code === "Escape" && field.type === "search" && field.value === "");
  }

  #onKey(event: KeyboardEvent): void {
    const { code, target, repeat } = event;
    if (this.#isOurs(event)) {
      event.preventDefault(); // so that a focused button, especially Resume, is not pressed
      event.stopPropagation();
      if (!repeat && !(code === "Escape" && !this.#commands && closeNewest())) this.press();
    } else if (code === "Escape" && target instanceof HTMLInputElement && !this.stream.isRecording) {
      if (target.type === "search") {
        event.preventDefault();
        target.value = "";
        target.dispatchEvent(new Event("input"));
      } else target.blur(); // the next one is STOP
    } else if (code === "Enter" && target instanceof HTMLInputElement && target.type === "checkbox") {
      target.click(); // because Space is used for STOP
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
    const mayNot = this.helm.maySteer === false ? "only viewers with permission to steer can resume" : "";
    const lines: string[] = this.banner.hidden ? [""]
      : isWaiting ? ["STOP has not reached the server yet", refusal || "Retrying when connected."]
        : refusal ? ["This link is not valid", refusal]
          : meant.length === 0 && !gone ? [allStopped ? "All vehicles are stopped, including later ones" : limit, allStopped ?? ""]
          : meant.length === 0 ? [`NOT STOPPED: ${gone} has disappeared without a confirmation`, "STOP will be sent when it is back."]
            : meant.length > 1 ? [`${meant.length} vehicles on hold`, ...summaries(meant), mayNot]
              : [(several ? `${meant[0]!.name}: ` : "") + stateOf(meant[0]!), ...reasons(meant[0]!), mayNot];
    const [text = "", ...why] = lines;
    setText(this.#text, text);
    if (meant.length > 0 && allStopped) why.push("later vehicles are stopped, too");
    if (text !== limit) why.push(limit);
    setText(this.#why, [...why, meant.length > 0 && gone && `${gone} has disappeared without confirming STOP`].filter(Boolean).join("; ").replaceAll(".;", ";"));
  }
}

function clock(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
}

/** Start time of the hold; unknown if it is older than the bridge. */
function sinceOf({ since, why }: Held): string {
  return why === BEFORE || since === null ? "" : ` since ${clock(since)}`;
}

/** State of a held vehicle, or why it is not held yet. */
function stateOf(vehicle: Vehicle): string {
  const { held, holds } = vehicle;
  const commanders = commandersOf(vehicle);
  if (held!.problem) return `NOT STOPPED YET: ${held!.problem}`;
  if (!held!.is_sure) return "Stopping …";
  if (holds.length === 0) return `Stopped${sinceOf(held!)}; zero commands are sent repeatedly`;
  return `On hold${sinceOf(held!)}, ${commanders.length > 0 ? are(commanders) : "all commands are"} ignored`;
}

function reasons({ held, holds }: Vehicle): string[] {
  return [held!.why, holds.length === 0 ? "it can't be held, and may follow other commands" : "", held!.unkept];
}

/** Start time and reason of the hold, or why it is not held yet, in a few words. */
export function summary({ held }: Vehicle): string {
  return held!.problem ? `NOT STOPPED YET: ${held!.problem}` : [sinceOf(held!).trim(), held!.why && `(${held!.why})`].filter(Boolean).join(" ");
}

/** The summaries of held vehicles, each once, after the names of its vehicles. */
function summaries(vehicles: Vehicle[]): string[] {
  const names = new Map<string, string[]>();
  for (const each of vehicles) names.set(summary(each), [...(names.get(summary(each)) ?? []), each.name]);
  return [...names].map(([text, of]) => `${of.join(", ")} ${text}`);
}
