// SPDX-License-Identifier: Apache-2.0
// Several people and one helm: requests for it, and handing it over.

import { h, setText } from "./dom";
import type { Fleet } from "./fleet";
import type { Asking, Helm, Vehicle } from "./helm";

const PERIOD_MS = 500;

export class Crew {
  readonly element = h("div.asking", { role: "alert", hidden: true });
  readonly button = h("button.primary.take", { onclick: () => this.#press() });
  #toldMs = 0;
  #told = "";
  #shown = "";

  /** `leave` releases the helm and all inputs. */
  constructor(private helm: Helm, private fleet: Fleet, private leave: () => void) {
    for (const source of [helm, fleet]) source.addEventListener("change", () => this.#hear());
    setInterval(() => this.#vehicle?.asked.length && this.show(), PERIOD_MS);
  }

  /** Reason why the button is disabled. */
  problem = "";

  get #vehicle(): Vehicle | undefined {
    return this.fleet.subject.vehicle;
  }

  get #mine(): Asking | undefined {
    return this.#vehicle?.asked.find(({ is_you }) => is_you);
  }

  #hear(): void {
    const told = JSON.stringify(this.#vehicle?.asked);
    if (told !== this.#told) this.#toldMs = performance.now();
    this.#told = told;
    this.show();
  }

  /** Remaining waiting time of a request, s. */
  #leftS({ left_s }: Asking): number {
    return Math.max(0, Math.ceil(left_s - (performance.now() - this.#toldMs) / 1000));
  }

  show(): void {
    const vehicle = this.#vehicle;
    const isMine = vehicle?.pilot === "you";
    const mine = this.#mine;
    const leftS = mine ? this.#leftS(mine) : 0;
    setText(this.button, isMine ? "Release the helm" : vehicle?.pilot !== "other" || (mine && leftS === 0) ? "Take the helm"
      : mine ? `Requested, ${leftS} s` : "Ask for the helm");
    this.button.disabled = !vehicle || !this.helm.maySteer || leftS > 0 || (this.problem !== "" && !isMine);
    const asking = isMine ? vehicle.asked : [];
    this.element.hidden = asking.length === 0;
    const shown = asking.map(({ number }) => number).join();
    if (shown !== this.#shown) {
      this.#shown = shown;
      this.element.replaceChildren(...asking.map(({ number, name }) => h("div", {},
        h("span", {}, `${name} asks for the helm`), h("span.left"), h("button.hand-over", { onclick: () => this.helm.handOver(number) }, "Hand over"))),
        h("button.keep", { onclick: () => this.helm.keep() }, "Keep it"));
    }
    asking.forEach((each, index) => setText(this.element.children[index]!.querySelector(".left")!, this.#leftS(each) ? ` and may take it in ${this.#leftS(each)} s ` : " and may take it now "));
  }

  #press(): void {
    const vehicle = this.#vehicle;
    const mine = this.#mine;
    if (this.helm.mine) this.leave();
    else if (vehicle?.pilot === "other" && !(mine && this.#leftS(mine) === 0)) this.helm.ask(vehicle.topic);
    else if (vehicle) this.helm.take(vehicle.topic);
  }
}
