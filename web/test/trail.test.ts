// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { Scene, Vector3 } from "three";
import { headingOf } from "../src/scene_key";
import { Cadence, Trail } from "../src/trail";

const at = (x: number): Vector3 => new Vector3(x, 0, 0);

test("a position that is measured once per second and drawn thirty times jumps, and a moving one does not", () => {
  const cadence = new Cadence();
  const jumps: boolean[] = [];
  for (let ms = 0; ms <= 3500; ms += 33) if (cadence.jumps(at(Math.floor(ms / 1000)), ms)) jumps.push(true);
  assert.equal(jumps.length, 3);
  const moving = new Cadence();
  for (let ms = 0; ms <= 3000; ms += 33) assert.equal(moving.jumps(at(ms / 1000), ms), false);
});

test("a scene that is drawn once per second shows a motion without jumps", () => {
  const cadence = new Cadence();
  for (let s = 0; s < 10; s++) assert.equal(cadence.jumps(at(s), 1000 * s), false);
});

test("a trail is a line for a motion, dots for jumps, and empty after it is cleared", () => {
  const line = new Trail(new Scene(), 0);
  assert.equal(line.look, undefined);
  for (let ms = 0; ms < 20_000; ms += 33) line.add(at(ms / 500), ms);
  assert.equal(line.look, "line");
  const dots = new Trail(new Scene(), 0);
  for (let ms = 0; ms < 5_000; ms += 33) dots.add(at(Math.floor(ms / 1000)), ms);
  assert.equal(dots.look, "dots");
  dots.clear();
  assert.equal(dots.look, undefined);
});

test("north is up while the camera looks along y", () => {
  assert.deepEqual([[0, 1], [1, 0], [0, -1]].map(([x, y]) => headingOf({ x: x!, y: y! })), [0, 90, 180]);
});

test("a restarted vehicle's path has two marks and no line between, and its last position begins none", () => {
  const trail = new Trail(new Scene(), 0);
  for (let ms = 0; ms < 2_000; ms += 33) trail.add(at(ms / 500), ms);
  assert.equal(trail.isInterrupted, false);
  trail.interrupt();
  trail.add(at(1980 / 500), 2_010); // the last transform, drawn again
  assert.equal(trail.look, "line");
  for (let ms = 3_000; ms < 4_000; ms += 33) trail.add(at(100 + ms / 500), ms);
  assert.equal(trail.isInterrupted, true);
  assert.equal(trail.look, "line"); // no dot for the jump
  trail.clear();
  assert.equal(trail.isInterrupted, false);
});
