# SPDX-License-Identifier: Apache-2.0
"""ModelledFlight: an autopilot that commands rates and thrust steers a vehicle that follows velocities.

The autopilot's replies fly a model of the testbed's drone, and the vehicle is commanded the model's velocity. The
autopilot receives the model's state: the tilt that it has commanded, and a position that moves accordingly. The
vehicle's own position lags behind, which makes autopilots tuned for a testbed oscillate. In the long run, however, the
model follows the vehicle's position:

- The model's position converges to the vehicle's, and stays within a maximum distance of it. To the autopilot, any
difference between the two looks like wind, which it compensates for.
- At the maximum distance the model is slowed down, so that its velocity does not wind up in front of a wall.
- The model's heading equals the vehicle's, or converges to it. Correcting it rotates the model about its thrust axis,
so that the direction of the thrust does not change.

An autopilot that receives no position can't compensate. In that case the model flies freely within the maximum
distance, and the vehicle converges to the model if the vehicle's position is known.

Axes are those of `drone_state`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from drone_bridge.motion.matrices import Matrix, Vector, limited
from drone_bridge.testbed.codec import AngleUnit, AttitudeLayout, Constants, MotionParameters, SensorFrame
from drone_bridge.testbed.vehicle.device.drone_state import Airframe, DroneInput, DroneState, degrees_per_unit

#: Limits of the modelled flight, for any reply of the autopilot: speed up and down, m/s; tilt off the vertical, rad,
#: less than a quarter turn; yaw rate, rad/s.
MAX_CLIMB_SPEED, MAX_TILT, MAX_YAW_RATE = 2.5, 1.0, 4.0
LONGEST_STEP_S = 1.0  # between frames; after a longer gap the model restarts at rest
#: Rate at which the model's position converges to the vehicle's, 1/s.
GAIN = 0.8
#: Maximum distance between model and vehicle, m.
MAX_LEAD = 1.0
#: Rate at which a model at the maximum distance loses its excess speed, 1/s.
_BRAKE = 4.0
#: Rate at which the vehicle converges to a leading model, 1/s, and its reduction per second between frames, because
#: slower frames show an older state.
_PULL = 1.3
_PULL_PER_STEP = 5.0  # 1/s
_MAX_HEADING_LEAD = math.radians(30)
_ZERO = np.zeros(3)


class LevelVelocity(NamedTuple):
    """Velocity in level axes aligned with the vehicle's heading."""

    ahead: float  # m/s
    right: float  # m/s
    up: float  # m/s
    yaw_rate: float  # rad/s about the vertical, positive turns right


class ModelledFlight:
    """Flight of one autopilot. Alternate `observe` with each frame and `follow` with its reply."""

    def __init__(self, constants: Constants, unit: AngleUnit, layout: AttitudeLayout, max_speed: float) -> None:
        """Start at rest.

        Args:
            constants: the constants that were announced to the autopilot.
            unit: unit of angles on the wire.
            layout: layout of the frames. An autopilot that receives no position can't correct the vehicle's
                deviations. If the vehicle's position is known, the vehicle then follows the model instead of the
                model following the vehicle.
            max_speed: maximum horizontal speed of the model, m/s.
        """
        self._airframe = Airframe.from_constants(constants)
        self._unit = unit
        self._degrees = degrees_per_unit(unit)
        self._max_speed = max_speed
        # The heading is the vehicle's, unless the autopilot infers roll from it and would mistake noise for roll.
        self._heading_gain = GAIN if layout is AttitudeLayout.PITCH_YAW else math.inf
        self._sends_position = layout is AttitudeLayout.POSE
        self._leads = False  # the vehicle is steered to the model
        self._time_s: float | None = None
        self._step_s = 0.0
        self._motion: DroneInput | None = None  # since the last frame; None means at rest
        self._state = DroneState.at_start()
        self._heading = 0.0  # of the vehicle, degrees
        #: Distance of a leading model from the vehicle, m and rad.
        self._position_error, self._heading_error = _ZERO, 0.0

    def reset(self) -> None:
        """Start over, level and at rest, because the vehicle was commanded to stop."""
        self._motion = None
        self._state = self._level_state(self._state.position)
        self._position_error, self._heading_error = _ZERO, 0.0

    def observe(self, frame: SensorFrame) -> SensorFrame:
        """Advance the model to the time of a frame; return the frame with the model's attitude and position.

        The frame needs the vehicle's heading. A frame without a position is returned without one. Positions may appear
        and disappear in flight.
        """
        assert frame.yaw is not None
        self._heading = frame.yaw * self._degrees
        vehicle = None if frame.position is None else np.array(frame.position)
        step_s = -1.0 if self._time_s is None else frame.time - self._time_s
        self._time_s = frame.time
        led, self._leads = self._leads, vehicle is not None and not self._sends_position
        if self._motion is None or not 0.0 <= step_s <= LONGEST_STEP_S:
            self._motion = None
            self._state = self._level_state(_ZERO if vehicle is None else vehicle)
        elif step_s:
            begins_to_lead = self._leads and not led
            self._advance(self._motion, vehicle, step_s, begins_to_lead)
        heading, pitch, roll = self._state.angles
        self._position_error, self._heading_error = _ZERO, 0.0
        if self._leads and vehicle is not None:
            self._position_error = self._state.position - vehicle
            self._heading_error = math.remainder(math.radians(heading - self._heading), math.tau)
        x, y, z = self._state.position.tolist()
        return replace(
            frame,
            pitch=pitch / self._degrees,
            roll=roll / self._degrees,
            yaw=heading / self._degrees,
            position=None if vehicle is None else (x, y, z),
        )

    def _advance(self, motion: DroneInput, vehicle: Vector | None, step_s: float, begins_to_lead: bool) -> None:
        self._step_s = step_s
        flown = self._state.advance(self._airframe, motion, _ZERO, step_s)
        if begins_to_lead and vehicle is not None:
            flown = replace(flown, position=vehicle)
        position, velocity = self._near_vehicle(flown, vehicle, step_s)
        rotation = self._rotation(flown.rotation[:, 1], self._heading_near_vehicle(flown, step_s))
        self._state = DroneState(position, self._limited_velocity(velocity), rotation)

    def follow(self, answer: MotionParameters) -> LevelVelocity:
        """Apply the answer to the last frame; return the vehicle's velocity until the next one."""
        motion = DroneInput.from_answer(answer, self._unit)
        motion = replace(motion, yaw_rate=_clamp(motion.yaw_rate, math.degrees(MAX_YAW_RATE)))
        self._motion = motion
        # Assumes that the next step is as long as the last one.
        ahead = self._state.advance(self._airframe, motion, _ZERO, self._step_s)
        pull = _PULL / (1 + _PULL_PER_STEP * self._step_s)
        velocity = self._limited_velocity(ahead.velocity + pull * self._position_error)
        _, up, _ = velocity.tolist()
        _, pitch, roll = np.radians(self._state.angles).tolist()
        heading = math.radians(self._heading)
        yaw_rate = math.cos(roll) * motion.yaw_rate - math.sin(roll) * motion.pitch_rate
        yaw_rate = math.radians(yaw_rate) / math.cos(pitch) + pull * self._heading_error
        return LevelVelocity(
            ahead=float(velocity @ _ahead(heading)),
            right=float(velocity @ _ahead(heading + math.pi / 2)),
            up=up,
            yaw_rate=_clamp(yaw_rate, MAX_YAW_RATE),
        )

    def _level_state(self, position: Vector) -> DroneState:
        """Return the state of a level drone at rest, with the vehicle's heading."""
        return DroneState(position, _ZERO, self._rotation(np.array([0.0, 1.0, 0.0]), self._heading))

    def _near_vehicle(self, flown: DroneState, vehicle: Vector | None, step_s: float) -> tuple[Vector, Vector]:
        """Return position and velocity of the model, kept near the vehicle."""
        if vehicle is None:
            return flown.position, flown.velocity
        lead = flown.position - vehicle
        if not self._leads:
            lead = math.exp(-GAIN * step_s) * lead
        held = limited(lead, MAX_LEAD)
        return vehicle + held, flown.velocity - _BRAKE * (lead - held)

    def _heading_near_vehicle(self, flown: DroneState, step_s: float) -> float:
        """Return the heading of the model in degrees, kept near the vehicle's."""
        heading, _, _ = np.radians(flown.angles).tolist()
        vehicle = math.radians(self._heading)
        gain = 0.0 if self._leads else self._heading_gain
        lead = math.exp(-gain * step_s) * math.remainder(heading - vehicle, math.tau)
        return math.degrees(vehicle + _clamp(lead, _MAX_HEADING_LEAD))

    def _limited_velocity(self, velocity: Vector) -> Vector:
        """Return a velocity within the limits."""
        x, z = limited(velocity[[0, 2]], self._max_speed).tolist()
        return np.array([x, _clamp(float(velocity[1]), MAX_CLIMB_SPEED), z])

    def _rotation(self, up: Vector, heading: float) -> Matrix:
        """Return the rotation with this heading and this body up axis, with limited tilt."""
        sideways = math.hypot(up[0], up[2])
        if math.atan2(sideways, up[1]) > MAX_TILT:
            share = math.sin(MAX_TILT) / max(sideways, 1e-9)
            up = np.array([share * up[0], math.cos(MAX_TILT), share * up[2]])
            up /= np.linalg.norm(up)  # an inverted drone's tilt has no direction
        level = _ahead(math.radians(heading))
        forward = level - np.array([0.0, float(level @ up) / up[1], 0.0])  # orthogonal to up
        forward /= np.linalg.norm(forward)
        return np.column_stack([np.cross(forward, up), up, -forward])


def _ahead(heading: float) -> Vector:
    """Return the horizontal direction of a heading in rad."""
    return np.array([math.sin(heading), 0.0, -math.cos(heading)])


def _clamp(value: float, limit: float) -> float:
    return max(-limit, min(limit, value))
