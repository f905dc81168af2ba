# SPDX-License-Identifier: Apache-2.0
"""Navdata of the emulated drone, by block."""

from __future__ import annotations

import math

from drone_bridge.ar_drone.cameras import FRONT
from drone_bridge.ar_drone.drone import PICTURE_UNITS
from drone_bridge.ar_drone.flight import STATES, ArDroneFlight
from drone_bridge.dronegui import units
from drone_bridge.dronegui.codec import (
    MAJOR_STATE_SHIFT,
    Demo,
    Feature,
    FlightState,
    Navdata,
    OtherNavdata,
    VisionDetect,
)
from drone_bridge.motion.vectors import turned
from drone_bridge.vision.seen_tag import seen_tag

FULL_BATTERY_FLIES_S = 720.0
#: Number of `demo` blocks per block of this type.
DETECTION_EVERY = 5


def blocks(flight: ArDroneFlight, number: int) -> list[Navdata]:
    """Return the blocks that the drone sends together; `number` counts these groups."""
    result: list[Navdata] = [_demo(flight, number)]
    if number % DETECTION_EVERY == 0:
        result += [_detection(flight), OtherNavdata("iphoneangles", {"enable": 1, "ax": 0.0, "ay": 0.0, "az": 1.0})]
    result.append(OtherNavdata("checksum", {"checksum": number}))
    return result


def _demo(flight: ArDroneFlight, number: int) -> Demo:
    state = STATES[flight.phase]
    if state is FlightState.FLYING and flight.is_hovering:
        state = FlightState.HOVERING
    vx, vy, vz = flight.velocity.tolist()
    forward, left, _ = turned((vx, vy, vz), -flight.yaw)
    return Demo(
        ctrl_state=state << MAJOR_STATE_SHIFT,
        vbat_flying_percentage=math.floor(100 * max(0.0, 1 - flight.flown_s / FULL_BATTERY_FLIES_S)),
        **units.angles(flight.roll, flight.pitch, flight.yaw),
        **units.altitude(flight.height),
        **units.velocity(forward, left, 0.0),  # the drone does not measure its vertical speed
        num_frames=number,
    )


def _detection(flight: ArDroneFlight) -> VisionDetect:
    """Return the tag if it is completely in the image."""
    if (tag := seen_tag(FRONT, flight.position, flight.rotation)) is None:
        return VisionDetect()
    xc, yc, width, height = (round(PICTURE_UNITS * value) for value in (tag.x, tag.y, tag.width, tag.height))
    return VisionDetect((Feature(xc, yc, width, height, round(100 * tag.distance)),))
