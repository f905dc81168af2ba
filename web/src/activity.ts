// SPDX-License-Identifier: Apache-2.0
// Activity of a vehicle: motion, flight, hold, and the state of its controller.

import type { Subject } from "./fleet";
import { are, clause, decimal } from "./dom";
import type { Vehicle } from "./helm";
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
  #node = "";
  /** Last command of a person, of a recording. */
  #helm?: Arrival;
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
    const helm = this.stream.isRecording ? [...topics.keys()].find((topic) => /^\w+_bridge\/helm$/.test(topic)) : undefined;
    this.#node = state?.slice(0, state.lastIndexOf("/")) ?? "";
    const followed = [prefix, state, helm, ...["held", "flying", "landed"].filter((topic) => topics.has(topic))].join();
    if (followed === this.#followed) return;
    this.#followed = followed;
    this.#end();
    const { stream } = this;
    this.#ends = [
      stream.subscribe(`${prefix}held`, ({ value }) => (this.isHeld = value.data === true)),
      stream.subscribe(`${prefix}flying`, ({ value }) => (this.#isFlying = value.data === true)),
      stream.subscribe(`${prefix}landed`, ({ value }) => (this.#isFlying = value.data !== true)),
      ...(state ? [stream.subscribe(prefix + state, (arrival) => (this.state = arrival))] : []),
      ...(helm ? [stream.subscribe(prefix + helm, (arrival) => (this.#helm = arrival))] : []),
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
    this.state = this.#helm = undefined;
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

  /** Level of the lamp, activity, its commander or reason, and the silence of its controller, s. `rate`: commands per second, NaN if unknown. */
  doing(vehicle: Vehicle | undefined, isHeld: boolean, rate: number): [string, string, string, number?] {
    const { movement, state, stream } = this;
    const nodes = vehicle?.commanders ?? [];
    const activity = state && state.value.state !== "idle" ? `${state.value.behaviour}: ${state.value.state}`.replaceAll("_", " ") : "";
    if (isHeld) return ["warn", "On hold", nodes.length > 0 ? `${are(nodes)} ignored until Resume` : "until Resume"];
    if (vehicle?.pilot && vehicle.refused_helm) return ["warn", "The helm is not followed", vehicle.refused_helm];
    if (vehicle?.pilot) return ["none", `Steered ${vehicle.pilot === "you" ? "from here" : `by ${vehicle.pilot_name}`}`, nodes.length > 0 ? `${are(nodes)} overruled${activity && `, ${activity}`}` : ""];
    if (this.#helm && Math.abs(stream.nowS - this.#helm.timeS) < 1) return ["none", movement || "Steered", "by a person at the helm"];
    if (state && activity) return ["none", activity, `${clause(state.value.reason)} (${this.#node})`, stream.silentS(state)];
    if (stream.isRecording) return ["none", movement || "Unknown", rate > 0 ? "by recorded commands" : rate === 0 ? "no commands" : "its commands are unknown"];
    // A node that publishes a topic may send nothing, and a message does not name its publisher.
    const names = nodes.join(" or ");
    if (!names || rate === 0) return ["none", movement || "Idle", `no commands${names && ` from ${names}`}`];
    return ["none", movement || (rate ? "Commanded" : "Unknown"), rate ? `by ${names}` : `${names} may command it`];
  }
}
