# SPDX-License-Identifier: Apache-2.0
"""Signs, units and axes of dronegui packets and navdata: to SI units in the axes of REP 103, and back. Pure.

The wire has directions instead of frames: roll + goes right, pitch + goes backward, yaw + turns right; phi + banks
right, theta + raises the nose, psi + turns right; velocities are forward, right and down, along level axes with the
drone's heading. Units are thousandths of a degree, a metre, and a metre per second.
"""

import math

from drone_bridge.ar_drone.flight_state import STEERED
from drone_bridge.dronegui.codec import CHARGE, MAX_MAGNITUDE, Controls, Demo
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.motion.vectors import Triple

# Commands.


def controls(shares: Shares) -> Controls:
    """Convert shares to controls."""
    # 0.0 - x instead of -x avoids -0.0.
    return Controls(hover=False, roll=shares.roll, pitch=0.0 - shares.pitch, yaw=0.0 - shares.yaw, gas=shares.thrust)


def shares(controls: Controls) -> Shares:
    """Convert controls to shares; all zero while hover is pressed, which overrides the axes."""
    if controls.hover:
        return Shares()
    return Shares(controls.gas, 0.0 - controls.pitch, controls.roll, 0.0 - controls.yaw)


# Navdata.


def measurement(demo: Demo) -> Measurement:
    """Convert a block. Its vertical speed is always zero, so it is no `climb`."""
    has_velocity = demo.vx is not None and demo.vy is not None
    state = demo.flight_state
    return Measurement(
        yaw=None if demo.psi is None else 0.0 - math.radians(demo.psi / 1000),
        velocity=BodyVelocity(*metres(demo.vx, demo.vy, demo.vz)) if has_velocity else None,
        charge=demo.charge,
        height=None if demo.altitude is None else demo.altitude / 1000,
        roll=None if demo.phi is None else math.radians(demo.phi / 1000),
        pitch=None if demo.theta is None else 0.0 - math.radians(demo.theta / 1000),
        is_flying=None if state is None else state in STEERED,
    )


def metres(vx: float | None, vy: float | None, vz: float | None) -> Triple:
    """Convert a velocity to forward, left and up, m/s. Missing components are zero."""
    return (vx or 0.0) / 1000, 0.0 - (vy or 0.0) / 1000, 0.0 - (vz or 0.0) / 1000


# The inverse: fields of a block, None if the wire can't have the value.


def angles(roll: float, pitch: float, yaw: float) -> dict[str, float]:
    """Convert angles, rad."""
    phi, theta, psi = (1000 * math.degrees(angle) for angle in (roll, pitch, yaw))
    return {"phi": phi, "theta": 0.0 - theta, "psi": 0.0 - psi}


def altitude(height: float) -> dict[str, float | None]:
    """Convert a height, m. The wire has whole millimetres."""
    millimetres = scaled(height, 1000)
    return {"altitude": None if millimetres is None else round(millimetres)}


def velocity(forward: float, left: float, up: float) -> dict[str, float | None]:
    """Convert a velocity along level axes, m/s."""
    return {"vx": scaled(forward, 1000), "vy": scaled(0.0 - left, 1000), "vz": scaled(0.0 - up, 1000)}


def charge(share: float) -> dict[str, float | None]:
    """Convert a charge, 0 to 1. The wire has whole percent."""
    percent = CHARGE.clamped(scaled(share, CHARGE.most))
    return {"vbat_flying_percentage": None if percent is None else round(percent)}


def scaled(value: float, factor: float) -> float | None:
    """Return a value in the wire's unit if it is valid there, else None."""
    return value * factor if abs(value) * factor <= MAX_MAGNITUDE else None
