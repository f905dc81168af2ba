// SPDX-License-Identifier: Apache-2.0
// Key of the scene's lines: size of the grid, direction of north, and colours of the trails.

import { Vector3, type Camera } from "three";
import { h } from "./dom";
import type { Trail } from "./trail";

export const GRID_M = 1;

export class SceneKey {
  #needle = h("span.needle", {}, "↑");
  #north = h("span.north", { hidden: true }, this.#needle, "N");
  #trails = h("span.trails");
  readonly element = h("div.scene-key", {}, h("span", {}, `grid ${GRID_M} m`), this.#north, this.#trails);
  #shown = "";

  show(camera: Camera, hasNorth: boolean, trails: Iterable<[name: string, trail: Trail]>): void {
    this.#north.hidden = !hasNorth;
    if (hasNorth) this.#needle.style.rotate = `${-headingOf(camera.getWorldDirection(new Vector3()))}deg`;
    const seen = [...trails].flatMap(([name, { look, color }]) => (look ? [{ name, look, color: `#${color.toString(16).padStart(6, "0")}` }] : []));
    const shown = JSON.stringify(seen);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#trails.replaceChildren(...seen.map(({ name, look, color }) => {
      const swatch = h("span", { class: `swatch ${look}` });
      swatch.style.color = color;
      return h("span.trail", { title: look === "dots" ? "Measured positions" : "Path so far" }, swatch, name);
    }));
  }
}

/** Direction in a frame with x east and y north: degrees clockwise from north. */
export function headingOf({ x, y }: { x: number; y: number }): number {
  return (Math.atan2(x, y) * 180) / Math.PI;
}
