// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Helm, Vehicle } from "../src/helm";
import { whenRestarted } from "../src/restarts";

test("a vehicle whose node reports another run has restarted, also after it was gone", () => {
  const helm = new EventTarget() as EventTarget & { vehicles: Partial<Vehicle>[] };
  const restarted: string[] = [];
  whenRestarted(helm as unknown as Helm, (topic) => restarted.push(topic));
  const vehicles = (...runs: string[]): void => {
    helm.vehicles = runs.map((run, index) => ({ topic: `/${index}`, runs: Object.fromEntries([...run].map((id, node) => [`/node_${node}`, id])) }));
    helm.dispatchEvent(new Event("change"));
  };
  vehicles("a", "x");
  vehicles("a", "x");
  assert.deepEqual(restarted, []);
  vehicles();
  vehicles("", "x"); // discovered, without a report yet
  vehicles("", "xy"); // another node of it has reported
  assert.deepEqual(restarted, []);
  vehicles("b", "xy");
  assert.deepEqual(restarted, ["/0"]);
});
