# SPDX-License-Identifier: Apache-2.0
"""Lets an autopilot that commands rates and thrust steer a vehicle that follows velocities.

The answers fly a model of the testbed's drone, and the vehicle gets the model's velocity. The autopilot is told the
state of the model: the tilt that it has commanded, and a position that moves accordingly. If it were told the vehicle's
own position it would see it lag behind, and autopilots tuned for a testbed tend to oscillate then. In the long run,
however, the vehicle's position is what counts:

- The model's position converges to the vehicle's, and stays within a maximum distance of it. To the autopilot, any
  difference between the two looks like wind, which it compensates for.
- At the maximum distance the model is slowed down, so that its velocity does not wind up in front of a wall.
- The model has the vehicle's heading. Correcting it turns the model about its thrust axis, so that the direction of the
  thrust does not change.

Axes are those of `motion`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from drone_bridge.geometry.matrices import Matrix, Vector, limited
from drone_bridge.protocols.testbed import AngleUnit, Constants, MotionParameters, SensorFrame
from drone_bridge.vehicle_side.testbed.motion import Airframe, DroneState, Motion, degrees_per_unit

LONGEST_STEP_S: Final = 1.0  # between frames; after a longer one the model begins at rest
#: How fast a model at the maximum distance loses the speed that the vehicle does not have, 1/s.
_BRAKE: Final = 4.0
_CALM: Final = np.zeros(3)


@dataclass(frozen=True, slots=True)
class FlightLimits:
    """The limits of the modelled flight, whatever the autopilot answers."""

    max_speed: float  # m/s, horizontal
    max_climb_speed: float  # m/s, up and down
    max_tilt: float  # rad off the vertical, less than a quarter turn
    max_yaw_rate: float  # rad/s
    max_lead: float  # m from the vehicle to the model


class LevelVelocity(NamedTuple):
    """A velocity in levelled axes that look where the vehicle looks."""

    ahead: float  # m/s
    right: float  # m/s
    up: float  # m/s
    yaw_rate: float  # rad/s about the vertical, positive turns right


class ModelledFlight:
    """The flight of one autopilot: call `told` with each frame, and `answered` with its answer, in turns."""

    def __init__(self, constants: Constants, unit: AngleUnit, limits: FlightLimits, correction_gain: float) -> None:
        """Begin at rest.

        Args:
            constants: what was announced to the autopilot.
            unit: of angles on the wire.
            limits: of the model.
            correction_gain: how fast the model's position converges to the vehicle's, 1/s.
        """
        self._airframe = Airframe.announced(constants)
        self._unit = unit
        self._degrees = degrees_per_unit(unit)
        self._limits = limits
        self._gain = correction_gain
        self._time_s: float | None = None
        self._step_s = 0.0
        self._motion: Motion | None = None  # since the last frame; None: at rest
        self._state = DroneState.at_start()

    def rest(self) -> None:
        """Start over, level and at rest, because the vehicle was told to stop."""
        self._motion = None
        heading, _, _ = self._state.angles
        self._state = self._level(self._state.position, heading)

    def told(self, frame: SensorFrame) -> SensorFrame:
        """Advance the model to the time of a frame; return the frame with the model's pitch, roll and position.

        The frame needs the vehicle's heading. Without a position it stays without one.
        """
        assert frame.yaw is not None
        heading = frame.yaw * self._degrees
        vehicle = None if frame.position is None else np.array(frame.position)
        step_s = -1.0 if self._time_s is None else frame.time - self._time_s
        self._time_s = frame.time
        if self._motion is None or not 0.0 <= step_s <= LONGEST_STEP_S:
            self._motion = None
            self._state = self._level(_CALM if vehicle is None else vehicle, heading)
        elif step_s:
            self._step_s = step_s
            flown = self._state.advance(self._airframe, self._motion, _CALM, step_s)
            position, velocity = self._held(flown, vehicle, step_s)
            rotation = self._turned(flown.rotation[:, 1], heading)
            self._state = DroneState(position, self._slow(velocity), rotation)
        _, pitch, roll = self._state.angles
        x, y, z = self._state.position.tolist()
        return replace(
            frame,
            pitch=pitch / self._degrees,
            roll=roll / self._degrees,
            position=None if vehicle is None else (x, y, z),
        )

    def answered(self, answer: MotionParameters) -> LevelVelocity:
        """Take the answer to the last frame; return the velocity that the vehicle should have until the next one."""
        self._motion = motion = Motion.answered(answer, self._unit)
        ahead = self._state.advance(self._airframe, motion, _CALM, self._step_s)  # a step as long as the last one
        velocity = self._slow(ahead.velocity)
        _, up, _ = velocity.tolist()
        heading, pitch, roll = np.radians(self._state.angles).tolist()
        yaw_rate = math.cos(roll) * motion.yaw_rate - math.sin(roll) * motion.pitch_rate
        yaw_rate = math.radians(yaw_rate) / math.cos(pitch)
        fastest = self._limits.max_yaw_rate
        return LevelVelocity(
            ahead=float(velocity @ _ahead(heading)),
            right=float(velocity @ _ahead(heading + math.pi / 2)),
            up=up,
            yaw_rate=max(-fastest, min(fastest, yaw_rate)),
        )

    def _level(self, position: Vector, heading: float) -> DroneState:
        """Return the state of a level drone at rest."""
        return DroneState(position, _CALM, self._turned(np.array([0.0, 1.0, 0.0]), heading))

    def _held(self, flown: DroneState, vehicle: Vector | None, step_s: float) -> tuple[Vector, Vector]:
        """Return position and velocity of the model, kept near the vehicle."""
        if vehicle is None:
            return flown.position, flown.velocity
        lead = math.exp(-self._gain * step_s) * (flown.position - vehicle)
        held = limited(lead, self._limits.max_lead)
        return vehicle + held, flown.velocity - _BRAKE * (lead - held)

    def _slow(self, velocity: Vector) -> Vector:
        """Return a velocity within the limits."""
        x, z = limited(velocity[[0, 2]], self._limits.max_speed).tolist()
        climb = self._limits.max_climb_speed
        return np.array([x, max(-climb, min(climb, float(velocity[1]))), z])

    def _turned(self, up: Vector, heading: float) -> Matrix:
        """Return the rotation with this heading and this upward body axis, its tilt limited."""
        tilt = self._limits.max_tilt
        sideways = math.hypot(up[0], up[2])
        if math.atan2(sideways, up[1]) > tilt:
            share = math.sin(tilt) / max(sideways, 1e-9)
            up = np.array([share * up[0], math.cos(tilt), share * up[2]])
            up /= np.linalg.norm(up)  # upside down it has no direction to be tilted to
        level = _ahead(math.radians(heading))
        forward = level - np.array([0.0, float(level @ up) / up[1], 0.0])  # above or below it, and square to up
        forward /= np.linalg.norm(forward)
        return np.column_stack([np.cross(forward, up), up, -forward])


def _ahead(heading: float) -> Vector:
    """Return the horizontal direction of a heading in rad."""
    return np.array([math.sin(heading), 0.0, -math.cos(heading)])
