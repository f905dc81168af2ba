# SPDX-License-Identifier: Apache-2.0
"""Guides that steer a vehicle to a goal, by flight, drive, takeoff or landing. PlanarPose in, velocity out.

Guides use no topics and no clock, and belong to one thread. A guide returns one GuideStep per call. The last step has
`done` set; a goal that can't be reached raises GoalFailedError. TakeOffGuide and LandGuide first call the vehicle's own
service if it has one, and wait for the response without steering.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

import numpy as np

from drone_bridge.controllers.rover_patterns import PatternLimits, approach
from drone_bridge.controllers.vehicle_pose import VehiclePose
from drone_bridge.controllers.waypoints.waypoint import Waypoint
from drone_bridge.controllers.waypoints.waypoints import WaypointParameters, Waypoints, WaypointState
from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.parameter_fields import parameter

# A vehicle is at rest if its height changes by at most STANDING_M in STANDING_S.
STANDING_M = 0.03
STANDING_S = 1.0


@dataclass(frozen=True, slots=True)
class GoalParameters:
    """Speeds, gains and tolerances."""

    position_tolerance: float = parameter(
        0.1, "Distance within which a goal without a tolerance is reached, m.", 0.01, 100.0
    )
    yaw_tolerance: float = 0.1  # angle within which the heading of a goal is reached, rad
    settle_time: float = 1.0  # seconds within both tolerances before a goal counts as reached
    max_speed: float = parameter(1.0, "Speed of a goal without a speed, m/s.", 0.01, 100.0)
    max_climb_speed: float = 0.5  # up and down, m/s
    max_turn_rate: float = 0.5  # rad/s
    landing_speed: float = 0.3  # sink rate if no service land is offered, m/s
    odometry_timeout: float = 0.5  # s, after which the vehicle stops until odometry arrives again
    patience: float = 5.0  # seconds for which a goal waits for odometry, and for a transform of its frame
    stuck_time: float = 15.0  # seconds without progress after which a goal is aborted, as at a fence
    answer_time: float = 20.0  # timeout of the services takeoff and land, seconds

    def waypoints(self, tolerance: float, speed: float) -> WaypointParameters:
        """Return the parameters for a path to a goal. A tolerance or speed of zero selects the default."""
        speed = speed if speed > 0.0 else self.max_speed
        return WaypointParameters(
            position_tolerance=tolerance if tolerance > 0.0 else self.position_tolerance,
            yaw_tolerance=self.yaw_tolerance,
            max_speed=speed,
            max_climb_speed=min(speed, self.max_climb_speed),
            max_turn_rate=self.max_turn_rate,
        )


class GuideStep(NamedTuple):
    """Current command, and the progress towards the goal."""

    velocity: BodyVelocity = STILL
    distance: float = math.nan  # m to go
    time_s: float = math.nan  # s to go
    waiting_for: str = ""
    done: str = ""  # sentence that describes the reached goal; empty while on the way
    commands: bool = True  # whether the velocity is to be published


class GoalError(IntEnum):
    """The `error_code` of a result; NONE is success."""

    NONE = 0
    CANCELED = 1
    REPLACED = 2
    INVALID = 3
    NO_ODOMETRY = 4
    HELD = 5
    REFUSED = 6
    NO_PROGRESS = 7
    POSE_RESTARTED = 8


class GoalFailedError(Exception):
    """Failure of a goal, with a sentence as its text."""

    def __init__(self, code: GoalError, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class Guide(Protocol):
    """Protocol of a guide to one goal."""

    #: Whether the guide needs cmd_vel, which is ignored while the vehicle is on hold.
    steers: bool

    def step(self, now_s: float, measured: VehiclePose) -> GuideStep:
        """Return the current step. `now_s` never decreases. Raises GoalFailedError."""


class Debouncer:
    """Debouncer: detects that a condition has held without a gap for some time."""

    def __init__(self, time_s: float) -> None:
        self._time_s = time_s
        self._since_s: float | None = None

    def has_lasted(self, now_s: float, is_true: bool) -> bool:
        if not is_true:
            self._since_s = None
            return False
        self._since_s = now_s if self._since_s is None else self._since_s
        return now_s - self._since_s >= self._time_s


class FlightGuide:
    """Guide along straight lines through waypoints, which holds the last one."""

    steers = True

    def __init__(self, parameters: GoalParameters, way: WaypointParameters, points: Sequence[Waypoint]) -> None:
        """Prepare to fly. `points` has at least one entry."""
        self._waypoints = Waypoints(way, tuple(points))
        self._tolerance, self._speed = way.position_tolerance, way.max_speed
        self._last = points[-1]
        self._left_after = _left_after(points)
        self._settling = Debouncer(parameters.settle_time)

    def step(self, now_s: float, measured: VehiclePose) -> GuideStep:
        decision = self._waypoints.update(now_s, measured)
        is_there = decision.state is WaypointState.DONE and decision.distance <= self._tolerance
        left = decision.distance + self._left_after[self._waypoints.index]
        is_reached = self._settling.has_lasted(now_s, is_there)
        done = f"Reached {self._last}, {decision.distance:.2f} m off." if is_reached else ""
        return GuideStep(decision.velocity, left, left / self._speed, done=done)


class DriveGuide:
    """Guide for vehicles that can't move sideways. At the last point, it turns on the spot to the goal's heading."""

    steers = True

    def __init__(self, parameters: GoalParameters, way: WaypointParameters, points: Sequence[Waypoint]) -> None:
        """Prepare to drive. `points` has at least one entry, each with x and y."""
        self._parameters, self._way = parameters, way
        self._limits = PatternLimits(way.max_speed, 0.0, way.max_turn_rate)
        self._points, self._left_after = points, _left_after(points)
        self._index = 0
        self._has_arrived = False
        self._settling = Debouncer(parameters.settle_time)

    def step(self, now_s: float, measured: VehiclePose) -> GuideStep:
        pose = PlanarPose(float(measured.position[0]), float(measured.position[1]), measured.yaw)
        last, tolerance = len(self._points) - 1, self._way.position_tolerance
        while (off := math.dist(_place(self._points[self._index]), (pose.x, pose.y))) <= tolerance:
            if self._index == last:
                break
            self._index += 1
        # Half the tolerance at the end, so that the remaining motion does not leave it again.
        if self._index == last and off <= 0.5 * tolerance:
            self._has_arrived = True
        elif off > tolerance:
            self._has_arrived = False
        point = self._points[self._index]
        error = 0.0 if point.yaw is None else math.remainder(point.yaw - pose.yaw, math.tau)
        left = off + self._left_after[self._index]
        if not self._has_arrived:
            self._settling.has_lasted(now_s, False)
            return GuideStep(approach(pose, _place(point), self._limits), left, left / self._limits.speed)
        limit = self._limits.turn_rate
        turn = max(-limit, min(limit, self._way.yaw_gain * error))
        is_reached = self._settling.has_lasted(now_s, abs(error) <= self._way.yaw_tolerance)
        done = f"Reached {point}, {off:.2f} m off." if is_reached else ""
        return GuideStep(BodyVelocity(turn=turn), left, time_s=left / self._limits.speed, done=done)


def _place(point: Waypoint) -> tuple[float, float]:
    return point.x or 0.0, point.y or 0.0


def _left_after(points: Sequence[Waypoint]) -> list[float]:
    """Return the path length from each point to the last one, m."""
    legs = [_length(one, other) for one, other in itertools.pairwise(points)]
    return [*itertools.accumulate(reversed(legs), initial=0.0)][::-1]


def _length(one: Waypoint, other: Waypoint) -> float:
    """Return the distance between two points, m, without the coordinates that either leaves free."""
    start = np.zeros(3)
    return float(np.linalg.norm(other.place(one.place(start)) - one.place(start)))


# Takeoff and landing, by the vehicle's own services if it has them.


Service = Callable[[], Any]  # calls a std_srvs/Trigger, and returns the future of the response


class _RequiredCall:
    """Service call that has to succeed before a goal continues."""

    def __init__(self, service: Service, name: str, patience_s: float) -> None:
        self._service, self._name, self._patience_s = service, name, patience_s
        self._future: Any = None
        self._called_s = math.nan

    def is_answered(self, now_s: float) -> bool:
        """Call once, and return whether the response has arrived. Raises GoalFailedError on refusal or timeout."""
        if self._future is None:
            self._future, self._called_s = self._service(), now_s
        if not self._future.done():
            if now_s - self._called_s > self._patience_s:
                raise GoalFailedError(
                    GoalError.REFUSED, f"The service {self._name} has not answered for {self._patience_s:g} s."
                )
            return False
        if error := self._future.exception():
            raise GoalFailedError(GoalError.REFUSED, f"The service {self._name} failed: {error}")
        if not (response := self._future.result()).success:
            raise GoalFailedError(GoalError.REFUSED, f"The service {self._name} refused: {response.message}")
        return True


class TakeOffGuide:
    """Guide that climbs vertically to a height above the ground, and keeps the heading."""

    steers = True

    def __init__(
        self,
        parameters: GoalParameters,
        height: float,
        ground: float,
        service: Service | None,
        is_flying: Callable[[], bool | None],
    ) -> None:
        """Prepare to take off.

        Args:
            parameters: the parameters of goals.
            height: m above the ground; zero: the height that the vehicle's own takeoff reaches.
            ground: height of the ground in the odometry, m.
            service: the vehicle's service takeoff; None if it has none, or is flying already.
            is_flying: returns the state that the vehicle reports, or None if it reports none.
        """
        self._parameters, self._height, self._ground = parameters, height, ground
        self._called = _RequiredCall(service, "takeoff", parameters.answer_time) if service else None
        self._is_flying = is_flying
        self._climb: FlightGuide | None = None
        self._standing = RestDetector()

    def step(self, now_s: float, measured: VehiclePose) -> GuideStep:
        left = self._ground + self._height - float(measured.position[2]) if self._height > 0.0 else math.nan
        if self._called and not self._called.is_answered(now_s):
            return GuideStep(distance=left, waiting_for="the answer of takeoff", commands=False)
        if self._called and self._is_flying() is False:
            return GuideStep(distance=left, waiting_for="the vehicle to fly", commands=False)
        if self._height <= 0.0:
            is_up = not self._called or self._standing.is_seen(now_s, measured)
            done = f"Flies {measured.position[2] - self._ground:.2f} m above the ground." if is_up else ""
            return GuideStep(waiting_for="" if done else "the vehicle to be up", done=done, commands=False)
        if self._climb is None:
            x, y = measured.position[:2].tolist()
            point = Waypoint(x, y, self._ground + self._height, measured.yaw)
            self._climb = FlightGuide(self._parameters, self._parameters.waypoints(0.0, 0.0), (point,))
        step = self._climb.step(now_s, measured)
        above = float(measured.position[2]) - self._ground
        return step._replace(done=f"Hovers {above:.2f} m above the ground." if step.done else "")


class LandGuide:
    """Guide that lands, by the vehicle's own service, or by a descent until the height stays constant."""

    def __init__(
        self, parameters: GoalParameters, ground: float, service: Service | None, is_flying: Callable[[], bool | None]
    ) -> None:
        """Prepare to land. Arguments as for TakeOffGuide; a descent without ground contact ends at `ground`."""
        self._parameters, self._ground, self._is_flying = parameters, ground, is_flying
        self._called = _RequiredCall(service, "land", parameters.answer_time) if service else None
        self.steers = service is None
        self._standing = RestDetector()
        self._sinking_s: float | None = None

    def step(self, now_s: float, measured: VehiclePose) -> GuideStep:
        above = max(0.0, float(measured.position[2]) - self._ground)
        stands = self._standing.is_seen(now_s, measured)
        if self._called:
            if not self._called.is_answered(now_s):
                return GuideStep(distance=above, waiting_for="the answer of land", commands=False)
            is_flying = self._is_flying()
            is_down = stands if is_flying is None else not is_flying
            return GuideStep(distance=above, done="Has landed." if is_down else "", commands=False)
        self._sinking_s = now_s if self._sinking_s is None else self._sinking_s
        speed = self._parameters.landing_speed
        if above <= STANDING_M or (stands and now_s - self._sinking_s > 2 * STANDING_S):
            return GuideStep(distance=0.0, done="Is on the ground." if stands else "Is at the height where it began.")
        down = measured.rotation.T @ np.array([0.0, 0.0, -speed])
        return GuideStep(BodyVelocity(*down.tolist()), distance=above, time_s=above / speed)


class RestDetector:
    """Detector of vertical rest, by the height."""

    def __init__(self) -> None:
        self._height = math.nan
        self._settling = Debouncer(STANDING_S)

    def is_seen(self, now_s: float, measured: VehiclePose) -> bool:
        """Return whether the height has hardly changed for a while."""
        height = float(measured.position[2])
        is_same = abs(height - self._height) <= STANDING_M
        if not is_same:
            self._height = height
        return self._settling.has_lasted(now_s, is_same)
