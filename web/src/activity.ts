// SPDX-License-Identifier: Apache-2.0
// Activity of a vehicle: motion, flight, hold, and the state of its controller.

import type { Subject } from "./fleet";
import { are, clause, decimal } from "./dom";
import { commandersOf, type Vehicle } from "./helm";
import { isKnown } from "./fields";
import { Readings } from "./readings";
import type { Arrival, Stream } from "./stream";

const CONTROLLER_STATE = "drone_bridge/msg/ControllerState", HOLD_STATUS = "drone_bridge/msg/HoldStatus";
const PERIOD_MS = 250;
/** Speed below which the measurement of a standing vehicle may be noise, m/s. */
const LEAST_SPEED = 0.05;
/** The same of a turn rate, rad/s. */
const LEAST_TURN = 0.1;

export class Activity {
  /** Of the vehicle's controller. */
  state?: Arrival;
  isHeld = false;
  #node = "";
  /** Report of its bridge: who commands it. */
  #status?: Arrival;
  #odometry?: Arrival;
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
    const status = [...topics].find(([topic, type]) => type === HOLD_STATUS && /^\w+_bridge\//.test(topic))?.[0];
    this.#node = state?.slice(0, state.lastIndexOf("/")) ?? "";
    const followed = [prefix, state, status, ...["held", "flying", "landed", "odom"].filter((topic) => topics.has(topic))].join();
    if (followed === this.#followed) return;
    this.#followed = followed;
    this.#end();
    const { stream } = this;
    this.#ends = [
      stream.subscribe(`${prefix}held`, ({ value }) => (this.isHeld = value.data === true)),
      stream.subscribe(`${prefix}flying`, ({ value }) => (this.#isFlying = value.data === true)),
      stream.subscribe(`${prefix}odom`, (arrival) => (this.#odometry = arrival)),
      stream.subscribe(`${prefix}landed`, ({ value }) => (this.#isFlying = value.data !== true)),
      ...(state ? [stream.subscribe(prefix + state, (arrival) => (this.state = arrival))] : []),
      ...(status ? [stream.subscribe(prefix + status, (arrival) => (this.#status = arrival))] : []),
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
    this.state = this.#status = this.#odometry = undefined;
    this.#isFlying = undefined;
    this.isHeld = false;
  }

  /** Its motion in a few words; empty if unknown. */
  get movement(): string {
    const speed = this.#speed.of("Speed");
    if (this.#isFlying === false) return "Landed"; // its speed may be that of the rover below it
    const verb = this.#isOnGround ? "Driving" : this.#isFlying ? "Flying" : "Moving";
    if (speed && !speed.silentS && speed.value > LEAST_SPEED) return `${verb} at ${decimal(speed.value, 1)} m/s`;
    const twist = this.#odometry && !this.stream.silentS(this.#odometry) ? this.#odometry.value.twist : undefined;
    if (twist && isKnown(twist.covariance) && Math.abs(twist.twist.angular.z) > LEAST_TURN) return "Turning";
    if (this.#isFlying) return "Flying";
    return speed && !speed.silentS ? "Standing still" : "";
  }

  /** Level of the lamp, activity, its commander or reason, and the silence of its controller, s. */
  doing(vehicle: Vehicle | undefined, isHeld: boolean): [string, string, string, number?] {
    const { movement, state, stream } = this;
    const nodes = vehicle ? commandersOf(vehicle) : [];
    const activity = state && state.value.state !== "idle" ? `${state.value.behaviour}: ${state.value.state}`.replaceAll("_", " ") : "";
    if (isHeld) return ["warn", "On hold", nodes.length > 0 ? `${are(nodes)} ignored until Resume` : "until Resume"];
    if (vehicle?.pilot && vehicle.refused_helm) return ["warn", "The helm is not followed", vehicle.refused_helm];
    if (vehicle?.pilot) return ["none", `Steered ${vehicle.pilot === "you" ? "from here" : `by ${vehicle.pilot_name}`}`, nodes.length > 0 ? `${are(nodes)} overruled${activity && `, ${activity}`}` : ""];
    const { pilot_name: pilot, commander } = this.#status && !stream.silentS(this.#status) ? this.#status.value : {};
    if (pilot) return ["none", movement || "Steered", `${pilot} is at the helm`];
    if (state && activity) return ["none", activity, `${clause(state.value.reason)} (${this.#node})`, stream.silentS(state)];
    if (commander) return ["none", movement || "Commanded", `by ${vehicle?.commanders[commander]?.join(" or ") || `commands on ${commander}`}`];
    if (commander === "") return ["none", movement || "Idle", "no commands"];
    return ["none", movement || "Unknown", nodes.length > 0 ? `${nodes.join(" or ")} may command it` : "its commands are unknown"];
  }
}
