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
STANDING_S, AVERAGED_S = 1.0, 0.5
#: Poses of a vehicle at rest that show it.
STANDING_POSES = 12
#: A vehicle that has risen by more has taken off; one that rests higher above a known ground has not landed, m.
RISES_M, NEAR_GROUND_M = 0.2, 0.6
#: Distance within which a rover returns in reverse to a goal that it has overshot, m.
BACKS_M = 0.5
#: Longest descent to an unknown ground, m: no drone is allowed to fly higher.
DEEPEST_M = 150.0


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
    takeoff_height: float = parameter(
        1.0, "Height above the ground of take_off without a height, if no service takeoff is offered, m.", 0.1, 100.0
    )
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
            backs = self._index == last and off < BACKS_M
            velocity = approach(pose, _place(point), self._limits, may_reverse=backs)
            return GuideStep(velocity, left, left / self._limits.speed)
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

    def is_answered(self, now_s: float, *, may_refuse: bool = False) -> bool:
        """Call once, and return whether the response has arrived. Raises GoalFailedError on timeout.

        Raises it on refusal, too, unless that `may_refuse` what is done already.
        """
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
        if not (response := self._future.result()).success and not may_refuse:
            raise GoalFailedError(GoalError.REFUSED, f"The service {self._name} refused: {response.message}")
        return True


class Ground:
    """Height of the ground in the odometry, as far as the vehicle shows it, and whether it flies."""

    def __init__(self) -> None:
        #: m; None until `height`, `range` or a pose on the ground has shown it.
        self.level: float | None = None
        #: As reported; None if the vehicle does not report it.
        self.is_flying: bool | None = None
        self._has_height = False

    def seen(self, z: float, height: float | None = None, *, stands: bool = False) -> None:
        """Update by the z of a pose, m, its height above the ground, if reported, and whether it rests on the ground.

        A pose on the ground counts if no height is reported.
        """
        if height is not None:
            self.level, self._has_height = z - height, True
        elif (stands or self.is_flying is False) and not self._has_height:
            self.level = z

    def distance(self, z: float) -> float:
        """Return the height above the ground, m; NaN if the ground is unknown."""
        return math.nan if self.level is None else z - self.level


class TakeOffGuide:
    """Guide that climbs vertically to a height above the ground, and keeps the heading."""

    steers = True

    def __init__(self, parameters: GoalParameters, height: float, ground: Ground, service: Service | None) -> None:
        """Prepare to take off.

        Args:
            parameters: the parameters of goals.
            height: m above the ground, or above the place where it begins if the ground is unknown; zero: the height
                that the vehicle's own takeoff reaches, or that at which it flies already.
            ground: what the vehicle shows of the ground.
            service: the vehicle's service takeoff; None if it has none, or is flying already.
        """
        self._parameters, self._height, self._ground = parameters, height, ground
        self._called = _RequiredCall(service, "takeoff", parameters.answer_time) if service else None
        #: Whether it takes off by the service.
        self.calls = service is not None
        self._start: float | None = None  # m, z at which it began
        self._climb: FlightGuide | None = None
        self._standing = RestDetector()

    def step(self, now_s: float, measured: VehiclePose) -> GuideStep:
        (x, y, z), ground = measured.position.tolist(), self._ground
        start = self._start = z if self._start is None else self._start
        left = abs(self._height - ground.distance(z)) if self._height > 0.0 else math.nan
        above = f"{ground.distance(z):.2f} m above the ground"
        if ground.level is None:
            above = f"{z - start:.2f} m above where it began, as nothing shows the height of the ground"
        if self._called and not self._called.is_answered(now_s):
            return GuideStep(distance=left, waiting_for="the answer of takeoff", commands=False)
        if self._called and ground.is_flying is False:
            return GuideStep(distance=left, waiting_for="the vehicle to fly", commands=False)
        if self._called and self._height <= 0.0:
            is_up = self._standing.is_seen(now_s, measured) and z - start > RISES_M
            done = f"Flies {above}." if is_up else ""
            return GuideStep(waiting_for="" if done else "the vehicle to be up", done=done, commands=False)
        if self._climb is None:
            flies = ground.distance(z) > NEAR_GROUND_M if ground.is_flying is None else ground.is_flying
            if self._height <= 0.0 and flies:
                return GuideStep(done="Flies already.", commands=False)
            base = start if ground.level is None else ground.level
            point = Waypoint(x, y, base + (self._height or self._parameters.takeoff_height), measured.yaw)
            self._climb = FlightGuide(self._parameters, self._parameters.waypoints(0.0, 0.0), (point,))
        step = self._climb.step(now_s, measured)
        if step.done and ground.is_flying is False:
            return step._replace(waiting_for="the vehicle to fly", done="")
        return step._replace(done=f"Hovers {above}." if step.done else "")


class LandGuide:
    """Guide that lands, by the vehicle's own service, or by a descent until the vehicle rests on the ground.

    A vehicle that reports whether it flies has landed once it does not. Another one has landed once it rests, near the
    ground if that is known.
    """

    def __init__(self, parameters: GoalParameters, ground: Ground, service: Service | None) -> None:
        """Prepare to land. Arguments as for TakeOffGuide."""
        self._parameters, self._ground = parameters, ground
        self._called = _RequiredCall(service, "land", parameters.answer_time) if service else None
        self.steers = service is None
        self._standing = RestDetector()
        self._began: tuple[float, float] | None = None  # s and m: time and height at which the landing began

    def step(self, now_s: float, measured: VehiclePose) -> GuideStep:
        z, is_flying = float(measured.position[2]), self._ground.is_flying
        above = self._ground.distance(z)
        if self._called and not self._called.is_answered(now_s, may_refuse=is_flying is False):
            return GuideStep(distance=above, waiting_for="the answer of land", commands=False)
        began_s, start = self._began = self._began or (now_s, z)
        rests = self._standing.is_seen(now_s, measured) and now_s - began_s > 2 * STANDING_S
        if is_flying is False or (is_flying is None and rests and not above > NEAR_GROUND_M):
            self._ground.seen(z, stands=True)
            return GuideStep(
                distance=0.0, done="Rests on the ground." if is_flying is None else "Has landed.", commands=self.steers
            )
        if start - z > DEEPEST_M:
            raise GoalFailedError(GoalError.NO_PROGRESS, f"Has met no ground within {DEEPEST_M:g} m below the start.")
        speed = self._parameters.landing_speed
        down = BodyVelocity(*(measured.rotation.T @ np.array([0.0, 0.0, -speed])).tolist())
        return GuideStep(down, distance=above, time_s=above / speed, commands=self.steers)


class RestDetector:
    """Detector of vertical rest, by the height, averaged over AVERAGED_S: that of a barometer is noisy.

    Several poses without a gap show it: one that stays the newest shows nothing, and a vehicle in slow motion reports
    seldom.
    """

    def __init__(self) -> None:
        self._height, self._average, self._seen_s = math.nan, 0.0, math.nan
        self._newest: VehiclePose | None = None
        self._same = 0
        self._settling = Debouncer(STANDING_S)

    def is_seen(self, now_s: float, measured: VehiclePose) -> bool:
        """Return whether the height has hardly changed for a while."""
        if measured is not self._newest:
            self._newest = measured
            height, step_s, self._seen_s = float(measured.position[2]), now_s - self._seen_s, now_s
            is_apart = not step_s <= AVERAGED_S  # NaN: the first one
            self._average = height if is_apart else height + math.exp(-step_s / AVERAGED_S) * (self._average - height)
            self._same += 1
            if is_apart or not abs(self._average - self._height) <= STANDING_M:
                self._height, self._same = self._average, 0
        return self._settling.has_lasted(now_s, self._same > 0) and self._same >= STANDING_POSES
