// SPDX-License-Identifier: Apache-2.0
// Tree of frames from /tf and /tf_static.

import { Matrix4, Quaternion, Vector3 } from "three";
import { areFinite } from "./browser_features";
import type { Message, Stream } from "./stream";

interface Edge {
  parent: string;
  toParent: Matrix4;
  receivedMs: number;
  isStatic: boolean;
}

const DEEPEST = 64;
/** Age above which a transform is no longer drawn. */
const STALE_MS = 3_000;
const ONE = new Vector3(1, 1, 1);

/** Whether a frame is that of a pad which a drone sees. */
export function isPad(frame: string): boolean {
  return frame.endsWith("landing_pad");
}

export class Transforms {
  #edges = new Map<string, Edge>();

  constructor(private stream: Stream) {
    stream.subscribe("/tf", (arrival) => this.#take(arrival.value, arrival.receivedMs, false));
    stream.subscribe("/tf_static", (arrival) => this.#take(arrival.value, arrival.receivedMs, true));
    stream.addEventListener("status", () => stream.status === "open" && this.#edges.clear());
    stream.addEventListener("seek", () => this.#edges.clear());
  }

  /** All frames, parents and children. */
  get frames(): Iterable<string> {
    return new Set([...this.#edges.keys(), ...[...this.#edges.values()].map(({ parent }) => parent)]);
  }

  /** Any frame, if no other is more suitable. */
  get first(): string {
    return this.#edges.keys().next().value ?? "";
  }

  /** Root of the tree that a frame is in. */
  root(frame: string): string {
    let top = frame;
    for (let depth = 0; depth < DEEPEST; depth++) {
      const edge = this.#edges.get(top);
      if (!edge) break;
      top = edge.parent;
    }
    return top;
  }

  /** Pad above a frame in the tree, such as that on a rover; undefined if there is none. */
  padOf(frame: string): string | undefined {
    let at: string | undefined = frame;
    for (let depth = 0; depth < DEEPEST && at !== undefined && !isPad(at); depth++) at = this.#edges.get(at)?.parent;
    return at !== undefined && isPad(at) ? at : undefined;
  }

  /** Time at which the transform of a frame was received; undefined before that. */
  receivedMs(frame: string): number | undefined {
    return this.#edges.get(frame)?.receivedMs;
  }

  /** Transform from a frame to the root; undefined if another tree is between or, unless `mayBeOld`, a stale transform. */
  toRoot(frame: string, root: string, mayBeOld = false): Matrix4 | undefined {
    const pose = new Matrix4();
    let at = frame;
    for (let depth = 0; depth < DEEPEST && at !== root; depth++) {
      const edge = this.#edges.get(at);
      if (!edge || (!mayBeOld && !edge.isStatic && !this.stream.isRecording && this.stream.status === "open" && performance.now() - edge.receivedMs > STALE_MS)) return undefined;
      pose.premultiply(edge.toParent);
      at = edge.parent;
    }
    return at === root ? pose : undefined;
  }

  #take(message: Message, receivedMs: number, isStatic: boolean): void {
    for (const { header, child_frame_id: child, transform } of message.transforms) {
      const { translation, rotation } = transform;
      if (!areFinite(translation, rotation)) continue;
      const toParent = new Matrix4().compose(
        new Vector3(translation.x, translation.y, translation.z),
        new Quaternion(rotation.x, rotation.y, rotation.z, rotation.w),
        ONE,
      );
      this.#edges.set(child, { parent: header.frame_id, toParent, receivedMs, isStatic });
    }
  }
}
