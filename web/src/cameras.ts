// SPDX-License-Identifier: Apache-2.0
// Cameras, any number, drawn at the rate that the screen and this machine can sustain.

import { h, panel, setText, setValue } from "./dom";
import type { Fleet } from "./fleet";
import { drawPicture } from "./pictures";
import type { Arrival, Stream } from "./stream";

const RAW = "sensor_msgs/msg/Image";
const COMPRESSED = "sensor_msgs/msg/CompressedImage";
const COMPRESSED_SUFFIX = "/compressed";
/** End of topics that the page can't decode: the bridge publishes their pictures as images, too. */
const VIDEO_SUFFIX = "/h264";
const WAITING = "no images";

/** Image topics of the cameras, the left one before the right. The compressed topic if a camera has both. */
export function cameraTopics(topics: Map<string, string>): string[] {
  const found = [...topics].filter(([topic, type]) => (type === RAW || type === COMPRESSED) && !topic.endsWith(VIDEO_SUFFIX)).map(([topic]) => topic);
  const compressed = new Set(found.filter((topic) => topic.endsWith(COMPRESSED_SUFFIX)));
  return found.filter((topic) => !compressed.has(topic + COMPRESSED_SUFFIX)).sort();
}

/** Sends "change" when cameras appear or disappear, or another one fills the window. */
export class Cameras extends EventTarget {
  readonly element: HTMLElement;
  #grid = h("div.cameras");
  #shown = "";
  #cameras: Camera[] = [];
  #front = 0;
  /** Whether a camera is selected to fill the window. */
  isFilling = false;

  /** `portray` draws the vehicle on a canvas. `problem` returns why its cameras have no image, and what to do; or nothing. */
  constructor(private stream: Stream, private fleet: Fleet, private portray: (canvas: HTMLCanvasElement) => unknown, private problem: () => string) {
    super();
    this.element = panel("cameras", "Cameras", [], this.#grid);
    fleet.addEventListener("change", () => this.#arrange());
    document.addEventListener("visibilitychange", () => this.#arrange());
  }

  get count(): number {
    return this.#cameras.length;
  }

  /** Make a camera fill the window, or none. */
  fill(index: number | undefined): void {
    this.isFilling = index !== undefined;
    this.#bringToFront(index ?? this.#front);
  }

  next(): void {
    this.#bringToFront((this.#front + 1) % this.#cameras.length);
  }

  #bringToFront(index: number): void {
    this.#front = index;
    this.#cameras.forEach(({ element }, at) => element.classList.toggle("front", at === index));
    this.dispatchEvent(new Event("change"));
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
    this.#cameras = topics.map((topic, index) => new Camera(this.stream, prefix + topic, topic, () => this.fill(index), this.portray, this.problem));
    this.#grid.replaceChildren(...this.#cameras.map((camera) => camera.element));
    if (this.#cameras.length === 0) this.isFilling &&= document.hidden;
    this.#bringToFront(0);
  }
}

class Camera {
  readonly element: HTMLElement;
  #canvas = h("canvas", { width: 4, height: 3 });
  #scene = h("canvas.instead", { role: "img", "aria-label": "Its vehicle" });
  #reason = h("p.reason");
  #note = h("span.note", {}, WAITING);
  #newest?: Arrival;
  #shown?: Arrival;
  /** Reason why there is no image. */
  #problem = WAITING;
  #isDrawing = false;
  #drawn = 0;
  #end: () => void;
  #timer: number;

  constructor(stream: Stream, topic: string, name: string, onFill: () => void, portray: (canvas: HTMLCanvasElement) => unknown, problem: () => string) {
    const label = name.replace(/\/?(image_raw)?(\/compressed)?$/, "") || "camera";
    this.#canvas.role = "img";
    this.#canvas.ariaLabel = `Images of ${topic}`;
    this.element = h("figure.camera", { "data-topic": topic },
      this.#canvas, this.#scene, this.#reason, h("button.fill", { "aria-label": `Fill the window with ${label}`, onclick: onFill }),
      h("button.save", { "aria-label": `Save a picture of ${label}`, onclick: () => this.#save(label) }, "Save"), h("figcaption", {}, h("span", {}, label), this.#note));
    this.#end = stream.subscribe(topic, (arrival) => {
      this.#newest = arrival;
      void this.#draw();
    });
    this.#timer = window.setInterval(() => {
      const rate = this.#drawn ? ` · ${this.#drawn} Hz` : "";
      const silentS = this.#shown ? stream.silentS(this.#shown) : 0;
      setValue(this.#note, this.#shown ? `${this.#canvas.width} × ${this.#canvas.height}${rate}` : this.#problem, silentS);
      this.element.classList.toggle("stale", silentS > 0);
      const reason = !this.#shown || silentS > 0 ? problem() : "";
      this.element.classList.toggle("blind", reason !== "");
      setText(this.#reason, reason);
      if (reason) portray(this.#scene);
      this.#drawn = 0;
    }, 1000);
  }

  /** Store the shown image as a file of the browser. */
  #save(label: string): void {
    const time = new Date().toISOString().slice(0, 19).replaceAll(":", "-");
    const link = h("a", { href: this.#canvas.toDataURL("image/png"), download: `${label.replaceAll("/", "_")}_${time}.png` });
    if (this.#shown) link.click();
  }

  close(): void {
    this.#end();
    clearInterval(this.#timer);
  }

  /** Draw the newest image. An image that arrives early replaces it. */
  async #draw(): Promise<void> {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    let arrival: Arrival;
    try {
      await drawPicture(this.#canvas, () => {
        arrival = this.#newest!;
        this.#newest = undefined;
        return arrival.value;
      });
      this.#shown = arrival!;
      this.#drawn += 1;
      this.element.dataset["frames"] = String(Number(this.element.dataset["frames"] ?? 0) + 1);
    } catch (error) {
      this.#problem = (error as Error).message;
    }
    this.#isDrawing = false;
    if (this.#newest) void this.#draw();
  }
}
