# SPDX-License-Identifier: Apache-2.0
"""Waypoints, one after the other: what to command at each, from odometry and the time. No topics, no clock."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from drone_bridge.controllers.waypoints.waypoint import Waypoint
from drone_bridge.controllers.where import Where
from drone_bridge.described import described
from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.matrices import Vector, limited

# Getting back to the line may take this share of the speed, so that there is always some left to go on.
MAX_ACROSS = 0.7
# A call that is refused is repeated so often, and for so long.
RETRY_S, RETRIES_S = 1.0, 10.0
# So long after the answer the vehicle has to be seen in the air, or on the ground.
EFFECT_S = 30.0


@dataclass(frozen=True, slots=True)
class WaypointParameters:
    """Speeds, gains and tolerances."""

    position_tolerance: float = described(0.3, "Distance within which a waypoint is reached, m.", 0.001, 100.0)
    yaw_tolerance: float = described(
        0.15, "Angle from its yaw within which a waypoint is reached, rad.", 0.001, math.pi
    )
    max_speed: float = described(0.5, "Maximum speed, m/s.", 0.001, 100.0)
    max_climb_speed: float = described(0.5, "Maximum climb and sink rate, m/s.", 0.001, 100.0)
    max_turn_rate: float = described(0.5, "Radians per second.", 0.001, 20.0)
    position_gain: float = described(0.8, "Speed per distance left, 1/s.", 0.01, 20.0)
    yaw_gain: float = 1.0  # turn rate per angle left, 1/s
    loop: bool = described(False, "Continue with the first waypoint after the last one.")
    odometry_timeout: float = described(
        0.5, "Seconds without odometry after which the vehicle is stopped on its way to a place.", 0.05, 60.0
    )


class WaypointState(Enum):
    """Phase of the tour."""

    WAITING = "waiting"
    GOING = "going"
    HOLDING = "holding"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Decision:
    """The command for this moment, and how far the tour has come."""

    state: WaypointState
    reason: str
    velocity: BodyVelocity = STILL
    distance: float = math.nan  # m, of what is held
    commands: bool = True  # whether the velocity is to be published
    call: str = ""  # the service to call now


class Waypoints:
    """The state of the tour. Call `update` regularly, and `answered` once for each call that it decides on."""

    def __init__(self, parameters: WaypointParameters, waypoints: tuple[Waypoint, ...]) -> None:
        """Begin before the first of the waypoints. Raises ValueError if there is none, and for a leg too fast."""
        if not waypoints:
            raise ValueError("there are no waypoints, and there has to be at least one")
        for leg in waypoints:
            speeds = (math.hypot(leg.forward, leg.left, leg.up), abs(leg.up), abs(leg.turn))
            limits = (parameters.max_speed, parameters.max_climb_speed, parameters.max_turn_rate)
            if any(speed > limit for speed, limit in zip(speeds, limits, strict=True)):
                raise ValueError(f"'{leg}' exceeds max_speed, max_climb_speed or max_turn_rate")
        self._parameters = parameters
        self._waypoints = waypoints
        self._index = 0
        self._line_start: Vector | None = None  # where the straight line to the waypoint begins
        self._reached_s: float | None = None
        self._call = ServiceCall(waypoints[0].call)
        self._has_begun = False
        self._is_done = False
        self._problem = ""

    @property
    def index(self) -> int:
        """Which of the waypoints it goes to, or holds."""
        return self._index

    @property
    def has_begun(self) -> bool:
        """Whether anything has been commanded or called."""
        return self._has_begun

    def answered(self, now_s: float, success: bool, message: str) -> None:
        """Take the response to the newest call."""
        self._call.answered(now_s, success, message)

    def give_up(self, problem: str) -> None:
        """Command and call nothing more, unless it is over anyway."""
        if not self._is_done:
            self._problem = self._problem or problem

    def update(self, now_s: float, measured: Where | None, is_flying: bool | None = None) -> Decision:
        """Return what to do.

        Args:
            now_s: the time, s. Where it runs back, what lasts begins anew.
            measured: by odometry; None: there is none, or it is late.
            is_flying: what the vehicle reports; None: nothing.
        """
        if measured is None and not self._has_begun and any(each.is_place for each in self._waypoints):
            # Also for what comes before the first place, so that it is missed on the ground, not in the air.
            return Decision(WaypointState.WAITING, "for odometry", commands=False)
        self._has_begun = True
        before = self._waypoints[self._index]
        if self._problem or (self._is_done and not before.is_place):
            return self._decision(commands=False)
        if before.call and self._call.is_due(now_s):
            return replace(self._decision(commands=False), call=before.call)
        if self._is_reached(before, measured, now_s, is_flying):
            self._reached_s = now_s if self._reached_s is None else min(self._reached_s, now_s)
            if now_s - self._reached_s >= before.duration_s:
                self._go_on(before, measured)
        else:
            self._reached_s = None
            self._problem = self._call.problem
        waypoint = self._waypoints[self._index]
        if waypoint.is_place:
            return self._way(waypoint, measured)
        if waypoint.call or self._is_done:
            # What moves is stopped first.
            return self._decision(commands=not before.call)
        return self._decision(BodyVelocity(waypoint.forward, waypoint.left, waypoint.up, turn=waypoint.turn))

    def _is_reached(self, waypoint: Waypoint, measured: Where | None, now_s: float, is_flying: bool | None) -> bool:
        if waypoint.call:
            return self._call.has_effect(now_s, is_flying)
        if not waypoint.is_place:
            return True
        if measured is None:
            return False
        away = float(np.linalg.norm(waypoint.place(measured.position) - measured.position))
        turned = abs(_yaw_error(waypoint, measured))
        return away <= self._parameters.position_tolerance and turned <= self._parameters.yaw_tolerance

    def _go_on(self, before: Waypoint, measured: Where | None) -> None:
        """Select the next waypoint; the last one stays, unless they form a loop."""
        if self._index + 1 == len(self._waypoints) and not self._parameters.loop:
            self._is_done = True
            return
        # From the waypoint, not from the edge of its tolerance.
        self._line_start = before.place(measured.position) if before.is_place and measured else None
        self._index = (self._index + 1) % len(self._waypoints)
        self._reached_s = None
        self._call = ServiceCall(self._waypoints[self._index].call)

    def _way(self, waypoint: Waypoint, measured: Where | None) -> Decision:
        """Return the way to a place, or how it is held."""
        if measured is None:
            self._line_start = None  # the vehicle may be anywhere when there is odometry again
            return Decision(WaypointState.STOPPED, f"no odometry for {self._parameters.odometry_timeout:g} s")
        position, rotation = measured
        if self._line_start is None:
            self._line_start = position
        error = waypoint.place(position) - position
        velocity = rotation.T @ self._velocity(error, waypoint.place(self._line_start) - self._line_start)
        limit = self._parameters.max_turn_rate
        turn_rate = max(-limit, min(limit, self._parameters.yaw_gain * _yaw_error(waypoint, measured)))
        turn = rotation.T @ np.array([0.0, 0.0, turn_rate])
        return self._decision(BodyVelocity(*velocity.tolist(), *turn.tolist()), float(np.linalg.norm(error)))

    def _velocity(self, error: Vector, line: Vector) -> Vector:
        """Return the velocity in the world: along the line, and back to it if the vehicle is beside it."""
        wanted = self._parameters.position_gain * error
        limit = self._parameters.max_speed
        length = float(np.linalg.norm(line))
        direction = line / length if length > 1e-6 else np.zeros(3)
        along = float(wanted @ direction)
        across = limited(wanted - along * direction, MAX_ACROSS * limit)
        most_along = math.sqrt(limit**2 - float(across @ across))
        velocity = across + max(-most_along, min(most_along, along)) * direction
        # Slower altogether, rather than beside the line, where it climbs too steeply.
        return velocity * min(1.0, self._parameters.max_climb_speed / max(abs(float(velocity[2])), 1e-9))

    def _decision(
        self, velocity: BodyVelocity = STILL, distance: float = math.nan, *, commands: bool = True
    ) -> Decision:
        waypoint = self._waypoints[self._index]
        which = f"waypoint {self._index + 1} of {len(self._waypoints)}: {waypoint}"
        state, reason = WaypointState.GOING, f"to {which}"
        if self._problem:
            state, reason = WaypointState.FAILED, self._problem
        elif self._is_done:
            state, reason = WaypointState.DONE, f"{'stays at' if waypoint.is_place else 'after'} {which}"
        elif self._reached_s is not None and (waypoint.is_place or waypoint.call):
            state, reason = WaypointState.HOLDING, f"at {which}"
        return Decision(state, reason, velocity, distance, commands)


class ServiceCall:
    """A call of takeoff or land: due at once, repeated while it is refused, and over when the vehicle flies or stands.

    Without a name there is none.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._due_s = -math.inf
        self._retries_end_s: float | None = None
        self._succeeded_s: float | None = None
        #: Why it has failed; empty otherwise.
        self.problem = ""

    def is_due(self, now_s: float) -> bool:
        """Return whether to call now: once, until it is answered."""
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
        """Return whether the vehicle has done it. Where it reports nothing, it flies, and never stands."""
        if self._succeeded_s is None:
            return False
        stands = is_flying is False
        has_effect = stands if self._name == "land" else not stands
        if not has_effect and now_s - self._succeeded_s >= EFFECT_S:
            where = "on the ground" if self._name == "land" else "flying"
            self.problem = f"the vehicle was not seen {where} within {EFFECT_S:g} s of {self._name}"
        return has_effect


def _yaw_error(waypoint: Waypoint, measured: Where) -> float:
    """Return the shorter turn to the left, rad."""
    return 0.0 if waypoint.yaw is None else math.remainder(waypoint.yaw - measured.yaw, math.tau)
