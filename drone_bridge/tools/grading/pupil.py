# SPDX-License-Identifier: Apache-2.0
"""A submission that is a class: told what is observed, it says what to do. Runs in the submission's box.

    python3 -m drone_bridge.tools.grading.pupil DESCRIPTOR pilot.py:Pilot

Towards the grader only numbers travel, so that nothing that it sends can be anything but an action.
"""

from __future__ import annotations

import importlib.util
import io
import socket
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

#: Before each message: its length in bytes.
HEADER = struct.Struct("<I")
_WHOLE = "state"  # an observation without images is this alone


def receive(peer: socket.socket, most: int) -> bytes:
    """Return the next message. Raises EOFError when there is none, and ValueError for one longer than `most`."""
    (length,) = HEADER.unpack(_exactly(peer, HEADER.size))
    if length > most:
        raise ValueError(f"a message has {length} bytes, and may have {most}")
    return _exactly(peer, length)


def _exactly(peer: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        part = peer.recv(count - len(received))
        if not part:
            raise EOFError("the other end has left")
        received += part
    return bytes(received)


def packed(observation: Any) -> bytes:
    """Return an observation of Gymnasium, an array or a dict of arrays, as bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, **(observation if isinstance(observation, Mapping) else {_WHOLE: observation}))
    return buffer.getvalue()


def _unpacked(data: bytes) -> Any:
    found = dict(np.load(io.BytesIO(data)))
    return found[_WHOLE] if len(found) == 1 else found


def _load(word: str) -> Any:
    """Return the class that pilot.py:Pilot names."""
    file, _, name = word.rpartition(":")
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if not spec or not spec.loader:
        raise SystemExit(f"{file or word} is no Python file; a class is named as in pilot.py:Pilot.")
    sys.path.insert(0, str(Path(file).parent))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def main(descriptor: str, word: str) -> None:
    """Answer observations with actions until the other end leaves."""
    pilot = _load(word)()
    with socket.socket(fileno=int(descriptor)) as peer:
        try:
            while True:
                action = np.asarray(pilot.act(_unpacked(receive(peer, 2**28))), np.float32).tobytes()
                peer.sendall(HEADER.pack(len(action)) + action)
        except (EOFError, ConnectionError):
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
