// SPDX-License-Identifier: Apache-2.0
// Pilot's view: a camera fills the window, with the sticks and a head-up display over it. A phone in landscape always has
// it. Elsewhere a click on a camera opens it.

import type { Cameras } from "./cameras";
import { h, setValue } from "./dom";
import { isKnown } from "./fields";
import type { Fleet } from "./fleet";
import { Readings } from "./readings";
import type { Message, Stream } from "./stream";

const LEFT = ["Speed", "Battery"], RIGHT = ["Altitude", "Above start", "Depth", "Heading", "Yaw"];
const PERIOD_MS = 100;
const STALE_MS = 1_500;
const DEGREES = 180 / Math.PI;
/** Units of the drawing, which is 200 units wide, per degree. */
const PITCH_UNITS = 1.6;
const SIDEWAYS = "(orientation: landscape) and (max-height: 500px)";

export class PilotView {
  readonly element: HTMLElement;
  #values = new Map([...LEFT, ...RIGHT].map((name) => [name, h("output", {}, "–")]));
  #horizon = horizon();
  #back = h("button", { onclick: () => this.cameras.fill(undefined) }, "Back");
  #next = h("button", { onclick: () => this.cameras.next() }, "Next camera");
  #whole = h("button", { "aria-pressed": "false", onclick: () => this.#toggleWhole() }, "Whole picture");
  #sideways = matchMedia(SIDEWAYS);
  #readings: Readings;
  #attitude?: { rollDeg: number; pitchDeg: number; receivedMs: number };
  #ends: (() => void)[] = [];
  #followed = "";

  constructor(private stream: Stream, private fleet: Fleet, private cameras: Cameras) {
    this.#readings = new Readings(stream, [...LEFT, ...RIGHT], PERIOD_MS);
    const column = (side: string, names: string[], ...more: Node[]): HTMLElement => h(`div.hud-side.${side}`, {},
      ...names.map((name) => h("div.hud-value", { "data-hud": name, hidden: true }, h("span", {}, name), this.#values.get(name)!)), ...more);
    this.element = h("section.hud", { "aria-label": "Head-up display" }, column("left", LEFT),
      this.#horizon, column("right", RIGHT), h("div.camera-tools", {}, this.#back, this.#next, this.#whole));
    for (const [source, event] of [[this.#sideways, "change"], [cameras, "change"], [fleet, "change"]] as const) source.addEventListener(event, () => this.#arrange());
    setInterval(() => this.#show(), PERIOD_MS);
    this.#arrange();
  }

  get #isOn(): boolean {
    return this.#sideways.matches || this.cameras.isFilling;
  }

  #arrange(): void {
    document.body.classList.toggle("pilot", this.#isOn);
    this.#back.hidden = !this.cameras.isFilling || this.#sideways.matches;
    this.#next.hidden = this.cameras.count < 2;
    this.#whole.hidden = this.cameras.count === 0;
    const { subject } = this.fleet;
    const topics = this.#isOn ? this.fleet.topics() : new Map<string, string>();
    this.#readings.follow(subject, topics);
    const sources = ["imu/data", "odom"].filter((topic) => topics.has(topic)).map((topic) => subject.prefix + topic);
    if (sources.join() === this.#followed) return;
    this.#followed = sources.join();
    for (const end of this.#ends) end();
    this.#attitude = undefined;
    this.#ends = sources.map((topic) => this.stream.subscribe(topic, ({ value, receivedMs }) => this.#turn(value, receivedMs)));
  }

  #turn(message: Message, receivedMs: number): void {
    if (!isKnown(message.orientation_covariance ?? message.pose.covariance)) return;
    const { x, y, z, w } = message.orientation ?? message.pose.pose.orientation;
    this.#attitude = {
      rollDeg: Math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)) * DEGREES,
      pitchDeg: Math.asin(Math.max(-1, Math.min(1, 2 * (w * y - z * x)))) * DEGREES, receivedMs,
    };
  }

  #toggleWhole(): void {
    const isWhole = this.#whole.ariaPressed !== "true";
    this.#whole.ariaPressed = String(isWhole);
    document.body.classList.toggle("whole", isWhole);
  }

  #show(): void {
    if (!this.#isOn) return;
    for (const [name, output] of this.#values) {
      const reading = this.#readings.of(name);
      setValue(output, reading?.text ?? "–", reading?.silentS ?? 0);
      output.parentElement!.hidden = !reading;
    }
    const attitude = this.#attitude && (this.stream.isRecording || performance.now() - this.#attitude.receivedMs < STALE_MS) ? this.#attitude : undefined;
    this.#horizon.classList.toggle("unknown", !attitude);
    if (!attitude) return;
    const { rollDeg, pitchDeg } = attitude;
    // Forward, left, up: rolling right and nose down are positive.
    this.#horizon.querySelector(".turning")!.setAttribute("transform", `rotate(${(-rollDeg).toFixed(1)}) translate(0 ${(-pitchDeg * PITCH_UNITS).toFixed(1)})`);
    this.#horizon.dataset["roll"] = rollDeg.toFixed(0);
  }
}

/** Artificial horizon: a rotating line with lines for each ten degrees, and the vehicle before it. */
function horizon(): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const draw = (parent: Element, name: string, attributes: Record<string, string>): Element => {
    const element = document.createElementNS(svg.namespaceURI!, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    parent.append(element);
    return element;
  };
  for (const [key, value] of Object.entries({ viewBox: "-100 -50 200 100", class: "horizon", role: "img", "aria-label": "Attitude" })) svg.setAttribute(key, value);
  const turning = draw(svg, "g", { class: "turning" });
  draw(turning, "path", { d: "M-95 0H-28M28 0H95" });
  for (const tens of [-2, -1, 1, 2]) draw(turning, "path", { d: `M-16 ${-tens * 10 * PITCH_UNITS}H16`, class: "rung" });
  draw(svg, "path", { d: "M-22 0H-9L0 8 9 0H22", class: "vehicle" });
  return svg;
}
