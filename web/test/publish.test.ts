// SPDX-License-Identifier: Apache-2.0
// Repeated publishing ends when nobody looks, and with the connection.
import assert from "node:assert/strict";
import test from "node:test";
import type { Helm } from "../src/helm";
import { Publisher } from "../src/publish";
import type { Stream } from "../src/stream";

/** As much of an element as the form of a message without fields needs. */
class Element extends EventTarget {
  readonly classList = { add: () => undefined, toggle: () => undefined };
  hidden = false;
  disabled = false;
  textContent = "";
  value = "";
  append(): void {}
  replaceChildren(): void {}
  setAttribute(): void {}
  scrollIntoView(): void {}
}

async function publishing(mock: { timers: { enable: (options: object) => void; tick: (ms: number) => void } }) {
  mock.timers.enable({ apis: ["setInterval"] });
  const made: Element[] = [];
  const page = Object.assign(new EventTarget(), { hidden: false, body: new Element(), createElement: () => (made.push(new Element()), made.at(-1)!), createElementNS: () => new Element() });
  const takers = [{ topic: "/goal", type: "std_msgs/msg/Empty", schema: "" }];
  Object.assign(globalThis, { document: page, window: globalThis, location: new URL("http://localhost/"), fetch: async () => ({ json: async () => takers }) });
  const helm = Object.assign(new EventTarget(), { vehicles: [], emergencyOn: () => undefined });
  let count = 0;
  const stream = Object.assign(new EventTarget(), {
    topics: new Map(), capabilities: ["clientPublish"], status: "open", node: "/web_bridge", definitions: () => [{ definitions: [] }],
    call: async () => ({ values: [] }), publish: () => (count += 1),
  });
  const publisher = new Publisher(stream as unknown as Stream, helm as unknown as Helm);
  await publisher.open("/goal");
  const repeat = made.find(({ textContent }) => textContent === "Publish repeatedly")!;
  repeat.dispatchEvent(new Event("click"));
  mock.timers.tick(1000);
  const before = count;
  assert.ok(before > 1);
  return { page, stream, published: () => (mock.timers.tick(10_000), count - before) };
}

test("a lost connection ends repeated publishing", async ({ mock }) => {
  const { stream, published } = await publishing(mock);
  stream.status = "lost";
  stream.dispatchEvent(new Event("status"));
  stream.status = "open";
  stream.dispatchEvent(new Event("status"));
  assert.equal(published(), 0);
});

test("a hidden page ends repeated publishing", async ({ mock }) => {
  const { page, published } = await publishing(mock);
  page.hidden = true;
  page.dispatchEvent(new Event("visibilitychange"));
  assert.equal(published(), 0);
});
