# SPDX-License-Identifier: Apache-2.0
"""Navdata of the emulated drone, by block."""

from __future__ import annotations

import math

from drone_bridge.dronegui.cameras import FRONT
from drone_bridge.dronegui.codec import (
    MAJOR_STATE_SHIFT,
    PICTURE_UNITS,
    Demo,
    Feature,
    FlightState,
    Navdata,
    OtherNavdata,
    VisionDetect,
)
from drone_bridge.dronegui.emulator.flight import Flight, Phase
from drone_bridge.motion.quaternions import inverse, quaternion_from_euler, rotated
from drone_bridge.programs.lies import Lies

FULL_BATTERY_FLIES_S = 720.0
#: Number of `demo` blocks per block of this type.
DETECTION_EVERY = 5
#: Tag ahead of the drone's start position, facing it. The forward camera sees it.
TAG_POSITION_M = (4.0, 0.0, 1.2)
TAG_SIZE_M = 0.2
FARTHEST_TAG_M = 8.0

_STATES = {
    Phase.LANDED: FlightState.LANDED,
    Phase.TAKING_OFF: FlightState.TAKING_OFF,
    Phase.FLYING: FlightState.FLYING,
    Phase.LANDING: FlightState.LANDING,
    Phase.EMERGENCY: FlightState.DEFAULT,
}


def blocks(flight: Flight, number: int, lies: Lies[list[Navdata]] | None = None) -> list[Navdata]:
    """Return the blocks that the drone sends together; `number` counts these groups."""
    result: list[Navdata] = [_demo(flight, number, lies or Lies())]
    if number % DETECTION_EVERY == 0:
        result += [_detection(flight), OtherNavdata("iphoneangles", {"enable": 1, "ax": 0.0, "ay": 0.0, "az": 1.0})]
    result.append(OtherNavdata("checksum", {"checksum": number}))
    return lies.delayed(result, flight.time) if lies else result


def _demo(flight: Flight, number: int, lies: Lies[list[Navdata]]) -> Demo:
    lies.count()
    state = _STATES[flight.phase]
    if state is FlightState.FLYING and flight.is_hovering:
        state = FlightState.HOVERING
    forward, left, _ = _in_body(flight, *flight.velocity.tolist())
    return Demo(
        ctrl_state=state << MAJOR_STATE_SHIFT,
        vbat_flying_percentage=math.floor(100 * lies.charge(max(0.0, 1 - flight.flown_s / FULL_BATTERY_FLIES_S))),
        theta=-1000 * math.degrees(flight.pitch),
        phi=1000 * math.degrees(flight.roll),
        psi=-1000 * (math.degrees(flight.yaw) + lies.heading_degrees),
        altitude=round(1000 * lies.height(flight.height)),
        vx=1000 * lies.of_velocity * forward,
        vy=-1000 * lies.of_velocity * left,
        vz=0.0,  # the drone does not measure it
        num_frames=number,
    )


def _detection(flight: Flight) -> VisionDetect:
    """Return the tag if it is completely in the image."""
    x, y, z = (tag - own for tag, own in zip(TAG_POSITION_M, flight.position.tolist(), strict=True))
    ahead, left, up = _in_body(flight, x, y, z)
    if not TAG_SIZE_M < ahead < FARTHEST_TAG_M:
        return VisionDetect()
    half_width, half_height = (ahead * pixels / 2 / FRONT.focal_length for pixels in (FRONT.width, FRONT.height))
    across, down = -left / half_width, -up / half_height
    width, height = (TAG_SIZE_M / (2 * half) for half in (half_width, half_height))
    if abs(across) + width > 1 or abs(down) + height > 1:
        return VisionDetect()
    middle = PICTURE_UNITS / 2
    feature = Feature(
        xc=round(middle * (1 + across)),
        yc=round(middle * (1 + down)),
        width=round(PICTURE_UNITS * width),
        height=round(PICTURE_UNITS * height),
        dist=round(100 * math.hypot(x, y, z)),
    )
    return VisionDetect((feature,))


def _in_body(flight: Flight, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Rotate a vector from the world to the body's axes: forward, left, up."""
    return rotated(inverse(quaternion_from_euler(flight.roll, flight.pitch, flight.yaw)), x, y, z)
