# SPDX-License-Identifier: Apache-2.0
"""A codec: datagrams in, numbers out, and the other way round."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMITS = {"thrust": 1.0, "pitch": 0.5, "roll": 0.5, "yaw": 0.5}


@dataclass
class Seen:
    """What one datagram tells."""

    time: float | None  # s
    roll: float  # rad
    pitch: float
    height: float  # m
    velocity: tuple[float, float, float]  # m/s
    pad: tuple[float, float] | None  # forward and left, m; None while it is not seen


def field(document: Any, name: str) -> Any:
    """Return a field by its path, as imu.orientation.roll; None where it is missing. Raises ValueError."""
    for part in name.split("."):
        if document is None:
            return None
        if not isinstance(document, dict):
            raise ValueError(f"{name} is inside of {document!r}, which is no object.")
        document = document.get(part)
    return document


def number(document: Any, name: str) -> float:
    """Return a number by its path. Raises ValueError."""
    value = field(document, name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= 1e6:
        raise ValueError(f"{name} is {value!r}, and has to be a number.")
    return float(value)


def decode(datagram: bytes) -> Seen:
    """Return what a datagram tells. Raises ValueError, with a sentence, for anything that is none."""
    try:
        document = json.loads(datagram)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"This is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise ValueError(f"The document is {document!r}, and has to be an object.")
    x, y, z = (number(document, f"velocity.{axis}") for axis in "xyz")
    has_pad = field(document, "landing_pad") is not None
    return Seen(
        time=None if document.get("timestamp") is None else number(document, "timestamp"),
        roll=number(document, "imu.orientation.roll"),
        pitch=number(document, "imu.orientation.pitch"),
        height=number(document, "altimeter.altitude"),
        velocity=(x, y, z),
        pad=(number(document, "landing_pad.relative_x"), number(document, "landing_pad.relative_y"))
        if has_pad
        else None,
    )


def encode(thrust: float, pitch: float, roll: float, yaw: float) -> bytes:
    """Return a command. Raises ValueError for what the drone would misread."""
    command = {"thrust": thrust, "pitch": pitch, "roll": roll, "yaw": yaw}
    for name, value in command.items():
        if not (math.isfinite(value) and abs(value) <= LIMITS[name]):
            raise ValueError(f"{name} is {value}, and has to be within -{LIMITS[name]} and {LIMITS[name]}.")
    return json.dumps(command).encode()


if __name__ == "__main__":
    for line in Path(__file__).with_name("wire.jsonl").read_bytes().splitlines():
        print(decode(line))
