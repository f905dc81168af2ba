// SPDX-License-Identifier: Apache-2.0
// What lidars have met, drawn from where each one was when its scan arrived.

import { BufferAttribute, BufferGeometry, type Matrix4, Points, PointsMaterial, type Scene } from "three";
import type { Message, Stream } from "./stream";
import type { Transforms } from "./transforms";

const LOOK = { color: 0xe5484d, size: 3, sizeAttenuation: false };
/** Age above which a scan is no longer drawn. */
const STALE_MS = 2_000;

/** Return the points of a scan in its frame, m: x, y and z of each. Without those out of the lidar's reach. */
function pointsOf({ angle_min: first, angle_increment: step, range_min: least, range_max: most, ranges }: Message): Float32Array {
  const point = (range: number, angle: number): number[] => [range * Math.cos(angle), range * Math.sin(angle), 0];
  return new Float32Array([...(ranges as Iterable<number>)].flatMap((range, ray) => (range >= least && range <= most ? point(range, first + ray * step) : [])));
}

export class Scans {
  /** By topic. Their data are the frame, the time of arrival and, once they are placed, the root. */
  #scans = new Map<string, Points>();

  constructor(world: Scene, private stream: Stream, private transforms: Transforms) {
    stream.addEventListener("graph", () => {
      for (const [topic, { schemaName }] of stream.topics) {
        if (schemaName !== "sensor_msgs/msg/LaserScan" || this.#scans.has(topic)) continue;
        const scan = new Points(new BufferGeometry(), new PointsMaterial(LOOK));
        scan.matrixAutoUpdate = scan.frustumCulled = scan.visible = false;
        this.#scans.set(topic, scan);
        world.add(scan);
        stream.subscribe(topic, ({ value, receivedMs }) => {
          scan.geometry.setAttribute("position", new BufferAttribute(pointsOf(value), 3));
          scan.userData = { frame: value.header.frame_id, receivedMs };
        });
      }
    });
  }

  /** Place new scans, and hide old ones. Return the number of points that are drawn. */
  place(root: string, lift: Matrix4 | undefined): number {
    let drawn = 0;
    for (const scan of this.#scans.values()) {
      const { frame, receivedMs } = scan.userData;
      const isNew = frame !== undefined && (this.stream.isRecording || performance.now() - receivedMs < STALE_MS);
      const pose = isNew && scan.userData["root"] !== root ? this.transforms.toRoot(frame, root) : undefined;
      if (pose) scan.matrix.copy(lift ? pose.premultiply(lift) : pose);
      if (pose) scan.userData["root"] = root;
      scan.visible = isNew && scan.userData["root"] === root;
      if (scan.visible) drawn += scan.geometry.getAttribute("position").count;
    }
    return drawn;
  }
}
