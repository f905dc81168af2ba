// SPDX-License-Identifier: Apache-2.0
// Cameras, as many as there are, drawn no more often than the screen and this machine can.

import { h, panel, setText } from "./dom";
import type { Fleet } from "./fleet";
import type { Message, Stream } from "./stream";

const RAW = "sensor_msgs/msg/Image";
const COMPRESSED = "sensor_msgs/msg/CompressedImage";
const COMPRESSED_SUFFIX = "/compressed";
const WAITING = "no images";
const BYTES_PER_PIXEL: Record<string, number> = { rgb8: 3, bgr8: 3, rgba8: 4, bgra8: 4, mono8: 1, "8UC1": 1, "8UC3": 3 };

/** The cameras' topics, the left one before the right. Where a camera has both, the compressed topic. */
export function cameraTopics(topics: Map<string, string>): string[] {
  const found = [...topics].filter(([, type]) => type === RAW || type === COMPRESSED).map(([topic]) => topic);
  const compressed = new Set(found.filter((topic) => topic.endsWith(COMPRESSED_SUFFIX)));
  return found.filter((topic) => !compressed.has(topic + COMPRESSED_SUFFIX)).sort();
}

export class Cameras {
  readonly element: HTMLElement;
  #grid = h("div.cameras");
  #shown = "";
  #cameras: Camera[] = [];

  constructor(private stream: Stream, private fleet: Fleet) {
    this.element = panel("cameras", "Cameras", [], this.#grid);
    fleet.addEventListener("change", () => this.#arrange());
    document.addEventListener("visibilitychange", () => this.#arrange());
  }

  #arrange(): void {
    // A hidden tab needs no images.
    const topics = document.hidden ? [] : cameraTopics(this.fleet.topics());
    const { prefix } = this.fleet.subject;
    const wanted = topics.map((topic) => prefix + topic).join("\n");
    this.element.classList.toggle("empty", topics.length === 0 && !document.hidden);
    if (wanted === this.#shown) return;
    this.#shown = wanted;
    for (const camera of this.#cameras) camera.close();
    this.#cameras = topics.map((topic) => new Camera(this.stream, prefix + topic, topic));
    this.#grid.replaceChildren(...this.#cameras.map((camera) => camera.element));
  }
}

class Camera {
  readonly element: HTMLElement;
  #canvas = h("canvas", { width: 4, height: 3 });
  #note = h("span.note", {}, WAITING);
  #newest?: Message;
  #isDrawing = false;
  #drawn = 0;
  #end: () => void;
  #timer: number;

  constructor(private stream: Stream, topic: string, name: string) {
    const label = name.replace(/\/?(image_raw)?(\/compressed)?$/, "") || "camera";
    this.#canvas.role = "img";
    this.#canvas.ariaLabel = `Images of ${topic}`;
    this.element = h("figure.camera", { "data-topic": topic },
      this.#canvas, h("figcaption", {}, h("span", {}, label), this.#note));
    this.#end = stream.subscribe(topic, (arrival) => {
      this.#newest = arrival;
      void this.#draw();
    });
    this.#timer = window.setInterval(() => {
      setText(this.#note, this.#drawn ? `${this.#canvas.width} × ${this.#canvas.height} · ${this.#drawn} Hz` : WAITING);
      this.element.classList.toggle("stale", this.#drawn === 0 && !this.stream.isRecording);
      this.#drawn = 0;
    }, 1000);
  }

  close(): void {
    this.#end();
    clearInterval(this.#timer);
  }

  /** Draw the newest image at the next frame of the screen; one that arrives before replaces it. */
  async #draw(): Promise<void> {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    await new Promise(requestAnimationFrame);
    const picture = this.#newest.value;
    this.#newest = undefined;
    try {
      if ("format" in picture) await this.#drawCompressed(picture);
      else this.#drawRaw(picture);
      this.#drawn += 1;
      this.element.dataset["frames"] = String(Number(this.element.dataset["frames"] ?? 0) + 1);
    } catch (error) {
      setText(this.#note, String(error));
    }
    this.#isDrawing = false;
    if (this.#newest) void this.#draw();
  }

  #resize(width: number, height: number): CanvasRenderingContext2D {
    if (this.#canvas.width !== width || this.#canvas.height !== height) {
      this.#canvas.width = width;
      this.#canvas.height = height;
    }
    return this.#canvas.getContext("2d")!;
  }

  async #drawCompressed(picture: Message): Promise<void> {
    const type = String(picture.format).includes("png") ? "image/png" : "image/jpeg";
    const bitmap = await createImageBitmap(new Blob([picture.data], { type }));
    this.#resize(bitmap.width, bitmap.height).drawImage(bitmap, 0, 0);
    bitmap.close();
  }

  #drawRaw(picture: Message): void {
    const { width, height, step, encoding, data } = picture as {
      width: number; height: number; step: number; encoding: string; data: Uint8Array;
    };
    const size = BYTES_PER_PIXEL[encoding];
    if (!size || data.length < step * height || step < width * size) throw new Error(`${encoding} can't be drawn`);
    const image = new ImageData(width, height);
    const [red, green, blue] = size === 1 ? [0, 0, 0] : encoding.startsWith("bgr") ? [2, 1, 0] : [0, 1, 2];
    const pixels = image.data;
    let to = 0;
    for (let row = 0; row < height; row++) {
      let from = row * step;
      for (let column = 0; column < width; column++, from += size, to += 4) {
        pixels[to] = data[from + red]!;
        pixels[to + 1] = data[from + green]!;
        pixels[to + 2] = data[from + blue]!;
        pixels[to + 3] = 255;
      }
    }
    this.#resize(width, height).putImageData(image, 0, 0);
  }
}
