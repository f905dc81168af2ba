// SPDX-License-Identifier: Apache-2.0
// Topics of users' own nodes in the scene: a layer for each drawable topic, each with a switch.

import { Group, Matrix4, type Scene as World } from "three";
import { storage } from "./browser_features";
import { h } from "./dom";
import type { Drawing } from "./drawings";
import type { Stream } from "./stream";
import type { Transforms } from "./transforms";

interface Layer {
  element: HTMLElement;
  input: HTMLInputElement;
  end?: () => void;
  drawing?: Drawing;
}

const LABELS: Record<string, string> = {
  "sensor_msgs/msg/LaserScan": "laser", "sensor_msgs/msg/PointCloud2": "points", "nav_msgs/msg/Path": "path",
  "visualization_msgs/msg/Marker": "marker", "visualization_msgs/msg/MarkerArray": "markers",
  "geometry_msgs/msg/PoseArray": "poses", "geometry_msgs/msg/PoseStamped": "pose", "nav_msgs/msg/OccupancyGrid": "map",
  "sensor_msgs/msg/NavSatFix": "GPS track",
};
/** Off by default: large data, or data that duplicates other drawings. */
const ON_REQUEST = new Set(["sensor_msgs/msg/PointCloud2", "geometry_msgs/msg/PoseStamped"]);
const AXES = "frames of tf";
const STORED = "layers";

export class Layers {
  readonly element = h("div.layers", { hidden: true });
  readonly button = h("button.small", { "aria-expanded": "false", onclick: () => this.#toggle() }, "Layers");
  #layers = new Map<string, Layer>();
  #chosen: Record<string, boolean>;
  #axes?: { place: (frames: Iterable<string>, poseOf: (frame: string) => Matrix4 | undefined) => void; group: Group };

  constructor(private world: World, private stream: Stream, private transforms: Transforms) {
    this.#chosen = { ...(storage.read(STORED) as Record<string, boolean> | undefined) };
    this.#add(AXES, "", () => undefined);
    stream.addEventListener("graph", () => this.#look());
    stream.addEventListener("seek", () => this.#restart());
  }

  #toggle(): void {
    this.element.hidden = !this.element.hidden;
    this.button.setAttribute("aria-expanded", String(!this.element.hidden));
  }

  #look(): void {
    for (const [topic, { schemaName }] of this.stream.topics) {
      if (LABELS[schemaName] && !this.#layers.has(topic)) this.#add(topic, schemaName, () => void this.#follow(topic, schemaName));
    }
    for (const [topic, layer] of this.#layers) {
      if (topic === AXES || this.stream.topics.has(topic) || this.stream.status !== "open") continue;
      this.#end(layer);
      layer.element.remove();
      this.#layers.delete(topic);
    }
    const number = this.#layers.size - 1;
    this.button.textContent = number > 0 ? `Layers (${number})` : "Layers";
  }

  #add(topic: string, type: string, follow: () => void): void {
    const isOn = this.#chosen[topic] ?? (topic !== AXES && !ON_REQUEST.has(type));
    const input = h("input", { type: "checkbox", checked: isOn, onchange: () => {
      this.#chosen[topic] = input.checked;
      storage.set(STORED, JSON.stringify(this.#chosen));
      follow();
    } });
    const element = h("label.check", { "data-layer": topic }, input, topic, type && h("span.topic-type", {}, LABELS[type]));
    this.#layers.set(topic, { element, input });
    this.element.append(element);
    follow();
  }

  async #follow(topic: string, type: string): Promise<void> {
    const layer = this.#layers.get(topic);
    if (!layer) return;
    if (!layer.input.checked) return this.#end(layer);
    if (layer.end) return;
    layer.end = () => undefined; // it is being created
    const { drawingOf } = await import("./drawings");
    if (!layer.input.checked || this.#layers.get(topic) !== layer) return;
    const drawing = drawingOf(type);
    if (!drawing) return;
    layer.drawing = drawing;
    this.world.add(drawing.group);
    layer.end = this.stream.subscribe(topic, (arrival) => {
      drawing.take(arrival);
      layer.element.dataset["drawn"] = String(Number(layer.element.dataset["drawn"] ?? 0) + 1);
      layer.element.dataset["objects"] = String(drawing.group.children.length);
    });
  }

  #end(layer: Layer): void {
    layer.end?.();
    layer.drawing?.close();
    if (layer.drawing) this.world.remove(layer.drawing.group);
    layer.end = layer.drawing = undefined;
  }

  /** Redraw: the current drawing is from another time. */
  #restart(): void {
    for (const [topic, layer] of this.#layers) {
      if (!layer.drawing) continue;
      this.#end(layer);
      void this.#follow(topic, this.stream.topics.get(topic)?.schemaName ?? "");
    }
  }

  /** Position all layers by their frames, relative to the root frame. */
  place(root: string, lift: Matrix4 | undefined): void {
    const poseOf = (frame: string): Matrix4 | undefined => {
      const pose = frame.replace(/^\//, "") === root || frame === "" ? new Matrix4() : this.transforms.toRoot(frame.replace(/^\//, ""), root);
      return pose && lift ? pose.premultiply(lift) : pose;
    };
    for (const { drawing } of this.#layers.values()) {
      if (!drawing) continue;
      if (drawing.frame === undefined) drawing.place?.(poseOf);
      else {
        const pose = poseOf(drawing.frame);
        drawing.group.visible = pose !== undefined;
        pose?.decompose(drawing.group.position, drawing.group.quaternion, drawing.group.scale);
      }
    }
    const areAxesOn = this.#layers.get(AXES)!.input.checked;
    if (areAxesOn && !this.#axes) void import("./drawings").then(({ axesOfFrames }) => {
      if (!this.#axes) this.world.add((this.#axes = axesOfFrames()).group);
    });
    if (this.#axes) {
      this.#axes.group.visible = areAxesOn;
      if (areAxesOn) this.#axes.place(this.transforms.frames, poseOf);
    }
  }
}
