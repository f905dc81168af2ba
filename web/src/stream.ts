// SPDX-License-Identifier: Apache-2.0
// The graph over Foxglove's protocol: topics, services, and a connection that is restored automatically.

import { parse } from "@foxglove/rosmsg";
import { MessageReader, MessageWriter } from "@foxglove/rosmsg2-serialization";
import { FoxgloveClient, StatusLevel, type Channel, type IWebSocket, type Service } from "@foxglove/ws-protocol";

// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Message = any;
export type Definitions = ReturnType<typeof parse>;

export interface When {
  readonly receivedMs: number;
  /** Time of arrival, s since 1970, by this machine's clock or, for a bag, the recorder's. */
  readonly timeS: number;
}

/** Message as received, decoded on first access. */
export interface Arrival extends When {
  readonly bytes: number;
  readonly value: Message;
}
type Listener = (arrival: Arrival) => void;

interface Subscription {
  listeners: Set<Listener>;
  id?: number;
}

const SUBPROTOCOL = "foxglove.sdk.v1";
const CALL_TIMEOUT_MS = 15_000;
const FORBIDDEN = 403;
const NO_SOCKET = "The server accepts this page, but no WebSocket: a proxy must pass on the headers Host, Upgrade and Connection.";
/** Foxglove's playback control: to the server, and from it. */
const CONTROL_OPCODE = 3, STATE_OPCODE = 5;
/** Age above which the last data is stale. */
const SILENT_S = 3;
const SHORTEST_PAUSE_MS = 250, LONGEST_PAUSE_MS = 4_000;
/** Pause after the second failure: the first one may be of a server that was just starting. */
const SOCKET_REFUSED_MS = 1_000;
/** WebSocket close code of a server without room. */
const TRY_AGAIN_LATER = 1013;

/** URL of a socket of this server, with the secret of the page's address. */
export function socketAddress(): string {
  const address = documentAddress(".");
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  return address.href;
}

/** URL of a document of this server, with the same secret. */
export function documentAddress(name: string): URL {
  return new URL(name + location.search, location.href);
}

/** Playback of a recording. */
export class Playback {
  readonly #receivedMs = performance.now();

  constructor(private status: number, private atS: number, readonly speed: number) {}

  get isPlaying(): boolean {
    return this.status === 0;
  }

  /** Current position, s since 1970. */
  get timeS(): number {
    return this.atS + (this.isPlaying ? ((performance.now() - this.#receivedMs) / 1000) * this.speed : 0);
  }
}

/** Sends "playback" and, after a jump, "seek" events of a recording; sends "status" and "graph" events when the connection, or the graph, changes. */
export class Stream extends EventTarget {
  /** Of a topic with several types, the first one. */
  readonly topics = new Map<string, Channel>();
  readonly services = new Map<string, Service>();
  /** Capabilities of the server, such as "clientPublish". */
  capabilities: readonly string[] = [];
  status: "connecting" | "open" | "lost" = "connecting";
  /** Reason why the server refuses this page's address; empty if it does not, or is not reachable. */
  refusal = "";
  /** Reason why the server has no room for this page's topics; empty if it has. */
  limit = "";
  bytesReceived = 0;
  /** Full name of the node that serves this page. */
  node = "";
  /** Of a recording: position and playback. */
  playback?: Playback;
  #client?: FoxgloveClient;
  #socket?: WebSocket;
  #channels = new Map<number, Channel>();
  #subscriptions = new Map<string, Subscription>();
  #topicOf = new Map<number, string>();
  #readers = new Map<string, MessageReader>();
  #calls = new Map<number, { resolve: (data: DataView) => void; reject: (error: Error) => void }>();
  #nextCall = 1;
  #pauseMs = SHORTEST_PAUSE_MS;
  /** Whether topics and channels are those of a closed connection. */
  #isStale = false;

  connect(): void {
    const socket = new WebSocket(socketAddress(), [SUBPROTOCOL]);
    const client = new FoxgloveClient({ ws: socket as unknown as IWebSocket });
    this.#client = client;
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => data instanceof ArrayBuffer && this.#onBinary(new DataView(data)));
    client.on("error", () => undefined); // a close follows
    client.on("close", ({ code, reason }) => client === this.#client && this.#onClose(code === TRY_AGAIN_LATER ? reason : ""));
    client.on("serverInfo", ({ name, capabilities }) => { // a server without room closes before it
      this.#pauseMs = SHORTEST_PAUSE_MS;
      this.refusal = this.limit = "";
      this.node = name;
      this.capabilities = capabilities;
      this.#setStatus("open");
      this.dispatchEvent(new Event("graph"));
    });
    client.on("advertise", (channels) => {
      if (this.#isStale) {
        this.topics.clear();
        this.#channels.clear();
        this.#isStale = false;
      }
      for (const channel of channels) {
        this.#channels.set(channel.id, channel);
        if (!this.topics.has(channel.topic)) this.topics.set(channel.topic, channel);
      }
      for (const channel of channels) this.#follow(channel.topic);
      this.dispatchEvent(new Event("graph"));
    });
    client.on("unadvertise", (ids) => {
      for (const id of ids) {
        const topic = this.#channels.get(id)?.topic ?? "";
        this.#channels.delete(id);
        if (this.topics.get(topic)?.id !== id) continue;
        const subscription = this.#subscriptions.get(topic);
        if (subscription?.id !== undefined) this.#topicOf.delete(subscription.id);
        if (subscription) subscription.id = undefined;
        const other = [...this.#channels.values()].find((channel) => channel.topic === topic);
        if (other) this.topics.set(topic, other);
        else this.topics.delete(topic);
        this.#follow(topic);
      }
      this.dispatchEvent(new Event("graph"));
    });
    client.on("advertiseServices", (services) => {
      for (const service of services) this.services.set(service.name, service);
      this.dispatchEvent(new Event("graph"));
    });
    client.on("unadvertiseServices", (ids) => {
      for (const [name, service] of this.services) if (ids.includes(service.id)) this.services.delete(name);
      this.dispatchEvent(new Event("graph"));
    });
    client.on("status", ({ level, message }) => {
      if (level === StatusLevel.ERROR) this.dispatchEvent(new CustomEvent("error", { detail: message }));
    });
    client.on("message", ({ subscriptionId, timestamp, data }) => this.#onMessage(subscriptionId, timestamp, data as DataView));
    client.on("serviceCallResponse", ({ callId, data }) => {
      this.#calls.get(callId)?.resolve(data as DataView);
      this.#calls.delete(callId);
    });
    client.on("serviceCallFailure", ({ callId, message }) => {
      this.#calls.get(callId)?.reject(new Error(message));
      this.#calls.delete(callId);
    });
  }

  /** Play a recording, or pause it, at a speed, and from another time if one is given. */
  control(isPaused: boolean, speed: number, seekS?: number): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    const id = new TextEncoder().encode("page");
    const request = new DataView(new ArrayBuffer(19 + id.length));
    request.setUint8(0, CONTROL_OPCODE);
    request.setUint8(1, isPaused ? 1 : 0);
    request.setFloat32(2, speed, true);
    request.setUint8(6, seekS === undefined ? 0 : 1);
    request.setBigUint64(7, BigInt(Math.round((seekS ?? 0) * 1e6)) * 1000n, true);
    request.setUint32(15, id.length, true);
    new Uint8Array(request.buffer).set(id, 19);
    this.#socket.send(request);
  }

  #onBinary(view: DataView): void {
    if (view.getUint8(0) !== STATE_OPCODE) return;
    this.playback = new Playback(view.getUint8(1), Number(view.getBigUint64(2, true)) / 1e9, view.getFloat32(10, true));
    if (view.getUint8(14) === 1) this.dispatchEvent(new Event("seek"));
    this.dispatchEvent(new Event("playback"));
  }

  /** Reconnect after a dead connection, without its end: a browser waits a minute for it. */
  reconnect(): void {
    const client = this.#client;
    if (client) this.#onClose("");
    client?.close();
  }

  /** Current time of incoming data, s since 1970. */
  get nowS(): number {
    return this.playback ? this.playback.timeS : Date.now() / 1000;
  }

  /** Whether incoming data is a recording. */
  get isRecording(): boolean {
    return this.capabilities.includes("playbackControl");
  }

  /** Time without data after this arrival, s; 0 while that is normal. */
  silentS({ receivedMs, timeS }: When): number {
    const ageS = this.playback ? this.nowS - timeS : (performance.now() - receivedMs) / 1000;
    return ageS > SILENT_S ? ageS : 0;
  }

  /** Subscribe to a topic, now or when it appears; returns a function that unsubscribes. */
  subscribe(topic: string, listener: Listener): () => void {
    const subscription = this.#subscriptions.get(topic) ?? { listeners: new Set<Listener>() };
    this.#subscriptions.set(topic, subscription);
    subscription.listeners.add(listener);
    this.#follow(topic);
    return () => {
      subscription.listeners.delete(listener);
      this.#follow(topic);
    };
  }

  /** Thinned history of a topic in a recording, and the recording's range, s since 1970. */
  async history(topic: string): Promise<{ span: [number, number]; messages: { timeS: number; value: Message }[] }> {
    const { start_ns, end_ns, messages } = await (await fetch(documentAddress(`history${topic}.json`))).json();
    const reader = this.#reader(this.topics.get(topic)!.schema);
    const bytes = (text: string): Uint8Array => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return {
      span: [Number(start_ns) / 1e9, Number(end_ns) / 1e9],
      messages: messages.map(([time_ns, data]: [string, string]) => ({ timeS: Number(time_ns) / 1e9, value: reader.readMessage(bytes(data)) })),
    };
  }

  /** Definitions of a type by the text from the server, the type itself first. */
  definitions(schema: string): Definitions {
    return parse(schema, { ros2: true });
  }

  /** Call a service; a missing response is an error. */
  async call(name: string, request: Message): Promise<Message> {
    const service = this.services.get(name);
    if (!service?.request || !service.response) throw new Error(`The service ${name} does not exist.`);
    const data = new MessageWriter(this.definitions(service.request.schema)).writeMessage(request);
    const callId = this.#nextCall++;
    const answer = await new Promise<DataView>((resolve, reject) => {
      this.#calls.set(callId, { resolve, reject });
      setTimeout(() => {
        this.#calls.delete(callId);
        reject(new Error("No answer."));
      }, CALL_TIMEOUT_MS);
      this.#client?.sendServiceCallRequest({
        serviceId: service.id, callId, encoding: "cdr", data: new DataView(data.buffer, data.byteOffset, data.byteLength),
      });
    });
    return this.#reader(service.response.schema).readMessage(answer);
  }

  #setStatus(status: Stream["status"]): void {
    this.status = status;
    this.dispatchEvent(new Event("status"));
  }

  /** The old topics stay for their last values until a server announces new ones. */
  #onClose(limit: string): void {
    this.#client = undefined;
    this.limit = limit;
    this.#isStale = true;
    this.services.clear();
    this.#topicOf.clear();
    for (const subscription of this.#subscriptions.values()) subscription.id = undefined;
    for (const call of this.#calls.values()) call.reject(new Error("The connection was lost."));
    this.#calls.clear();
    if (this.status !== "open") void this.#askForRefusal();
    this.#setStatus("lost");
    this.dispatchEvent(new Event("graph"));
    setTimeout(() => this.connect(), this.#pauseMs);
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2);
  }

  /** A browser does not report why a socket was refused. */
  async #askForRefusal(): Promise<void> {
    const answer = await fetch(documentAddress("access.json")).catch(() => undefined);
    const isOnlySocket = answer?.ok && !this.limit && this.#pauseMs >= SOCKET_REFUSED_MS;
    this.refusal = answer?.status === FORBIDDEN ? await answer.text() : isOnlySocket ? NO_SOCKET : "";
    this.#setStatus(this.status);
  }

  /** Subscribe if there is a listener and the topic exists, else unsubscribe. */
  #follow(topic: string): void {
    const subscription = this.#subscriptions.get(topic);
    if (!subscription || this.status !== "open" || this.#isStale) return;
    const channel = this.topics.get(topic);
    const wanted = subscription.listeners.size > 0 && channel?.encoding === "cdr";
    if (wanted && subscription.id === undefined) {
      subscription.id = this.#client!.subscribe(channel.id);
      this.#topicOf.set(subscription.id, topic);
    } else if (!wanted && subscription.id !== undefined) {
      this.#client!.unsubscribe(subscription.id);
      this.#topicOf.delete(subscription.id);
      subscription.id = undefined;
    }
    if (subscription.listeners.size === 0) this.#subscriptions.delete(topic);
  }

  #onMessage(subscriptionId: number, timestamp: bigint, data: DataView): void {
    // Data in transit during a jump is from another time.
    if (this.playback && Math.abs(Number(timestamp) / 1e9 - this.playback.timeS) > Math.max(3, 3 * this.playback.speed)) return;
    this.bytesReceived += data.byteLength;
    const topic = this.#topicOf.get(subscriptionId);
    const channel = topic === undefined ? undefined : this.topics.get(topic);
    const subscription = topic === undefined ? undefined : this.#subscriptions.get(topic);
    if (!channel || !subscription) return;
    let value: Message;
    const read = (): Message => (value ??= this.#reader(channel.schema).readMessage(data));
    const arrival: Arrival = {
      bytes: data.byteLength,
      receivedMs: performance.now(),
      timeS: this.isRecording ? Number(timestamp) / 1e9 : Date.now() / 1000,
      get value() {
        return read();
      },
    };
    for (const listener of [...subscription.listeners]) {
      try {
        listener(arrival);
      } catch (error) {
        console.warn(`A message on ${topic} can't be decoded:`, error);
      }
    }
  }

  #reader(schema: string): MessageReader {
    let reader = this.#readers.get(schema);
    if (!reader) this.#readers.set(schema, (reader = new MessageReader(this.definitions(schema))));
    return reader;
  }
}
