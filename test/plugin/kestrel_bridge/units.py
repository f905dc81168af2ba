# SPDX-License-Identifier: Apache-2.0
"""Shares of the kestrel's axes to velocities in SI units, and back. Pure."""

from drone_bridge.motion.body_velocity import BodyVelocity
from kestrel_bridge.codec import FULL, Steer

#: Velocity at full deflection of each axis of the wire, by its name in BodyVelocity, m/s and rad/s.
USUAL_SCALE = {"left": 2.0, "forward": 2.0, "up": 2.0, "turn": 1.5}


def within_full_scale(velocity: BodyVelocity, full_scale: dict[str, float] = USUAL_SCALE) -> BodyVelocity:
    """Return a finite velocity with each axis of the wire clamped to its full deflection, and the others zero."""
    return BodyVelocity(**{axis: max(-full, min(full, getattr(velocity, axis))) for axis, full in full_scale.items()})


def steer_from_velocity(velocity: BodyVelocity, full_scale: dict[str, float] = USUAL_SCALE) -> Steer:
    """Convert a velocity within full scale to axes."""
    return Steer(**{axis: round(FULL * getattr(velocity, axis) / full) for axis, full in full_scale.items()})


def velocity_from_steer(steer: Steer, full_scale: dict[str, float] = USUAL_SCALE) -> BodyVelocity:
    """Convert axes to a velocity: the inverse of `steer_from_velocity`."""
    return BodyVelocity(**{axis: getattr(steer, axis) / FULL * full for axis, full in full_scale.items()})
