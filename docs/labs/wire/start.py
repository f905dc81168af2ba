# SPDX-License-Identifier: Apache-2.0
"""Your codec: datagrams in, numbers out, and the other way round."""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Seen:
    """What one datagram tells."""

    time: float | None  # s
    roll: float  # rad
    pitch: float
    height: float  # m
    velocity: tuple[float, float, float]  # m/s
    pad: tuple[float, float] | None  # forward and left, m; None while it is not seen


def decode(datagram: bytes) -> Seen:
    """Return what a datagram tells. Raises ValueError, with a sentence, for anything that is none."""
    document = json.loads(datagram)
    return Seen(document["timestamp"], 0.0, 0.0, 0.0, (0.0, 0.0, 0.0), None)


def encode(thrust: float, pitch: float, roll: float, yaw: float) -> bytes:
    """Return a command. Raises ValueError for what the drone would misread."""
    return b""


if __name__ == "__main__":
    for line in Path(__file__).with_name("wire.jsonl").read_bytes().splitlines():
        print(decode(line))
