// SPDX-License-Identifier: Apache-2.0
// The helm on the screen: its pilot, the sticks, and the reason if they have no effect.

import { Actions } from "./actions";
import { Crew } from "./crew";
import { decimal, h, panel, setText } from "./dom";
import type { Feel } from "./feel";
import type { Fleet } from "./fleet";
import { AXES, STILL, isStill, type Helm } from "./helm";
import { Inputs } from "./inputs";
import type { Links } from "./links";
import type { Stream } from "./stream";

const REFUSAL_SHOWN_MS = 6_000;
/** Time for requests that were sent before STOP was pressed. */
const UNDER_WAY_MS = 1_500;

export class Steering {
  readonly element: HTMLElement;
  #who = h("span.who");
  #warning = h("p.hint.warning", { hidden: true });
  #viewOnly = h("p.hint.view-only", { hidden: true }, "This page may watch, and press STOP. To steer, open the link on the machine of the launch, or launch with steer:=true.");
  #refusal = h("p.refusal", { role: "alert", hidden: true });
  #refusalTimer = 0;
  /** State when an input or a request was refused. */
  #refusedAs?: { isHeld: boolean; isSteered: boolean };
  #speed = h("input", { type: "range", min: 0.1, max: 1, step: 0.05, value: 0.5, "aria-label": "Speed at full deflection" });
  #share = h("output");
  #keys = h("p.hint.keys");
  #pad = h("p.hint.gamepad", { hidden: true });
  #inputs: Inputs;
  #crew: Crew;
  /** After a refused input nothing is sent until all inputs were released. */
  #mustLetGo = false;
  #stoppedMs = -Infinity;

  /** `stop` is that of the page, for a gamepad's button. */
  constructor(stream: Stream, private helm: Helm, private fleet: Fleet, private links: Links, private feel: Feel, private say: (text: string) => void, stop: () => void) {
    this.#inputs = new Inputs(feel);
    this.#crew = new Crew(helm, fleet, () => this.#leave());
    this.element = panel("steering", "Steering", [this.#who, this.#crew.button],
      this.#warning, this.#viewOnly, this.#crew.element, new Actions(stream, helm, fleet, say).element,
      h("div.sticks", {}, this.#inputs.left.element,
        h("div.centre", {}, this.#refusal, h("label.speed", {}, "speed", this.#speed, this.#share), this.#keys, this.#pad),
        this.#inputs.right.element));
    this.#inputs.addEventListener("change", () => this.#move());
    this.#inputs.addEventListener("stop", stop);
    this.#speed.addEventListener("input", () => this.#move());
    // Arrow keys steer again as soon as the mouse or a finger leaves the slider.
    this.#speed.addEventListener("pointerup", () => this.#speed.blur());
    helm.addEventListener("change", () => this.#show());
    links.addEventListener("change", () => this.#show());
    helm.addEventListener("stop", () => {
      this.#stoppedMs = performance.now();
      this.#inputs.letGo();
    });
    helm.addEventListener("refused", (event) => this.#onRefused((event as CustomEvent<string>).detail));
    fleet.addEventListener("change", () => this.#onSubject());
    // A pilot who looks at another page does not steer.
    window.addEventListener("blur", () => this.#inputs.letGo());
    window.addEventListener("pagehide", () => this.helm.release());
    document.addEventListener("visibilitychange", () => document.hidden && this.#leave());
    this.#show();
  }

  #leave(): void {
    this.#inputs.letGo();
    if (this.helm.mine) this.helm.release();
  }

  #onSubject(): void {
    if (this.helm.mine && this.helm.mine.topic !== this.fleet.subject.vehicle?.topic) this.#leave();
    this.#show();
  }

  #onRefused(reason: string): void {
    // To the pilot who has just pressed STOP, the banner says more than the refusal of earlier commands.
    if (performance.now() - this.#stoppedMs < UNDER_WAY_MS && isStill(this.#inputs.motion)) return;
    this.#mustLetGo = !isStill(this.#inputs.motion);
    this.helm.move(STILL);
    this.#move();
    setText(this.#refusal, reason);
    this.#refusal.hidden = false;
    this.#refusedAs = this.#how;
    this.#forgetSoon();
    if (!this.#refusal.checkVisibility()) this.say(reason);
  }

  get #how(): { isHeld: boolean; isSteered: boolean } {
    const vehicle = this.fleet.subject.vehicle;
    return { isHeld: Boolean(vehicle?.held), isSteered: vehicle?.pilot === "other" };
  }

  /** A refused input is reported while it lasts. */
  #forgetSoon(): void {
    clearTimeout(this.#refusalTimer);
    this.#refusalTimer = window.setTimeout(() => this.#mustLetGo ? this.#forgetSoon() : this.#forgetRefusal(), REFUSAL_SHOWN_MS);
  }

  #forgetRefusal(): void {
    this.#refusal.hidden = true;
    this.#refusedAs = undefined;
  }

  #move(): void {
    const pushed = this.#inputs.motion;
    if (isStill(pushed) && this.#mustLetGo) {
      this.#mustLetGo = false;
      if (!this.#how.isHeld) this.#forgetRefusal();
    }
    const share = Number(this.#speed.value);
    const limited = this.feel.limited(pushed);
    const motion = { ...STILL };
    for (const axis of AXES) motion[axis] = this.#mustLetGo || !this.#inputs.axes.includes(axis) ? 0 : limited[axis] * share;
    if (this.helm.mine) this.helm.move(motion);
    this.#inputs.show(motion);
    setText(this.#pad, this.#inputs.padText);
    this.#pad.hidden = this.#inputs.padText === "";
    this.element.classList.toggle("refused", this.#mustLetGo);
    const most = this.fleet.subject.vehicle?.max_speed;
    setText(this.#share, [`${decimal(100 * share, 0)} %`, most && `${decimal(share * most)} m/s`].filter(Boolean).join(" · "));
  }

  #show(): void {
    const vehicle = this.fleet.subject.vehicle;
    const { problem } = this.links;
    const isMine = vehicle?.pilot === "you";
    this.#inputs.axes = vehicle?.axes ?? [];
    this.#inputs.isActive = isMine && !problem;
    if (!this.#inputs.isActive) this.#inputs.letGo();
    this.element.classList.toggle("active", this.#inputs.isActive && !this.helm.isStopped(vehicle));
    const climbs = !vehicle || vehicle.axes.includes("z");
    const isRover = !climbs && !vehicle.axes.includes("y");
    this.element.classList.toggle("rover", isRover);
    setText(this.#keys, `Hold to move: stick, gamepad, or keys. W A S D to ${isRover ? "drive" : `move, Q E to turn${climbs ? ", R F to climb" : ""}`}.`);
    this.element.classList.toggle("idle", !vehicle);
    this.#viewOnly.hidden = !vehicle || this.helm.maySteer !== false || this.helm.limit !== "";
    const warning = !vehicle ? "" : vehicle.holds.length === 0 ? `${vehicle.node} can't be held. Once the helm is released, it follows the next command from any node.`
      : isMine && vehicle.refused_helm ? `Your helm is not followed: ${vehicle.refused_helm}` : "";
    this.#warning.hidden = warning === "";
    this.#warning.classList.toggle("error", isMine && vehicle.refused_helm !== "");
    setText(this.#warning, warning);
    setText(this.#who, !vehicle ? "no vehicle accepts commands" : problem ? problem : isMine ? (this.helm.isStopped(vehicle) ? "on hold" : vehicle.refused_helm ? "your helm is not followed" : "you are steering") : vehicle.pilot ? `${vehicle.pilot_name} is steering`
      : this.helm.maySteer ? "the helm is free" : this.helm.maySteer === false ? "view only" : "");
    const now = this.#how;
    if (this.#refusedAs && ((this.#refusedAs.isHeld && !now.isHeld) || (this.#refusedAs.isSteered && !now.isSteered))) this.#forgetRefusal();
    this.#crew.problem = problem;
    this.#crew.show();
    this.#move();
  }
}
