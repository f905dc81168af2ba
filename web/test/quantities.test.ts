// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { quantitiesOf } from "../src/quantities";

const names = (...topics: string[]): string[] => quantitiesOf(undefined, new Map(topics.map((topic) => [topic, ""]))).map(({ name }) => name);

test("a height above ground is an altitude, and one in the frame of the odometry is above the start", () => {
  assert.ok(names("odom").includes("Above start"));
  assert.ok(!names("odom", "height").includes("Above start"));
  assert.ok(names("odom", "height").includes("Altitude"));
});
