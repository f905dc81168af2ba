// SPDX-License-Identifier: Apache-2.0
// A server without room accepts the connection, and closes it with a reason.
import assert from "node:assert/strict";
import test from "node:test";
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
