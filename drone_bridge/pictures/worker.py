# SPDX-License-Identifier: Apache-2.0
"""Child process that decodes, checks and encodes pictures for `codec_process`.

    python3 -m drone_bridge.pictures.worker SOCKET MEMORY

Requests and replies are lines of JSON on a socket, data is in shared memory. A request has `work`, the name of one of
WORK, `bytes`, the size of its data at the start of the memory, and other arguments. A reply has `facts` and `sizes` of
the results, which follow each other in the memory from MAX_DATA_BYTES on; or `refusal`, a sentence. The process exits
when the socket is closed, so it exits with its parent in any case.
"""

import json
import mmap
import os
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from drone_bridge.pictures.codec_process import MAX_DATA_BYTES, MEMORY_BYTES
from drone_bridge.stop_signals import ignore_stop_signals
from drone_bridge.vision.ar_drone_cameras import FRONT
from drone_bridge.vision.h264 import H264Decoder
from drone_bridge.vision.image_error import ImageError
from drone_bridge.vision.jpegs import Pixels, bgr_of_jpeg, jpeg_of_rgb, opencv
from drone_bridge.vision.raw_images import rgb_of_raw
from drone_bridge.vision.uvlc import check, decode, encode
from drone_bridge.wire import jpeg
from drone_bridge.wire.events import ProtocolError

#: Niceness relative to the node, so that the child gets less of a busy machine.
NICENESS = 5

Facts = dict[str, Any]
#: Its pictures need others.
H264 = H264Decoder()


def decoded(packet: bytes, request: Mapping[str, Any]) -> tuple[Facts, list[bytes]]:
    """Decode a picture; return its size and number, its pixels as rgb8, and if `jpeg` is a quality, the JPEG.

    Without a JPEG, the fact `jpeg_problem` has the text of its ImageError. Raises RemoteProtocolError.
    """
    picture = decode(packet)
    facts: Facts = {"width": picture.width, "height": picture.height, "number": picture.number}
    pixels = np.frombuffer(picture.rgb8, np.uint8).reshape(picture.height, picture.width, 3)
    return _results(facts, pixels, picture.rgb8, request)


def _results(facts: Facts, pixels: Pixels, rgb8: bytes, request: Mapping[str, Any]) -> tuple[Facts, list[bytes]]:
    results = [rgb8]
    if quality := request.get("jpeg"):
        try:
            results.append(jpeg_of_rgb(pixels, quality))
        except ValueError as error:
            facts["jpeg_problem"] = str(error)
    return facts, results


def decoded_h264(packet: bytes, request: Mapping[str, Any]) -> tuple[Facts, list[bytes]]:
    """Decode a picture of the stream `stream`; return the same as `decoded` if `is_shown`, else nothing.

    Raises ImageError.
    """
    pixels = H264.decode(packet, request["stream"], is_shown=request["is_shown"])
    if pixels is None:
        return {}, []
    height, width, _ = pixels.shape
    return _results({"width": width, "height": height}, pixels, pixels.tobytes(), request)


def checked(packet: bytes, _: Mapping[str, Any]) -> tuple[Facts, list[bytes]]:
    """Check that a packet may be sent to programs; return its size. Raises RemoteProtocolError."""
    head = check(packet)
    return {"width": head.width, "height": head.height}, []


def encoded(data: bytes, request: Mapping[str, Any]) -> tuple[Facts, list[bytes]]:
    """Encode a raw image with `encoding`, `width`, `height`, `step`; `number` counts packets.

    Raises ImageError.
    """
    pixels = rgb_of_raw(data, *(request[name] for name in ("encoding", "width", "height", "step")))
    return {}, [encode(in_front_size(pixels), number=request["number"])]


def encoded_jpeg(data: bytes, request: Mapping[str, Any]) -> tuple[Facts, list[bytes]]:
    """Encode a JPEG as a packet. Raises ImageError."""
    width, height = jpeg.read_size(data)
    if 3 * width * height > MAX_DATA_BYTES:
        raise ImageError(f"has {width} x {height} pixels (limit {MAX_DATA_BYTES // 3})")
    return {}, [encode(in_front_size(bgr_of_jpeg(data)[..., ::-1]), number=request["number"])]


def in_front_size(pixels: Pixels) -> Pixels:
    """Scale an image to the size of the front camera, with black bars if its aspect ratio differs."""
    height, width, _ = pixels.shape
    if (width, height) == (FRONT.width, FRONT.height):
        return np.ascontiguousarray(pixels)
    scale = min(FRONT.width / width, FRONT.height / height)
    rows, columns = (max(1, round(scale * size)) for size in (height, width))
    fitted = np.zeros((FRONT.height, FRONT.width, 3), np.uint8)
    top, left = (FRONT.height - rows) // 2, (FRONT.width - columns) // 2
    fitted[top : top + rows, left : left + columns] = _scaled(pixels, rows, columns)
    return fitted


def _scaled(pixels: Pixels, rows: int, columns: int) -> Pixels:
    """Scale an image; without OpenCV by nearest neighbours."""
    try:
        cv2 = opencv()
    except ValueError:
        height, width, _ = pixels.shape
        nearest: Pixels = pixels[np.arange(rows) * height // rows][:, np.arange(columns) * width // columns]
        return nearest
    scaled: Pixels = cv2.resize(np.ascontiguousarray(pixels), (columns, rows), interpolation=cv2.INTER_AREA)
    return scaled


WORK: Mapping[str, Callable[[bytes, Mapping[str, Any]], tuple[Facts, list[bytes]]]] = {
    "decode": decoded,
    "decode_h264": decoded_h264,
    "check": checked,
    "encode": encoded,
    "encode_jpeg": encoded_jpeg,
}


def answer(line: bytes, memory: mmap.mmap) -> bytes:
    """Execute one request; return the reply."""
    request = json.loads(line)
    try:
        facts, results = WORK[request["work"]](memory[: request["bytes"]], request)
    except ProtocolError as error:
        return _line({"refusal": str(error)})
    except ValueError as error:
        return _line({"refusal": f"The image {str(error).rstrip('.')}."})
    at = MAX_DATA_BYTES
    for result in results:
        memory[at : at + len(result)] = result
        at += len(result)
    return _line({"facts": facts, "sizes": [len(result) for result in results]})


def _line(reply: Facts) -> bytes:
    return json.dumps(reply).encode() + b"\n"


def main() -> int:
    """Serve until the socket is closed."""
    ignore_stop_signals()  # sent by a terminal or a service manager to all processes of a node
    os.nice(NICENESS)
    with (
        socket.socket(fileno=int(sys.argv[1])) as connection,
        mmap.mmap(int(sys.argv[2]), MEMORY_BYTES) as memory,
        connection.makefile("rb") as requests,
    ):
        try:
            for line in requests:
                connection.sendall(answer(line, memory))
        except ConnectionError:
            pass  # the parent has exited
    return 0


if __name__ == "__main__":
    sys.exit(main())
