// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { QUANTITIES, quantitiesOf, textOf } from "../src/quantities";

const names = (...topics: string[]): string[] => quantitiesOf(undefined, new Map(topics.map((topic) => [topic, ""]))).map(({ name }) => name);

test("a height above ground is an altitude, and one in the frame of the odometry is above the start", () => {
  assert.ok(names("odom").includes("Above start"));
  assert.ok(!names("odom", "height").includes("Above start"));
  assert.ok(names("odom", "height").includes("Altitude"));
});

test("an angle is rounded before it is wrapped: there is no heading of 360 degrees", () => {
  const text = (name: string, value: number): string => textOf(QUANTITIES.find((each) => each.name === name)!, value);
  assert.deepEqual([359.4, 359.6, 0.4, 89.5].map((value) => text("Heading", value)), ["359", "0", "0", "90"]);
  assert.equal(text("Yaw", -0.2), "0");
  assert.equal(text("Altitude", 361.25), "361.25");
});
