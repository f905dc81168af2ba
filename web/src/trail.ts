// SPDX-License-Identifier: Apache-2.0
// Path of a vehicle: a line or, if its position is measured about once per second, points.

import { BufferAttribute, BufferGeometry, LineBasicMaterial, LineSegments, Points, PointsMaterial, type Scene, Vector3 } from "three";

const MOST_POINTS = 3000;
const STEP_M = 0.03;
const DOT_PX = 5;
/** Of the marks where a path ends, and begins again, because the vehicle has restarted. */
const END_PX = 11;
const OPACITY = 0.85, DIM_OPACITY = 0.3;
/** Time without a change after which a jump is not drawn as a straight line. */
const SLOW_MS = 400;

/** Distinguishes rarely measured positions from a motion, at any drawing rate of the scene. */
export class Cadence {
  #last?: Vector3;
  #changedMs = 0;
  #sameMs = 0;

  /** Return whether a position is the last one. */
  isAt(place: Vector3): boolean {
    return this.#last?.equals(place) ?? false;
  }

  /** Return whether a position has jumped after it was constant for a while. */
  jumps(place: Vector3, nowMs: number): boolean {
    const isSame = this.#last?.equals(place) ?? false;
    if (isSame) {
      this.#sameMs = nowMs;
      return false;
    }
    const jumps = this.#last !== undefined && this.#sameMs - this.#changedMs > SLOW_MS && this.#last.distanceTo(place) >= STEP_M;
    this.#last = place.clone();
    this.#changedMs = this.#sameMs = nowMs;
    return jumps;
  }
}

/** Vertices in a buffer of fixed size: when it is full, the oldest quarter is dropped. */
class Vertices {
  readonly geometry = new BufferGeometry();
  #positions = new Float32Array(MOST_POINTS * 3);
  #count = 0;

  constructor() {
    this.geometry.setAttribute("position", new BufferAttribute(this.#positions, 3));
    this.clear();
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  add(...points: Vector3[]): void {
    if (this.#count + points.length > MOST_POINTS) {
      this.#positions.copyWithin(0, 3 * (MOST_POINTS / 4));
      this.#count -= MOST_POINTS / 4;
    }
    for (const point of points) point.toArray(this.#positions, 3 * this.#count++);
    this.geometry.setDrawRange(0, this.#count);
    this.geometry.attributes["position"]!.needsUpdate = true;
  }

  clear(): void {
    this.#count = 0;
    this.geometry.setDrawRange(0, 0);
  }
}

export class Trail {
  #line = new Vertices();
  #dots = new Vertices();
  #cadence = new Cadence();
  /** Whether the vehicle has restarted, and its next position is not known yet. */
  #isNew = false;
  #ends = new Vertices();
  #last?: Vector3;
  #objects: (LineSegments<BufferGeometry, LineBasicMaterial> | Points<BufferGeometry, PointsMaterial>)[];

  constructor(private world: Scene, readonly color: number) {
    this.#objects = [
      new LineSegments(this.#line.geometry, new LineBasicMaterial({ color, transparent: true, opacity: OPACITY })),
      new Points(this.#dots.geometry, new PointsMaterial({ color, size: DOT_PX, sizeAttenuation: false, transparent: true })),
      new Points(this.#ends.geometry, new PointsMaterial({ color, size: END_PX, sizeAttenuation: false, transparent: true })),
    ];
    for (const object of this.#objects) object.frustumCulled = false;
    world.add(...this.#objects);
  }

  /** Kind of drawing; undefined while there is nothing to draw. */
  get look(): "line" | "dots" | undefined {
    return !this.#dots.isEmpty ? "dots" : this.#line.isEmpty ? undefined : "line";
  }

  /** Whether the path was interrupted by a restart. */
  get isInterrupted(): boolean {
    return !this.#ends.isEmpty;
  }

  /** Dim the path of a vehicle that has left. */
  set isOld(isOld: boolean) {
    for (const { material } of this.#objects) material.opacity = isOld ? DIM_OPACITY : OPACITY;
  }

  /** Mark the end of the path, and the next position as the start of another one, without a line between. */
  interrupt(): void {
    if (!this.#last) return;
    this.#ends.add(this.#last);
    this.#last = undefined;
    this.#isNew = true;
  }

  add(point: Vector3, nowMs: number): void {
    if (this.#isNew) {
      if (this.#cadence.isAt(point)) return; // the last transform is still there
      this.#ends.add(point);
      this.#isNew = false;
      this.#cadence = new Cadence();
    }
    const jumps = this.#cadence.jumps(point, nowMs);
    if (this.#last && this.#last.distanceTo(point) < STEP_M) return;
    if (jumps) this.#dots.add(point);
    else if (this.#last) this.#line.add(this.#last, point);
    this.#last = point.clone();
  }

  clear(): void {
    this.#line.clear();
    this.#dots.clear();
    this.#ends.clear();
    this.#last = undefined;
  }

  remove(): void {
    this.world.remove(...this.#objects);
  }
}
