// SPDX-License-Identifier: Apache-2.0
// The conversation with the server about steering, on a socket of its own. The server has the last word on everything.

import { LostLink } from "./lost_link";
import { socketAddress } from "./stream";

export const AXES = ["x", "y", "z", "yaw"] as const;
export type Axis = (typeof AXES)[number];
export type Motion = Record<Axis, number>;

export interface Vehicle {
  topic: string;
  name: string;
  node: string;
  /** What it looks like; empty where that is not known. */
  model: string;
  /** What its owner calls it, as "tracked robot"; empty where that is not known. */
  title: string;
  /** Whether its yaw of 0 is east, and so north is known. */
  has_north: boolean;
  axes: Axis[];
  pilot: "you" | "other" | null;
  /** The name of who steers it; empty if nobody does. */
  pilot_name: string;
  /** Who asks for its helm, and in how many seconds each may take it. */
  asked: Asking[];
  /** The services that hold it: a vehicle without any follows whoever commands it next when the helm ends. */
  holds: string[];
  held: Held | null;
  /** The nodes that publish commands for it. */
  commanders: string[];
  /** What ends its flight there and then, by service. */
  emergencies: Record<string, Emergency>;
  takes_goals: boolean;
  goal: Goal | null;
}

export interface Asking {
  number: number;
  name: string;
  is_you: boolean;
  left_s: number;
}

export interface Emergency {
  /** In few words: cut motors. */
  action: string;
  /** What happens in flight, as the end of a sentence. */
  effect: string;
}

/** Why a vehicle stands still, whatever is commanded. */
export interface Held {
  /** s since 1970, by the server's clock. */
  since: number;
  why: string;
  /** Whether it has said itself that it is held. */
  is_sure: boolean;
  /** What has kept it from being held so far. */
  problem: string;
  /** Why its bridge, once restarted, may not know of it. */
  unkept: string;
}

/** A goal of a vehicle, and what has become of it. */
export interface Goal {
  state: "asked" | "sent" | "going" | "done" | "refused" | "ended";
  /** The same, in words. */
  text: string;
  frame: string;
  x: number;
  y: number;
  z: number;
  by: string;
  distance: number | null;
  left_s: number | null;
}

/** From the server; its `op` tells which fields it has. */
interface Message {
  op: "token" | "vehicles" | "stopped" | "refused" | "watching";
  token: number;
  vehicles: Vehicle[];
  unanswered: { topic: string; name: string }[];
  may_steer: boolean;
  all_stopped: string | null;
  limit: string;
  max_speed: number | null;
  number: number;
  reason: string;
  recording: string;
  link: string;
}

const SUBPROTOCOL = "drone_bridge.helm.v1";
const SHORTEST_GAP_MS = 40;
const LONGEST_PAUSE_MS = 4_000;
/** Tokens come ten times per second: without any, it is silent from here on, and lost after as long as a lease lasts. */
const WATCH_PERIOD_MS = 250;
const SILENT_AFTER_PERIODS = 4;
const LOST_AFTER_PERIODS = 20;
/** A server that has not answered a STOP for this long is said not to have heard it. */
const STOP_UNANSWERED_MS = 1_500;
export const STILL: Motion = { x: 0, y: 0, z: 0, yaw: 0 };

export function isStill(motion: Motion): boolean {
  return AXES.every((axis) => motion[axis] === 0);
}

/** The vehicles that this page wants stopped until the server acknowledges that. */
interface WantedStop {
  /** All, and those to come; otherwise the topics. */
  isAll: boolean;
  topics: Set<string>;
  number: number;
}

/** Sends "change", "open" and "stop" events, "watching" with a link as detail, "refused" with the reason as detail, and "lost" when a connection is given up as dead. */
export class Helm extends EventTarget {
  vehicles: Vehicle[] = [];
  /** The vehicles that have gone without an answer to STOP. */
  unanswered: { topic: string; name: string }[] = [];
  /** Who wants all vehicles stopped, and those to come; null if nobody does. */
  allStopped: string | null = null;
  /** Why this page may only stop; empty if it may more. */
  limit = "";
  /** At full deflection, m/s; null until the server has reported it. */
  maxSpeed: number | null = null;
  maySteer = false;
  isOpen = false;
  readonly link = new LostLink();
  #socket?: WebSocket;
  #token?: number;
  #motion: Motion = STILL;
  #sentMs = 0;
  #pauseMs = 250;
  #wanted?: WantedStop;
  #stopNumber = 0;
  /** Counted rather than timed: a browser that was suspended has not waited. */
  #silentPeriods = 0;

  constructor() {
    super();
    setInterval(() => this.#watch(), WATCH_PERIOD_MS);
  }

  /** For how long nothing has come on a connection that should be alive; 0 while all is well. */
  get silentSeconds(): number {
    return this.isOpen && this.#silentPeriods >= SILENT_AFTER_PERIODS ? (this.#silentPeriods * WATCH_PERIOD_MS) / 1000 : 0;
  }

  /** For how long nothing has come, to a quarter of a second. */
  get ageSeconds(): number {
    return (this.#silentPeriods * WATCH_PERIOD_MS) / 1000;
  }

  connect(): void {
    const socket = new WebSocket(socketAddress(), [SUBPROTOCOL]);
    this.#socket = socket;
    this.#silentPeriods = 0;
    socket.onopen = () => {
      this.isOpen = true;
      this.link.found();
      this.#pauseMs = 250;
      this.#sendWanted();
      this.dispatchEvent(new Event("open"));
      this.#changed();
    };
    socket.onmessage = (event) => this.#receive(JSON.parse(event.data as string));
    socket.onclose = ({ code, reason }) => {
      if (this.isOpen) this.link.lost(Date.now(), code, reason);
      this.isOpen = this.maySteer = false;
      // As they were last, with their holds; only nobody steers them from here.
      this.vehicles = this.vehicles.map((vehicle) => ({ ...vehicle, pilot: null, pilot_name: "", asked: [] }));
      this.#token = undefined;
      this.#changed();
      setTimeout(() => this.connect(), this.#pauseMs);
      this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2);
    };
  }

  /** The vehicle that is steered from this page. */
  get mine(): Vehicle | undefined {
    return this.vehicles.find((vehicle) => vehicle.pilot === "you");
  }

  /** What a topic does that has the name of an emergency's service, beside a vehicle's other topics. */
  emergencyOn(topic: string): Emergency | undefined {
    for (const vehicle of this.vehicles) {
      const prefix = vehicle.topic.slice(0, vehicle.topic.lastIndexOf("/") + 1);
      for (const [service, emergency] of Object.entries(vehicle.emergencies)) if (prefix + service.slice(service.lastIndexOf("/") + 1) === topic) return emergency;
    }
    return undefined;
  }

  take(topic: string): void {
    this.#send({ op: "take", vehicle: topic });
  }

  release(): void {
    this.#motion = STILL;
    this.#send({ op: "release" });
  }

  /** Stop a vehicle, or all and those to come. Everybody may; it is wanted until the server acknowledges it. */
  stop(topic?: string): void {
    this.#motion = STILL;
    const before = this.#wanted;
    this.#wanted = {
      isAll: topic === undefined || before?.isAll === true,
      topics: new Set([...(before?.topics ?? []), ...(topic === undefined ? [] : [topic])]),
      number: ++this.#stopNumber,
    };
    this.#sendWanted();
    this.dispatchEvent(new Event("stop"));
    setTimeout(() => this.#changed(), STOP_UNANSWERED_MS);
    this.#changed();
  }

  /** Send all that is wanted stopped, whatever else waits in the socket's buffer: a STOP is never stale. */
  #sendWanted(): void {
    if (!this.#wanted || this.#socket?.readyState !== WebSocket.OPEN) return;
    const { isAll, topics, number } = this.#wanted;
    this.#socket.send(JSON.stringify({ op: "stop", ...(isAll ? {} : { vehicles: [...topics] }), number }));
  }

  /** Whether a vehicle is held, or this page wants it to be. */
  isStopped(vehicle: Vehicle | undefined): boolean {
    if (!vehicle) return false;
    return vehicle.held !== null || this.#wanted?.isAll === true || this.#wanted?.topics.has(vehicle.topic) === true;
  }

  /** Whether the server should have answered a STOP by now. */
  get isStopUnanswered(): boolean {
    return this.#wanted !== undefined && (!this.isOpen || this.silentSeconds > 0);
  }

  /** Be known to others by a name. */
  greet(name: string): void {
    this.#send({ op: "hello", name });
  }

  /** Ask whoever steers a vehicle for its helm. */
  ask(topic: string): void {
    this.#send({ op: "ask", vehicle: topic });
  }

  /** Say no to all who ask for the helm. */
  keep(): void {
    this.#send({ op: "keep" });
  }

  handOver(number: number): void {
    this.#send({ op: "hand_over", to: number });
  }

  /** End the hold of a vehicle, or of all. */
  resume(topic?: string): void {
    if (topic === undefined) this.#wanted = undefined;
    else this.#wanted?.topics.delete(topic);
    this.#send({ op: "resume", vehicle: topic });
  }

  /** Have a vehicle go somewhere by itself; what becomes of it is told in `vehicles`. */
  setGoal(topic: string, frame: string, x: number, y: number, z: number): void {
    this.#send({ op: "goal", vehicle: topic, frame, x, y, z });
  }

  /** Have the server play a recording: a "watching" event has its link. */
  watch(recording: string): void {
    this.#send({ op: "watch", recording });
  }

  cancelGoal(topic: string): void {
    this.#send({ op: "cancel_goal", vehicle: topic });
  }

  /** Move the vehicle so from now on, until something else is said. */
  move(motion: Motion): void {
    const stops = isStill(motion) && !isStill(this.#motion);
    this.#motion = motion;
    if (stops || performance.now() - this.#sentMs > SHORTEST_GAP_MS) this.#steer();
  }

  #steer(): void {
    if (!this.mine || this.#token === undefined) return;
    this.#sentMs = performance.now();
    this.#send({ op: "steer", token: this.#token, motion: this.#motion });
  }

  #send(request: object): void {
    // What waits in the socket's buffer is old when it leaves: let it be the only thing that waits.
    if (this.#socket?.readyState === WebSocket.OPEN && this.#socket.bufferedAmount < 1024) {
      this.#socket.send(JSON.stringify(request));
    }
  }

  #watch(): void {
    this.#silentPeriods += 1;
    if (this.#silentPeriods !== LOST_AFTER_PERIODS) return;
    this.#socket?.close(); // TCP itself would try for a quarter of an hour
    this.dispatchEvent(new Event("lost"));
  }

  #receive(message: Message): void {
    this.#silentPeriods = 0;
    if (message.op === "token") {
      this.#token = message.token;
      this.#steer();
    } else if (message.op === "vehicles") {
      this.vehicles = message.vehicles;
      this.unanswered = message.unanswered;
      this.maySteer = message.may_steer;
      this.allStopped = message.all_stopped;
      this.limit = message.limit;
      this.maxSpeed = message.max_speed;
      this.#changed();
    } else if (message.op === "stopped") {
      if (message.number === this.#wanted?.number) this.#wanted = undefined;
      this.#changed();
    } else if (message.op === "watching") {
      this.dispatchEvent(new CustomEvent("watching", { detail: message }));
    } else if (message.op === "refused") {
      this.dispatchEvent(new CustomEvent("refused", { detail: message.reason }));
    }
  }

  #changed(): void {
    this.dispatchEvent(new Event("change"));
  }
}
