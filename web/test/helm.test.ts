// SPDX-License-Identifier: Apache-2.0
// What the page may do is unknown until the server says so on this connection.
import assert from "node:assert/strict";
import test from "node:test";
import { Helm } from "../src/helm";

test("a page is view only as soon as the server has said so, and not while the connection is being made", (context) => {
  context.mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
  const socket: { onopen?: () => void; onmessage?: (event: object) => void; onclose?: (event: object) => void; send: () => void } = { send: () => undefined };
  const WebSocket = Object.assign(function () { return socket; }, { OPEN: 1 });
  Object.assign(globalThis, { WebSocket, location: { href: "http://h/", search: "", protocol: "http:" } });
  const helm = new Helm();
  const seen: unknown[] = [helm.maySteer];
  helm.connect();
  for (const may_steer of [false, true]) {
    socket.onopen!();
    seen.push(helm.maySteer);
    socket.onmessage!({ data: JSON.stringify({ op: "vehicles", vehicles: [], unanswered: [], may_steer }) });
    seen.push(helm.maySteer);
    socket.onclose!({ code: 1001, reason: "" });
    context.mock.timers.tick(250); // it connects again
  }
  assert.deepEqual([...seen, helm.maySteer], [undefined, undefined, false, undefined, true, undefined]);
});
