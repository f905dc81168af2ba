// SPDX-License-Identifier: Apache-2.0
// Scans of a lidar in the scene.
import assert from "node:assert/strict";
import test from "node:test";
import { type Points, Scene, Vector3 } from "three";
import { Scans } from "../src/scans";
import type { Stream } from "../src/stream";
import { Transforms } from "../src/transforms";

const SCAN = { header: { frame_id: "laser" }, angle_min: 0, angle_increment: Math.PI / 2, range_min: 0.5, range_max: 5, ranges: [1, 2, Infinity, 0.1] };

test("a scan is drawn counter-clockwise from where its lidar was, without what it did not meet, and not when it is old", () => {
  const takes = new Map<string, (arrival: unknown) => void>();
  const topics = new Map([["/scan", { schemaName: "sensor_msgs/msg/LaserScan" }], ["/odom", { schemaName: "nav_msgs/msg/Odometry" }]]);
  const target = new EventTarget();
  const stream = Object.assign(target, { status: "open", isRecording: false, topics, subscribe: (topic: string, take: (arrival: unknown) => void) => takes.set(topic, take) }) as unknown as Stream;
  const transforms = new Transforms(stream);
  const world = new Scene();
  const scans = new Scans(world, stream, transforms);
  target.dispatchEvent(new Event("graph"));
  const move = (x: number): void => takes.get("/tf")!({ receivedMs: performance.now(), value: { transforms: [
    { header: { frame_id: "odom" }, child_frame_id: "laser", transform: { translation: { x, y: 0, z: 0.1 }, rotation: { x: 0, y: 0, z: Math.SQRT1_2, w: Math.SQRT1_2 } } },
  ] } });
  const receive = (ageMs: number): void => takes.get("/scan")!({ receivedMs: performance.now() - ageMs, value: SCAN });
  const place = (): number[][] => {
    if (scans.place("odom", undefined) === 0) return [];
    const { geometry, matrix } = world.children[0] as Points;
    const position = geometry.attributes["position"]!;
    return Array.from({ length: position.count }, (_, at) => new Vector3().fromBufferAttribute(position as never, at).applyMatrix4(matrix).toArray().map((each) => Math.round(100 * each) / 100 + 0));
  };
  receive(0);
  assert.deepEqual(place(), []); // its frame is unknown yet
  move(3);
  assert.deepEqual(place(), [[3, 1, 0.1], [1, 0, 0.1]]); // the lidar looks along y
  move(4);
  assert.deepEqual(place(), [[3, 1, 0.1], [1, 0, 0.1]]); // until the next scan
  receive(0);
  assert.deepEqual(place(), [[4, 1, 0.1], [2, 0, 0.1]]);
  receive(3_000);
  assert.deepEqual(place(), []);
  assert.equal(world.children.length, 1);
});
