// SPDX-License-Identifier: Apache-2.0
// A vehicle that is gone for a moment stays the subject of STOP, takeoff and goals.
import assert from "node:assert/strict";
import test from "node:test";
import { Fleet } from "../src/fleet";
import type { Helm, Vehicle } from "../src/helm";
import type { Stream } from "../src/stream";

function server(): { fleet: Fleet; see: (...names: string[]) => void } {
  const helm = Object.assign(new EventTarget(), { vehicles: [] as Vehicle[] });
  const stream = Object.assign(new EventTarget(), { topics: new Map() });
  const fleet = new Fleet(stream as unknown as Stream, helm as unknown as Helm);
  const see = (...names: string[]): void => {
    helm.vehicles = names.map((name) => ({ topic: `/${name}/cmd_vel_stamped`, name }) as Vehicle);
    helm.dispatchEvent(new Event("change"));
  };
  return { fleet, see };
}

const shown = ({ subject }: Fleet): string => `${subject.name}${subject.vehicle ? "" : " gone"}`;

test("a chosen vehicle stays the subject while its bridge restarts", () => {
  const { fleet, see } = server();
  see("a", "b");
  fleet.choose("/b/");
  assert.equal(shown(fleet), "b");
  see("a");
  assert.equal(shown(fleet), "b gone");
  assert.deepEqual(fleet.subjects.map(({ name }) => name), ["a", "b"]);
  see();
  see("a");
  assert.equal(shown(fleet), "b gone");
  see("a", "b");
  assert.equal(shown(fleet), "b");
});

test("the vehicle that is shown first stays the subject, whichever leaves or appears", () => {
  const { fleet, see } = server();
  see("b");
  see("a", "b");
  assert.equal(shown(fleet), "b");
  see("a", "c");
  assert.equal(shown(fleet), "b gone");
});

test("a vehicle that has left disappears once another is chosen", () => {
  const { fleet, see } = server();
  see("a", "b");
  see("b");
  assert.equal(shown(fleet), "a gone");
  fleet.choose("/b/");
  assert.equal(shown(fleet), "b");
  assert.deepEqual(fleet.subjects.map(({ name }) => name), ["b"]);
});
