// SPDX-License-Identifier: Apache-2.0
// Draws ROS images, raw and compressed.

import { drawing } from "./drawing_budget";
import type { Message } from "./stream";

const BYTES_PER_PIXEL: Record<string, number> = { rgb8: 3, bgr8: 3, rgba8: 4, bgra8: 4, mono8: 1, "8UC1": 1, "8UC3": 3 };

/** Draw the newest Image or CompressedImage in turn. Throws an Error for unsupported images. */
export async function drawPicture(canvas: HTMLCanvasElement, newest: () => Message): Promise<void> {
  await drawing.turn(canvas);
  const picture = drawing.charge(newest);
  if ("format" in picture) await drawCompressed(canvas, picture);
  else drawing.charge(() => drawRaw(canvas, picture));
}

function resized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  return canvas.getContext("2d")!;
}

async function drawCompressed(canvas: HTMLCanvasElement, picture: Message): Promise<void> {
  const type = String(picture.format).includes("png") ? "image/png" : "image/jpeg";
  const bitmap = await createImageBitmap(new Blob([picture.data], { type }));
  drawing.charge(() => resized(canvas, bitmap.width, bitmap.height).drawImage(bitmap, 0, 0));
  bitmap.close();
}

function drawRaw(canvas: HTMLCanvasElement, picture: Message): void {
  const { width, height, step, encoding, data } = picture as {
    width: number; height: number; step: number; encoding: string; data: Uint8Array;
  };
  const size = BYTES_PER_PIXEL[encoding];
  if (!size || data.length < step * height || step < width * size) throw new Error(`${encoding} is not supported`);
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
  resized(canvas, width, height).putImageData(image, 0, 0);
}
