// SPDX-License-Identifier: Apache-2.0
// Sightings: places of pads that a drone sees. The last one stays where it was, or below a drone that has landed on it.

import { Matrix4, Vector3 } from "three";

/** Age above which a sighting is marked as old. */
const OLD_MS = 1_000;
/** A drone that lands stands on the pad if it saw it within this time, and this near. */
const LANDED_MS = 1_000, LANDED_M = 0.5;

/** Report of a drone, with its time of arrival. */
export interface Landed {
  isLanded: boolean;
  receivedMs: number;
}

/** Pose without its tilt. */
export function levelled(pose: Matrix4): Matrix4 {
  const forward = new Vector3().setFromMatrixColumn(pose, 0);
  return new Matrix4().makeRotationZ(Math.atan2(forward.y, forward.x)).setPosition(new Vector3().setFromMatrixPosition(pose));
}

export class Sighting {
  /** Pose of the pad in the root frame; undefined before the first sighting. */
  pose?: Matrix4;
  #seenMs = -Infinity;
  /** Position of the pad relative to the drone, in level axes with its heading. */
  #relative?: Vector3;
  #stands?: boolean;
  /** Whether the drone stands on it, as seen here, or only told by the page's server. */
  #below?: "seen" | "told";

  /** Take the pad's transform once, with the pose of the drone which has sent it. */
  see(pose: Matrix4, receivedMs: number, drone: Matrix4): void {
    if (receivedMs === this.#seenMs) return;
    this.#seenMs = receivedMs;
    this.pose = pose;
    this.#relative = new Vector3().setFromMatrixPosition(pose).applyMatrix4(levelled(drone).invert());
  }

  /** Keep the pad below a drone that has landed on it. `below`: the page's server saw that, `gear`: of the drone, m. */
  stand(landed: Landed | undefined, drone: Matrix4, gear: number, below?: { x: number; y: number } | null): void {
    const has = landed?.isLanded && this.#stands === false;
    this.#stands = landed?.isLanded;
    if (!this.#stands) this.#below = undefined;
    else if (has && this.#relative && landed!.receivedMs - this.#seenMs < LANDED_MS && this.#relative.length() < LANDED_M) this.#below = "seen";
    else if (below && !this.#below) {
      this.#relative = new Vector3(below.x, below.y, 0);
      this.#below = "told";
    }
    if (this.#below) this.pose = levelled(drone).multiply(new Matrix4().makeTranslation(this.#relative!.x, this.#relative!.y, -gear));
  }

  /** Age of a sighting that is old, s; 0 for one that is not. */
  oldS(nowMs: number): number {
    const ageMs = nowMs - this.#seenMs;
    return ageMs > OLD_MS && this.#below !== "seen" ? ageMs / 1000 : 0;
  }
}
