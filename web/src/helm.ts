// SPDX-License-Identifier: Apache-2.0
// Protocol with the server for steering, on a separate socket. The server makes all decisions.

import { LostLink } from "./lost_link";
import { socketAddress } from "./stream";

export const AXES = ["x", "y", "z", "yaw"] as const;
export type Axis = (typeof AXES)[number];
export type Motion = Record<Axis, number>;

export interface Vehicle {
  topic: string;
  name: string;
  node: string;
  /** Its model; empty if unknown. */
  model: string;
  /** Its owner's name for it, such as "tracked robot"; empty if unknown. */
  title: string;
  /** Whether its yaw of 0 is east, so that north is known. */
  has_north: boolean;
  axes: Axis[];
  pilot: "you" | "other" | null;
  /** Name of its pilot; empty without one. */
  pilot_name: string;
  /** Requests for its helm, with the seconds until each may take it. */
  asked: Asking[];
  /** Services that hold it. Without any, the vehicle follows the next commander when the helm ends. */
  holds: string[];
  held: Held | null;
  /** Why it does not follow its helm, or may not; empty if it does. */
  refused_helm: string;
  /** Nodes that publish commands for it, by topic. */
  commanders: Record<string, string[]>;
  /** Its emergencies, by service. */
  emergencies: Record<string, Emergency>;
  /** Its requests that are buttons, by service in their order, and whether each may move it. */
  buttons: Record<string, boolean>;
  /** Random IDs of its nodes' runs, by node: a node that restarts has a new one. */
  runs: Record<string, string>;
  /** At full deflection, m/s; null until the server has reported it. */
  max_speed: number | null;
  takes_goals: boolean;
  /** Place of the pad that it has landed on, ahead and to the left of it, m; null if unknown. */
  below?: { x: number; y: number } | null;
  goal: Goal | null;
}

/** Nodes that publish commands for a vehicle. */
export const commandersOf = ({ commanders }: Vehicle): string[] => [...new Set(Object.values(commanders).flat())].sort();

export interface Asking {
  number: number;
  name: string;
  is_you: boolean;
  left_s: number;
}

export interface Emergency {
  /** In a few words: cut motors. */
  action: string;
  /** Effect in flight, as the end of a sentence. */
  effect: string;
}

/** Hold of a vehicle, which ignores commands. */
export interface Held {
  /** s since 1970, by the server's clock; null before the vehicle has reported it. */
  since: number | null;
  why: string;
  /** Whether the vehicle has confirmed that it is held. */
  is_sure: boolean;
  /** Problem that has prevented the hold so far. */
  problem: string;
  /** Reason why its bridge may lose the hold after a restart. */
  unkept: string;
}

/** Goal of a vehicle, with its progress. */
export interface Goal {
  state: "asked" | "sent" | "going" | "done" | "refused" | "ended";
  /** The same as text. */
  text: string;
  frame: string;
  x: number;
  y: number;
  z: number;
  by: string;
  distance: number | null;
  left_s: number | null;
  /** Time since its last change, when the server sent it, s. */
  age_s: number;
}

/** From the server; `op` determines the fields. */
interface Message {
  op: "token" | "vehicles" | "stopped" | "refused" | "watching";
  token: number;
  vehicles: Vehicle[];
  unanswered: { topic: string; name: string }[];
  may_steer: boolean;
  all_stopped: string | null;
  limit: string;
  number: number;
  reason: string;
  recording: string;
  link: string;
}

const SUBPROTOCOL = "drone_bridge.helm.v1";
/** WebSocket close code: broken without an end. */
const BROKEN = 1006;
const SHORTEST_GAP_MS = 40;
const SHORTEST_PAUSE_MS = 250, LONGEST_PAUSE_MS = 4_000;
/** Tokens arrive ten times per second. Without tokens the server counts as silent after this time, and as lost after a lease. */
const WATCH_PERIOD_MS = 250;
const SILENT_AFTER_PERIODS = 4;
const LOST_AFTER_PERIODS = 20;
/** Time after which a STOP without confirmation is shown as not received. */
const STOP_UNANSWERED_MS = 1_500;
export const STILL: Motion = { x: 0, y: 0, z: 0, yaw: 0 };

export function isStill(motion: Motion): boolean {
  return AXES.every((axis) => motion[axis] === 0);
}

/** Vehicles that this page wants stopped until the server confirms it. */
interface WantedStop {
  /** All, including later ones; otherwise their topics. */
  isAll: boolean;
  topics: Set<string>;
  number: number;
}

/** Sends "change", "open" and "stop" events, "watching" with a link as detail, "refused" with the reason as detail, and "lost" when a dead connection is closed. */
export class Helm extends EventTarget {
  vehicles: Vehicle[] = [];
  /** Vehicles that have disappeared without confirming STOP. */
  unanswered: { topic: string; name: string }[] = [];
  /** Name of the person who wants all vehicles stopped, including later ones; null without one. */
  allStopped: string | null = null;
  /** Reason why this page may only stop; empty if it may do more. */
  limit = "";
  /** Undefined until the server has said so. */
  maySteer?: boolean;
  isOpen = false;
  readonly link = new LostLink();
  #socket?: WebSocket;
  #token?: number;
  #motion: Motion = STILL;
  #sentMs = 0;
  #pauseMs = SHORTEST_PAUSE_MS;
  #wanted?: WantedStop;
  #shown: string[] = [];
  #stopNumber = 0;
  /** Counted instead of timed: a suspended browser has not waited. */
  #silentPeriods = 0;

  constructor() {
    super();
    setInterval(() => this.#watch(), WATCH_PERIOD_MS);
  }

  /** Time without data on an open connection; 0 while data arrives. */
  get silentSeconds(): number {
    return this.isOpen && this.#silentPeriods >= SILENT_AFTER_PERIODS ? (this.#silentPeriods * WATCH_PERIOD_MS) / 1000 : 0;
  }

  /** Time without data, to a quarter of a second. */
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
      this.#sendWanted();
      this.#sendShown();
      this.dispatchEvent(new Event("open"));
      this.#changed();
    };
    socket.onmessage = (event) => this.#receive(JSON.parse(event.data as string));
    socket.onclose = ({ code, reason }) => socket === this.#socket && this.#onClose(code, reason);
  }

  #onClose(code: number, reason: string): void {
    this.#socket = undefined;
    if (this.isOpen) this.link.lost(Date.now(), code, reason);
    this.isOpen = false;
    this.maySteer = undefined;
    // Last known states with their holds, but without a pilot here.
    this.vehicles = this.vehicles.map((vehicle) => ({ ...vehicle, pilot: null, pilot_name: "", asked: [] }));
    this.#token = undefined;
    this.#changed();
    setTimeout(() => this.connect(), this.#pauseMs);
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2);
  }

  /** Vehicle that is steered from this page. */
  get mine(): Vehicle | undefined {
    return this.vehicles.find((vehicle) => vehicle.pilot === "you");
  }

  /** Report which vehicles a person sees here: their controllers go on holding a goal that was reached. */
  show(topics: string[]): void {
    if (topics.join() === this.#shown.join()) return;
    this.#shown = topics;
    this.#sendShown();
  }

  #sendShown(): void {
    this.#send({ op: "show", vehicles: this.#shown });
  }

  take(topic: string): void {
    this.#sendFresh({ op: "take", vehicle: topic });
  }

  release(): void {
    this.#motion = STILL;
    this.#send({ op: "release" });
  }

  /** Stop a vehicle, or all including later ones. Every page may. It is repeated until the server confirms it. */
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

  /** Send all wanted stops, with any amount of data in the socket's buffer: a STOP is never stale. */
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

  /** Whether the server's confirmation of a STOP is overdue. */
  get isStopUnanswered(): boolean {
    return this.#wanted !== undefined && (!this.isOpen || this.silentSeconds > 0);
  }

  /** Set the name that others see. */
  greet(name: string): void {
    this.#send({ op: "hello", name });
  }

  /** Request the helm of a vehicle from its pilot. */
  ask(topic: string): void {
    this.#send({ op: "ask", vehicle: topic });
  }

  /** Refuse all requests for the helm. */
  keep(): void {
    this.#send({ op: "keep" });
  }

  handOver(number: number): void {
    this.#sendFresh({ op: "hand_over", to: number });
  }

  /** End the hold of a vehicle, or of all. */
  resume(topic?: string): void {
    if (topic === undefined) this.#wanted = undefined;
    else this.#wanted?.topics.delete(topic);
    this.#sendFresh({ op: "resume", vehicle: topic });
  }

  /** Send a goal to a vehicle; its progress is in `vehicles`. */
  setGoal(topic: string, frame: string, x: number, y: number, z: number): void {
    this.#sendFresh({ op: "goal", vehicle: topic, frame, x, y, z });
  }

  /** Have the server play a recording: a "watching" event has its link. */
  watch(recording: string): void {
    this.#send({ op: "watch", recording });
  }

  cancelGoal(topic: string): void {
    this.#send({ op: "cancel_goal", vehicle: topic });
  }

  /** Move the vehicle from now on, until the next call. */
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

  /** Send a request that the server refuses if a stalled connection delivers it late. */
  #sendFresh(request: object): void {
    this.#send({ ...request, token: this.#token });
  }

  #send(request: object): void {
    // Data in the socket's buffer is stale when it is sent: allow only one message to wait.
    if (this.#socket?.readyState === WebSocket.OPEN && this.#socket.bufferedAmount < 1024) {
      this.#socket.send(JSON.stringify(request));
    }
  }

  #watch(): void {
    this.#silentPeriods += 1;
    if (this.#silentPeriods !== LOST_AFTER_PERIODS) return;
    const socket = this.#socket;
    if (socket) this.#onClose(BROKEN, ""); // TCP itself would retry for a quarter of an hour, and close() waits a minute
    socket?.close();
    this.dispatchEvent(new Event("lost"));
  }

  #receive(message: Message): void {
    this.#silentPeriods = 0;
    this.#pauseMs = SHORTEST_PAUSE_MS; // a server without room sends nothing
    if (message.op === "token") {
      this.#token = message.token;
      this.#steer();
    } else if (message.op === "vehicles") {
      this.vehicles = message.vehicles;
      this.unanswered = message.unanswered;
      this.maySteer = message.may_steer;
      this.allStopped = message.all_stopped;
      this.limit = message.limit;
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
