// SPDX-License-Identifier: Apache-2.0
// A rover that a drone sees by its pad stays where it was seen last, or below the drone that has landed on it.
import assert from "node:assert/strict";
import test from "node:test";
import { Matrix4, Vector3 } from "three";
import { Sighting } from "../src/sightings";

const GEAR_M = 0.1;
const at = (x: number, z: number, yaw = 0): Matrix4 => new Matrix4().makeRotationZ(yaw).setPosition(x, 0, z);
const place = ({ pose }: Sighting): number[] => new Vector3().setFromMatrixPosition(pose!).toArray().map((value) => Math.round(1000 * value) / 1000);
const flown = (isLanded: boolean, receivedMs: number) => ({ isLanded, receivedMs });

test("a pad that is not seen any more stays where it was, and is old after a second", () => {
  const pad = new Sighting();
  assert.equal(pad.pose, undefined);
  pad.see(at(2, 0.3), 0, at(2, 3));
  pad.see(at(7, 0.3), 0, at(7, 3)); // the same transform, below a drone that has flown on
  assert.deepEqual(place(pad), [2, 0, 0.3]);
  assert.deepEqual([pad.oldS(1000), pad.oldS(1100), pad.oldS(5000)], [0, 1.1, 5]);
  pad.see(at(8, 0.3), 5100, at(8, 3));
  assert.deepEqual([place(pad), pad.oldS(5200)], [[8, 0, 0.3], 0]);
});

test("a drone that lands stands on the pad that it saw within 1 s and 0.5 m, until it flies", () => {
  for (const [height, lateMs, isBelow] of [[0.4, 900, true], [0.4, 1100, false], [0.6, 900, false]] as const) {
    const pad = new Sighting();
    pad.see(at(1.2, 0.3), 1000, at(1, 0.3 + height));
    pad.stand(flown(false, 0), at(1, 0.3 + height), GEAR_M);
    pad.stand(flown(true, 1000 + lateMs), at(1, 0.4), GEAR_M);
    pad.stand(flown(true, 1000 + lateMs), at(5, 0.42, Math.PI), GEAR_M); // carried by the rover, which has turned
    assert.deepEqual(place(pad), isBelow ? [4.8, 0, 0.32] : [1.2, 0, 0.3]);
    assert.equal(pad.oldS(9000) > 0, !isBelow);
    pad.stand(flown(false, 10_000), at(6, 1), GEAR_M);
    assert.deepEqual(place(pad), isBelow ? [4.8, 0, 0.32] : [1.2, 0, 0.3]);
    assert.ok(pad.oldS(9000) > 0);
  }
});

test("a page that is opened after the landing draws what its server saw, as old", () => {
  const late = new Sighting();
  late.stand(flown(true, 50), at(1, 0.4), GEAR_M);
  assert.equal(late.pose, undefined);
  late.stand(flown(true, 50), at(1, 0.4), GEAR_M, { x: 0.1, y: 0 });
  assert.deepEqual(place(late), [1.1, 0, 0.3]);
  assert.ok(late.oldS(60) > 0);
});
