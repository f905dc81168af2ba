# SPDX-License-Identifier: Apache-2.0
"""Waypoints: state machine of a tour, from odometry and time to commands. Without topics and clock."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from drone_bridge.controllers.vehicle_pose import VehiclePose
from drone_bridge.controllers.waypoints.waypoint import Waypoint
from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.matrices import Vector, limited
from drone_bridge.parameter_fields import parameter

# Largest share of the speed for the return to the line, so that some remains along it.
MAX_ACROSS = 0.7
# Period and duration of retries of a refused call.
RETRY_S, RETRIES_S = 1.0, 10.0
# Timeout from the response to the reported effect of a call: in the air, or on the ground.
EFFECT_S = 30.0


@dataclass(frozen=True, slots=True)
class WaypointParameters:
    """Speeds, gains and tolerances."""

    position_tolerance: float = parameter(0.3, "Distance within which a waypoint is reached, m.", 0.001, 100.0)
    yaw_tolerance: float = 0.15  # angle from its yaw within which a waypoint is reached, rad
    max_speed: float = parameter(0.5, "Maximum speed, m/s.", 0.001, 100.0)
    max_climb_speed: float = 0.5  # up and down, m/s
    max_turn_rate: float = 0.5  # rad/s
    position_gain: float = parameter(0.8, "Speed per distance left, 1/s.", 0.01, 20.0)
    yaw_gain: float = 1.0  # turn rate per angle left, 1/s
    loop: bool = parameter(False, "Continue with the first waypoint after the last one.")
    odometry_timeout: float = parameter(
        0.5, "Seconds without odometry after which the vehicle is stopped on its way to a place.", 0.05, 60.0
    )


class WaypointState(Enum):
    """State of the tour."""

    WAITING = "waiting"
    GOING = "going"
    HOLDING = "holding"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TourDecision:
    """Current command, and the progress of the tour."""

    state: WaypointState
    reason: str
    velocity: BodyVelocity = STILL
    distance: float = math.nan  # m, to the place
    commands: bool = True  # whether the velocity is to be published
    call: str = ""  # the service to call now


class Waypoints:
    """State machine of the tour. Call `update` regularly, and `answered` once for each call in its decisions."""

    def __init__(self, parameters: WaypointParameters, waypoints: tuple[Waypoint, ...]) -> None:
        """Begin before the first waypoint. Raises ValueError without waypoints, and for a leg above the limits."""
        if not waypoints:
            raise ValueError("there are no waypoints: at least one is needed")
        for leg in waypoints:
            speeds = (math.hypot(leg.forward, leg.left, leg.up), abs(leg.up), abs(leg.turn))
            limits = (parameters.max_speed, parameters.max_climb_speed, parameters.max_turn_rate)
            if any(speed > limit for speed, limit in zip(speeds, limits, strict=True)):
                raise ValueError(f"'{leg}' exceeds max_speed, max_climb_speed or max_turn_rate")
        self._parameters = parameters
        self._waypoints = waypoints
        #: Index of the current waypoint. Read only.
        self.index = 0
        self._line_start: Vector | None = None  # where the straight line to the waypoint begins
        self._reached_s: float | None = None
        self._call = ServiceCall(waypoints[0].call)
        #: Whether anything has been commanded or called. Read only.
        self.has_begun = False
        self._is_done = False
        self._problem = ""

    def answered(self, now_s: float, success: bool, message: str) -> None:
        """Continue the tour after the response to the newest call, or end it."""
        self._call.answered(now_s, success, message)

    def give_up(self, problem: str) -> None:
        """End the tour with a problem. Ignored if the tour is done."""
        if not self._is_done:
            self._problem = self._problem or problem

    def update(self, now_s: float, measured: VehiclePose | None, is_flying: bool | None = None) -> TourDecision:
        """Return the current decision.

        Args:
            now_s: time, s. If it goes back, the current duration starts again.
            measured: pose by odometry; None: not available, or stale.
            is_flying: state that the vehicle reports; None: not reported.
        """
        if measured is None and not self.has_begun and any(each.is_place for each in self._waypoints):
            # Also before earlier legs and calls, so that missing odometry is noticed on the ground.
            return TourDecision(WaypointState.WAITING, "for odometry", commands=False)
        self.has_begun = True
        before = self._waypoints[self.index]
        if self._problem or (self._is_done and not before.is_place):
            return self._decision(commands=False)
        if before.call and self._call.is_due(now_s):
            return replace(self._decision(commands=False), call=before.call)
        waypoint = before
        for _ in self._waypoints:  # all places that are reached already
            before = waypoint
            if not self._is_reached(before, measured, now_s, is_flying):
                self._reached_s = None
                self._problem = self._call.problem
                break
            self._reached_s = now_s if self._reached_s is None else min(self._reached_s, now_s)
            if now_s - self._reached_s < before.duration_s:
                break
            self._go_on(before, measured)
            waypoint = self._waypoints[self.index]
            if self._is_done or not waypoint.is_place:
                break
        if waypoint.is_place:
            return self._way(waypoint, measured)
        if waypoint.call or self._is_done:
            # The vehicle is stopped before a call.
            return self._decision(commands=not before.call)
        return self._decision(BodyVelocity(waypoint.forward, waypoint.left, waypoint.up, turn=waypoint.turn))

    def _is_reached(
        self, waypoint: Waypoint, measured: VehiclePose | None, now_s: float, is_flying: bool | None
    ) -> bool:
        if waypoint.call:
            return self._call.has_effect(now_s, is_flying)
        if not waypoint.is_place:
            return True
        if measured is None:
            return False
        away = float(np.linalg.norm(waypoint.place(measured.position) - measured.position))
        turned = abs(_yaw_error(waypoint, measured))
        return away <= self._parameters.position_tolerance and turned <= self._parameters.yaw_tolerance

    def _go_on(self, before: Waypoint, measured: VehiclePose | None) -> None:
        """Select the next waypoint. Without `loop`, the last one stays selected."""
        if self.index + 1 == len(self._waypoints) and not self._parameters.loop:
            self._is_done = True
            return
        # The line starts at the waypoint, not at the edge of its tolerance.
        self._line_start = before.place(measured.position) if before.is_place and measured else None
        self.index = (self.index + 1) % len(self._waypoints)
        self._reached_s = None
        self._call = ServiceCall(self._waypoints[self.index].call)

    def _way(self, waypoint: Waypoint, measured: VehiclePose | None) -> TourDecision:
        """Return the decision on the way to a place, or while holding it."""
        if measured is None:
            self._line_start = None  # the vehicle may be anywhere when odometry returns
            return TourDecision(WaypointState.STOPPED, f"no odometry for {self._parameters.odometry_timeout:g} s")
        position, rotation = measured
        if self._line_start is None:
            self._line_start = position
        error = waypoint.place(position) - position
        wanted = self._velocity(error, waypoint.place(self._line_start) - self._line_start)
        forward, left, up = (rotation.T @ wanted).tolist()
        limit = self._parameters.max_turn_rate
        turn_rate = max(-limit, min(limit, self._parameters.yaw_gain * _yaw_error(waypoint, measured)))
        return self._decision(BodyVelocity(forward, left, up, turn=turn_rate), float(np.linalg.norm(error)))

    def _velocity(self, error: Vector, line: Vector) -> Vector:
        """Return the velocity in the odometry frame, m/s, along the line and back to it."""
        wanted = self._parameters.position_gain * error
        limit = self._parameters.max_speed
        length = float(np.linalg.norm(line))
        direction = line / length if length > 1e-6 else np.zeros(3)
        along = float(wanted @ direction)
        across = limited(wanted - along * direction, MAX_ACROSS * limit)
        most_along = math.sqrt(limit**2 - float(across @ across))
        velocity = across + max(-most_along, min(most_along, along)) * direction
        # A steep climb reduces the whole velocity, so that the vehicle stays on the line.
        return velocity * min(1.0, self._parameters.max_climb_speed / max(abs(float(velocity[2])), 1e-9))

    def _decision(
        self, velocity: BodyVelocity = STILL, distance: float = math.nan, *, commands: bool = True
    ) -> TourDecision:
        waypoint = self._waypoints[self.index]
        which = f"waypoint {self.index + 1} of {len(self._waypoints)}: {waypoint}"
        state, reason = WaypointState.GOING, f"to {which}"
        if self._problem:
            state, reason = WaypointState.FAILED, self._problem
        elif self._is_done:
            state, reason = WaypointState.DONE, f"{'stays at' if waypoint.is_place else 'after'} {which}"
        elif self._reached_s is not None and (waypoint.is_place or waypoint.call):
            state, reason = WaypointState.HOLDING, f"at {which}"
        return TourDecision(state, reason, velocity, distance, commands)


class ServiceCall:
    """Call of takeoff or land: due at once, with retries while refused, and done when its effect is reported.

    An empty name stands for no call.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._due_s = -math.inf
        self._retries_end_s: float | None = None
        self._succeeded_s: float | None = None
        #: Reason of the failure, or empty.
        self.problem = ""

    def is_due(self, now_s: float) -> bool:
        """Return whether to call now: first at once, then when a retry is due."""
        if now_s < self._due_s:
            return False
        self._retries_end_s = now_s + RETRIES_S if self._retries_end_s is None else self._retries_end_s
        self._due_s = math.inf
        return True

    def answered(self, now_s: float, success: bool, message: str) -> None:
        if success:
            self._succeeded_s = now_s
        elif self._retries_end_s is not None and now_s + RETRY_S <= self._retries_end_s:
            self._due_s = now_s + RETRY_S
        else:
            self.problem = f"{self._name} was refused: {message}"

    def has_effect(self, now_s: float, is_flying: bool | None) -> bool:
        """Return whether the call took effect. A vehicle that reports no state is assumed to fly."""
        if self._succeeded_s is None:
            return False
        stands = is_flying is False
        has_effect = stands if self._name == "land" else not stands
        if not has_effect and now_s - self._succeeded_s >= EFFECT_S:
            where = "on the ground" if self._name == "land" else "flying"
            self.problem = f"the vehicle was not seen {where} within {EFFECT_S:g} s of {self._name}"
        return has_effect


def _yaw_error(waypoint: Waypoint, measured: VehiclePose) -> float:
    """Return the shortest rotation to the yaw of the waypoint, rad to the left; 0 if it is free."""
    return 0.0 if waypoint.yaw is None else math.remainder(waypoint.yaw - measured.yaw, math.tau)
