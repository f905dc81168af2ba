// SPDX-License-Identifier: Apache-2.0
// One picture for each camera, by a topic that the page can decode.
import assert from "node:assert/strict";
import test from "node:test";
import { cameraTopics } from "../src/cameras";

test("a camera with raw, compressed and H.264 topics has one picture", () => {
  const [raw, compressed] = ["sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"];
  const drone = { image_raw: raw, "image_raw/compressed": compressed, "image_raw/h264": compressed };
  const tello = { "camera/image_raw": raw, "camera/image_raw/h264": compressed, odom: "nav_msgs/msg/Odometry" };
  assert.deepEqual(cameraTopics(new Map(Object.entries({ ...drone, ...tello }))), ["camera/image_raw", "image_raw/compressed"]);
});
