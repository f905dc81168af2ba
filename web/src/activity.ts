// SPDX-License-Identifier: Apache-2.0
// Activity of a vehicle: motion, flight, hold, and the state of its controller.

import type { Subject } from "./fleet";
import { decimal } from "./dom";
import { Readings } from "./readings";
import type { Arrival, Stream } from "./stream";

const CONTROLLER_STATE = "drone_bridge/msg/ControllerState";
const PERIOD_MS = 250;
/** Speed below which the measurement of a standing vehicle may be noise, m/s. */
const LEAST_SPEED = 0.05;

export class Activity {
  /** Of the vehicle's controller. */
  state?: Arrival;
  isHeld = false;
  #isFlying?: boolean;
  #isOnGround = false;
  #speed: Readings;
  #ends: (() => void)[] = [];
  #followed = "";

  constructor(private stream: Stream) {
    this.#speed = new Readings(stream, ["Speed"], PERIOD_MS);
  }

  follow(subject: Subject, topics: Map<string, string>): void {
    const { prefix, vehicle } = subject;
    this.#speed.follow(subject, topics);
    this.#isOnGround = vehicle !== undefined && !vehicle.axes.includes("z");
    const state = [...topics].find(([, type]) => type === CONTROLLER_STATE)?.[0];
    const followed = [prefix, state, ...["held", "flying", "landed"].filter((topic) => topics.has(topic))].join();
    if (followed === this.#followed) return;
    this.#followed = followed;
    this.#end();
    const { stream } = this;
    this.#ends = [
      stream.subscribe(`${prefix}held`, ({ value }) => (this.isHeld = value.data === true)),
      stream.subscribe(`${prefix}flying`, ({ value }) => (this.#isFlying = value.data === true)),
      stream.subscribe(`${prefix}landed`, ({ value }) => (this.#isFlying = value.data !== true)),
      ...(state ? [stream.subscribe(prefix + state, (arrival) => (this.state = arrival))] : []),
    ];
  }

  close(): void {
    this.#end();
    this.#speed.close();
    this.#followed = "";
  }

  #end(): void {
    for (const end of this.#ends) end();
    this.#ends = [];
    this.state = undefined;
    this.#isFlying = undefined;
    this.isHeld = false;
  }

  /** Its motion in a few words; empty if unknown. */
  get movement(): string {
    const speed = this.#speed.of("Speed");
    if (this.#isFlying === false) return "Landed"; // its speed may be that of the rover below it
    const verb = this.#isOnGround ? "Driving" : this.#isFlying ? "Flying" : "Moving";
    if (speed && !speed.silentS && speed.value > LEAST_SPEED) return `${verb} at ${decimal(speed.value, 1)} m/s`;
    if (this.#isFlying) return "Flying";
    return speed && !speed.silentS ? "Standing still" : "";
  }

  /** Behaviour and state of the controller; empty without one. */
  get doing(): string {
    return this.state ? `${this.state.value.behaviour}: ${this.state.value.state}`.replaceAll("_", " ") : "";
  }
}
