// SPDX-License-Identifier: Apache-2.0
// A server without room accepts the connection, and closes it with a reason.
import assert from "node:assert/strict";
import test from "node:test";
import { Helm } from "../src/helm";
import { Stream } from "../src/stream";

class Socket extends EventTarget {
  static readonly OPEN = 1;
  static all: Socket[] = [];
  readonly protocol = "foxglove.sdk.v1";
  readyState = 1;
  onopen?: () => void;
  onmessage?: (event: { data: string }) => void;
  onclose?: (event: { code: number; reason: string }) => void;

  constructor() {
    super();
    Socket.all.push(this);
  }

  send(): void {}

  close(): void {} // reports its end when the other side has answered
}

test("a page without room reports the limit, and tries again ever more rarely", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  Object.assign(globalThis, { WebSocket: Socket, location: new URL("http://localhost:8765/"), fetch: async () => ({ status: 200 }) });
  const stream = new Stream();
  stream.connect();
  for (const pauseMs of [250, 500, 1000]) {
    const socket = Socket.all.at(-1)!;
    const count = Socket.all.length;
    socket.onopen?.();
    assert.notEqual(stream.status, "open");
    socket.onclose?.({ code: 1013, reason: "The limit of 24 viewers is reached." });
    assert.equal(stream.limit, "The limit of 24 viewers is reached.");
    context.mock.timers.tick(pauseMs - 1);
    assert.equal(Socket.all.length, count);
    context.mock.timers.tick(1);
    assert.equal(Socket.all.length, count + 1);
  }
  Socket.all.at(-1)!.onopen?.();
  Socket.all.at(-1)!.onmessage?.({ data: JSON.stringify({ op: "serverInfo", name: "/web_bridge", capabilities: [] }) });
  assert.deepEqual([stream.status, stream.limit], ["open", ""]);
});

test("a page whose WebSocket alone is refused says what a proxy must pass on", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  Object.assign(globalThis, { WebSocket: Socket, location: new URL("http://localhost:8765/"), fetch: async () => ({ status: 200, ok: true }) });
  const stream = new Stream();
  stream.connect();
  for (const refusal of [/^$/, /proxy/]) { // the first one may be of a server that was just starting
    Socket.all.at(-1)!.onclose?.({ code: 1006, reason: "" });
    await new Promise(setImmediate);
    assert.match(stream.refusal, refusal);
    context.mock.timers.tick(1000);
  }
});

test("a connection that broke without an end is replaced at once, and its late end counts no more", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  Object.assign(globalThis, { WebSocket: Socket, location: new URL("http://localhost:8765/") });
  const helm = new Helm();
  const stream = new Stream();
  helm.addEventListener("lost", () => stream.reconnect());
  helm.connect();
  stream.connect();
  const old = Socket.all.slice(-2);
  for (const each of old) each.onopen?.();
  old[1]!.onmessage?.({ data: JSON.stringify({ op: "serverInfo", name: "/web_bridge", capabilities: [] }) });
  const count = Socket.all.length;
  context.mock.timers.tick(5000);
  assert.deepEqual([helm.isOpen, stream.status], [false, "lost"]);
  context.mock.timers.tick(250);
  assert.equal(Socket.all.length, count + 2);
  for (const each of old) each.onclose?.({ code: 1006, reason: "" });
  context.mock.timers.tick(1000);
  assert.equal(Socket.all.length, count + 2);
});
