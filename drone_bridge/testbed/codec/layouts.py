# SPDX-License-Identifier: Apache-2.0
"""Detects the layout of the bytes after the images of a frame.

No field on the wire says it, but the protocol's strict turns do: after a frame a testbed sends nothing until it is
answered, so the frame ends where silence begins. That distinguishes 12 bytes from 28. Of the two layouts with 12 bytes
the documented one is assumed: nothing in a single frame distinguishes a yaw from a roll.
"""

import struct
from collections.abc import Mapping
from typing import Final

from drone_bridge.testbed.codec.messages import AngleUnit, AttitudeLayout, non_finite

SHORT_BYTES: Final = 12  # pitch_yaw and pitch_roll
POSE_BYTES: Final = 28
#: One byte more than any layout has: a peer that sends it does not wait for answers.
SURPLUS_BYTES: Final = POSE_BYTES + 1
# Beyond these a first frame makes no sense. Pixels that are read as floats are nearly always far beyond.
_FARTHEST_M: Final = 1e6
_LATEST_S: Final = 1e7
_LEAST_NORMAL_FLOAT32: Final = 2.0**-126
# Noise of a computation may be smaller still, dark pixels read as floats nearly always are.
_LEAST_BESIDE_PIXELS: Final = 1e-20
_ANGLES: Final = ("pitch", "roll", "yaw", "heading")


def floats_of(layout: AttitudeLayout) -> struct.Struct:
    """Return how the floats of this layout are packed."""
    return struct.Struct(f">{len(layout.floats)}f")


def read_floats(tail: bytes, layout: AttitudeLayout) -> dict[str, float]:
    """Return the floats by name; `tail` is what follows the images, and may go on."""
    return dict(zip(layout.floats, floats_of(layout).unpack_from(tail), strict=True))


def decide(tail: bytes, is_followed_by_silence: bool, unit: AngleUnit) -> AttitudeLayout | None:
    """Return the layout of a first frame, or None if more has to come, or silence, to be sure.

    `tail` is what has come after the images, up to SURPLUS_BYTES. Raises ValueError with a sentence for bytes that fit
    no layout, or two.
    """
    least = _LEAST_BESIDE_PIXELS if len(tail) >= SURPLUS_BYTES else _LEAST_NORMAL_FLOAT32
    is_pose = len(tail) >= POSE_BYTES and _is_plausible(read_floats(tail, AttitudeLayout.POSE), unit, least)
    is_short = len(tail) >= SHORT_BYTES and _is_plausible(read_floats(tail, AttitudeLayout.PITCH_YAW), unit, least)
    if len(tail) < SURPLUS_BYTES:
        if len(tail) == POSE_BYTES and is_pose and (is_followed_by_silence or not is_short):
            return AttitudeLayout.POSE
        if len(tail) == SHORT_BYTES and is_short and is_followed_by_silence:
            return AttitudeLayout.PITCH_YAW
        if len(tail) in (SHORT_BYTES, POSE_BYTES) and is_followed_by_silence:
            raise ValueError("The first frame fits no layout.")
        return None
    # A peer that does not wait for its answer: what follows is its next image, and its values have to tell.
    if is_pose == is_short:
        raise ValueError(f"The first frame fits {'more than one' if is_pose else 'no'} layout.")
    return AttitudeLayout.POSE if is_pose else AttitudeLayout.PITCH_YAW


def describe(tail: bytes) -> str:
    """Return what the bytes after the images would say in each layout, as far as they have come."""
    readings = []
    for layout in AttitudeLayout:
        size = floats_of(layout).size
        if len(tail) < size:
            readings.append(f"{layout.value}: {len(tail)} of {size} bytes")
            continue
        values = ", ".join(f"{name} {value:.6g}" for name, value in read_floats(tail, layout).items())
        readings.append(f"{layout.value}: {values}")
    return "; ".join(readings)


def _is_plausible(floats: Mapping[str, float], unit: AngleUnit, least: float) -> bool:
    """Return whether a testbed can have meant these as the floats of its first frame, `least` if not 0."""
    if non_finite(floats.items()) or any(0 < abs(value) < least for value in floats.values()):
        return False
    for name, value in floats.items():
        if name in _ANGLES:
            limit = unit.half_turn * (1 if name == "pitch" else 2) * 1.0001  # rounding to float32
            is_plausible = abs(value) <= limit
        elif name == "time":
            is_plausible = 0 <= value <= _LATEST_S
        else:
            is_plausible = abs(value) <= _FARTHEST_M
        if not is_plausible:
            return False
    return True
