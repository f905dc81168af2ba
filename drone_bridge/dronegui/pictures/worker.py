# SPDX-License-Identifier: Apache-2.0
"""Child process that decodes pictures, for `codec_process`: a request and a reply on a socket, data in shared memory.

    python3 -m drone_bridge.dronegui.pictures.worker SOCKET MEMORY

Requests and replies are lines of JSON. A request has `work`, the name of one of WORK, `bytes`, the size of its data at
the start of the memory, and what that work needs beside. A reply has `facts`, and `sizes` of the results, which follow
each other in the memory from MAX_DATA_BYTES on; or `refusal`, a sentence. The end of the socket ends the process, so it
ends with its parent, however that ends.
"""

import json
import mmap
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from drone_bridge.dronegui.pictures.codec_process import MAX_DATA_BYTES, MEMORY_BYTES
from drone_bridge.dronegui.video import decode
from drone_bridge.vision.jpegs import jpeg_of_rgb
from drone_bridge.wire.events import ProtocolError

#: By how much less the child gets of a busy machine than its node.
NICENESS = 5

Facts = dict[str, Any]


def decoded(packet: bytes, request: Mapping[str, Any]) -> tuple[Facts, list[bytes]]:
    """Return a picture's size and number, its pixels as rgb8, and if `jpeg` is a quality, the JPEG.

    Where no JPEG can be made, the fact `jpeg_problem` says why, in half a sentence. Raises RemoteProtocolError.
    """
    picture = decode(packet)
    facts: Facts = {"width": picture.width, "height": picture.height, "number": picture.number}
    results = [picture.rgb8]
    if quality := request.get("jpeg"):
        pixels = np.frombuffer(picture.rgb8, np.uint8).reshape(picture.height, picture.width, 3)
        try:
            results.append(jpeg_of_rgb(pixels, quality))
        except ValueError as error:
            facts["jpeg_problem"] = str(error)
    return facts, results


WORK: Mapping[str, Callable[[bytes, Mapping[str, Any]], tuple[Facts, list[bytes]]]] = {"decode": decoded}


def answer(line: bytes, memory: mmap.mmap) -> bytes:
    """Carry out one request; return the reply."""
    request = json.loads(line)
    try:
        facts, results = WORK[request["work"]](memory[: request["bytes"]], request)
    except ProtocolError as error:
        return json.dumps({"refusal": str(error)}).encode() + b"\n"
    at = MAX_DATA_BYTES
    for result in results:
        memory[at : at + len(result)] = result
        at += len(result)
    return json.dumps({"facts": facts, "sizes": [len(result) for result in results]}).encode() + b"\n"


def main() -> int:
    """Serve until the other end of the socket is closed."""
    for number in (signal.SIGINT, signal.SIGTERM):  # which a terminal or a service manager sends to all of a node
        signal.signal(number, signal.SIG_IGN)
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
            pass  # the parent has ended
    return 0


if __name__ == "__main__":
    sys.exit(main())
