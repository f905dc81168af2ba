// SPDX-License-Identifier: Apache-2.0
// Frames of a vehicle whose odometry fails for a moment.
import assert from "node:assert/strict";
import test from "node:test";
import type { Stream } from "../src/stream";
import { Transforms } from "../src/transforms";

test("a transform without numbers leaves the frame where it was", () => {
  const takes = new Map<string, (arrival: unknown) => void>();
  const stream = Object.assign(new EventTarget(), { status: "open", isRecording: false, subscribe: (topic: string, take: (arrival: unknown) => void) => takes.set(topic, take) });
  const transforms = new Transforms(stream as unknown as Stream);
  const receive = (x: number, w = 1): void => takes.get("/tf")!({
    receivedMs: performance.now(),
    value: { transforms: [{ header: { frame_id: "odom" }, child_frame_id: "base_link", transform: { translation: { x, y: 0, z: 0 }, rotation: { x: 0, y: 0, z: 0, w } } }] },
  });
  receive(1);
  receive(NaN);
  receive(2, NaN);
  assert.equal(transforms.toRoot("base_link", "odom")!.elements[12], 1);
});
