# SPDX-License-Identifier: Apache-2.0
"""The behaviour `land_on_pad`: find a pad that may move, follow it, descend on it, and stop the motors.

The drone has no position: all that is known is its velocity, its height and, while the pad is in sight, the pad's
relative position. Each set of measurements goes through three stages:

1. Estimate: Kalman filters track the pad's position and velocity, also for a while after it was last seen.
2. Decision: which state the landing is in, and why.
3. Guidance: a velocity for that state, turned into tilt and thrust.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from drone_bridge.controllers.land_on_pad.data import Decision, LandState, Measured
from drone_bridge.controllers.land_on_pad.pad_estimator import PadEstimator
from drone_bridge.controllers.land_on_pad.parameters import LandParameters
from drone_bridge.controllers.land_on_pad.search_pattern import ExpandingSquare
from drone_bridge.controllers.land_on_pad.tilt_control import ShareCommand, TiltControl, TiltGains, acceleration_of_tilt
from drone_bridge.motion.matrices import Matrix, Vector

LONGEST_GAP: Final = 1.0  # s between measurements, after which everything starts over
OLDEST_SIGHTING: Final = 0.5  # s
HIGH_ENOUGH: Final = 0.8  # of search_height, from where on the drone flies along the search pattern
FLYING: Final = 0.5  # m above ground, or where it landed; a drone that has been so high can land
FAR_HYSTERESIS: Final = 1.2  # how much farther off a pad has to get to be approached again
VIEW_SLOPE: Final = 0.35  # m aside for each m of height, within which a pad is in view unless the drone tilts hard
ABORT_FACTOR: Final = 1.5  # times the radius within which a landing is committed
RISE: Final = 0.5  # m above commit_height, up to where an aborted landing climbs
STILL_SPEED: Final = 0.1  # m/s; slower than that on its way down, something carries the drone ...
STILL_TIME: Final = 0.3  # s ... when it lasts so long


class LandOnPad:
    """Turns measurements into commands until the drone has landed."""

    def __init__(self, parameters: LandParameters) -> None:
        self._parameters = parameters
        self._stamp: float | None = None

    def update(self, measured: Measured) -> Decision:
        """Return the decision. A stamp that runs back, or jumps by more than a second, resets everything."""
        if self._stamp is None or not 0 <= measured.stamp - self._stamp <= LONGEST_GAP:
            self._start(measured)
            seconds = 0.0
        else:
            seconds = measured.stamp - self._stamp
        self._stamp = measured.stamp
        self._estimate(measured, seconds)
        self._decide(measured, seconds)
        command = self._cut() if self._state is LandState.LANDED else self._guide(measured.rotation, seconds)
        return Decision(command, self._state, self._reason, self._distance())

    def _start(self, measured: Measured) -> None:
        parameters = self._parameters
        self._estimator = PadEstimator()
        self._control = TiltControl(
            TiltGains(
                parameters.full_tilt,
                parameters.thrust_acceleration,
                parameters.max_tilt,
                parameters.velocity_gain,
                parameters.climb_gain,
                parameters.trim_gain,
            )
        )
        self._state, self._reason = LandState.SEARCHING, "nothing seen yet"
        self._since = measured.stamp  # when this state began
        self._seen_at = -math.inf
        self._position: Vector = np.zeros(2)  # by dead reckoning from the start, m
        self._search: ExpandingSquare | None = None
        self._has_flown = False
        self._landed_altitude = math.nan
        self._still_for = 0.0  # s

    # Estimate.

    def _estimate(self, measured: Measured, seconds: float) -> None:
        estimator = self._estimator
        if seconds > 0:
            estimator.predict(acceleration_of_tilt(measured.rotation), seconds)
        estimator.measured_velocity(measured.velocity)
        estimator.measured_altitude(measured.altitude)
        self._position = self._position + estimator.velocity * seconds
        sighting = measured.sighting
        if sighting is not None:
            age = measured.stamp - sighting.stamp
            if 0 <= age <= OLDEST_SIGHTING and estimator.saw_pad(
                sighting.offset, age, sighting.deviation, sighting.vertical_deviation
            ):
                self._seen_at = max(self._seen_at, sighting.stamp)
        self._has_flown |= not measured.landed and measured.altitude > FLYING

    # Decision.

    def _decide(self, measured: Measured, seconds: float) -> None:
        if self._state is LandState.LANDED:
            if not measured.landed and measured.altitude > self._landed_altitude + FLYING:
                self._start(measured)  # somebody took off again
            return
        if touchdown := self._touchdown(measured, seconds):
            self._landed_altitude = measured.altitude
            self._enter(LandState.LANDED, touchdown)
            return
        if not self._estimator.is_tracking:
            self._enter(LandState.SEARCHING, "pad not seen" if self._search is None else "pad not found yet")
            return
        unseen = measured.stamp - self._seen_at
        if self._state is LandState.COMMITTED:
            self._decide_when_committed(measured.stamp, unseen)
        elif unseen > self._parameters.coast_time:
            self._search = self._square(self._position + self._estimator.pad)
            self._estimator.forget()
            self._enter(LandState.SEARCHING, f"pad lost for {unseen:.1f} s")
        elif unseen > self._parameters.lost_time and self._ought_to_see_it():
            self._enter(LandState.CLIMBING, f"pad out of sight for {unseen:.1f} s, {self._where()}")
        elif self._state is LandState.CLIMBING and self._is_too_low_to_go_on():
            self._enter(LandState.CLIMBING, f"off the pad, {self._where()}")
        else:
            self._decide_in_sight(unseen)

    def _decide_in_sight(self, unseen: float) -> None:
        parameters, height = self._parameters, self._estimator.height_above_pad
        away, speed = self._away(), self._relative_speed()
        self._search = None
        far = 1.5 * self._radius(height) * (1.0 if self._state is LandState.APPROACHING else FAR_HYSTERESIS)
        if away > far:
            self._enter(LandState.APPROACHING, f"pad seen {unseen:.1f} s ago, {self._where()}")
        elif height <= parameters.commit_height and away <= parameters.align_radius and speed <= parameters.align_speed:
            self._enter(LandState.COMMITTED, f"aligned at {height:.2f} m, {away:.2f} m off")
        elif self._share_of_descent(height) > 0 and height > parameters.commit_height:
            self._enter(LandState.DESCENDING, f"above the pad, {self._where()}")
        else:
            self._enter(LandState.FOLLOWING, f"aligning, {self._where()} at {speed:.2f} m/s past it")

    def _decide_when_committed(self, stamp: float, unseen: float) -> None:
        parameters, height, away = self._parameters, self._estimator.height_above_pad, self._away()
        if unseen <= parameters.lost_time and away > ABORT_FACTOR * parameters.align_radius:
            self._enter(LandState.CLIMBING, f"off the pad, {self._where()}")
        elif self._estimator.pad_deviation > parameters.blind_deviation and height > parameters.touchdown_height:
            self._enter(LandState.CLIMBING, f"pad not seen for {unseen:.1f} s, it may be elsewhere by now")
        elif height < -parameters.touchdown_height:
            self._enter(LandState.CLIMBING, "beside the pad, and lower")
        elif stamp - self._since > 2.0 + 2.0 * parameters.commit_height / parameters.touchdown_speed:
            self._enter(LandState.CLIMBING, "no touchdown")
        else:
            self._reason = f"going down, {height:.2f} m above the pad, last seen {unseen:.1f} s ago"

    def _ought_to_see_it(self) -> bool:
        """Return whether the pad is below, where it must be visible. The tilt towards one farther aside may hide it."""
        is_below = self._away() <= VIEW_SLOPE * self._estimator.height_above_pad
        return is_below or self._state in (LandState.CLIMBING, LandState.SEARCHING)

    def _is_too_low_to_go_on(self) -> bool:
        parameters = self._parameters
        is_low = self._estimator.height_above_pad < parameters.commit_height + RISE
        return is_low and self._away() > parameters.align_radius

    def _touchdown(self, measured: Measured, seconds: float) -> str:
        """Return the sign of touchdown; empty in flight."""
        if measured.landed and self._has_flown:
            return "touchdown was reported"
        is_still = self._state is LandState.COMMITTED and abs(self._estimator.climb_speed) < STILL_SPEED
        is_down = self._estimator.height_above_pad < self._parameters.touchdown_height
        self._still_for = self._still_for + seconds if is_still and is_down else 0.0
        return "it sinks no further" if self._still_for >= STILL_TIME else ""

    def _enter(self, state: LandState, reason: str) -> None:
        assert self._stamp is not None
        if state is not self._state:
            self._state, self._since = state, self._stamp
        self._reason = reason

    # Guidance.

    def _guide(self, rotation: Matrix, seconds: float) -> ShareCommand:
        """Return the command for the current state."""
        estimator, turn = self._estimator, 0.0
        wanted = np.zeros(3)
        if self._state is LandState.SEARCHING:
            wanted[:2], turn = self._searching(rotation)
            wanted[2] = self._to_altitude(self._parameters.search_height)
        else:
            wanted[:2] = self._chasing()
            wanted[2] = self._sinking()
        error = wanted - np.append(estimator.velocity, estimator.climb_speed)
        return self._control.command(error, rotation, turn, seconds)

    def _searching(self, rotation: Matrix) -> tuple[Vector, float]:
        """Return the velocity along the search pattern, and the turn that points the nose along it."""
        if self._estimator.altitude < HIGH_ENOUGH * self._parameters.search_height:
            return np.zeros(2), 0.0
        if self._search is None:
            self._search = self._square(self._position)
        to_go = self._search.advance(self._position) - self._position
        ahead = math.atan2(to_go[1], to_go[0]) - math.atan2(rotation[1, 0], rotation[0, 0])
        turn = self._parameters.yaw_gain * math.remainder(ahead, math.tau)
        return self._towards(to_go, self._parameters.search_speed), turn

    def _chasing(self) -> Vector:
        """Return the velocity that leads above the pad and follows it."""
        estimator, lead = self._estimator, self._parameters.response_time
        to_go = estimator.pad + (estimator.pad_velocity - estimator.velocity) * lead
        wanted: Vector = estimator.pad_velocity + self._towards(to_go, self._parameters.max_speed)
        return wanted

    def _sinking(self) -> float:
        """Return the vertical velocity, m/s, for a state in which the pad's position is known."""
        parameters, height = self._parameters, self._estimator.height_above_pad
        if self._state is LandState.COMMITTED:
            return -parameters.touchdown_speed
        if self._state is LandState.CLIMBING:
            return self._to_altitude(max(parameters.search_height, self._estimator.altitude))
        if height <= parameters.commit_height:
            return min(parameters.commit_height - height, parameters.max_climb_speed)
        return -self._share_of_descent(height) * self._descent_speed(height)

    def _descent_speed(self, height: float) -> float:
        parameters = self._parameters
        above = height - parameters.commit_height
        return min(parameters.touchdown_speed + parameters.descent_gain * above, parameters.max_descent_speed)

    def _share_of_descent(self, height: float) -> float:
        """Return 1 if aligned well enough to descend at full speed, 0 to not descend at all."""
        parameters = self._parameters
        above = max(height - parameters.commit_height, 0.0)
        radius, speed = self._radius(height), parameters.align_speed + above / 2
        return _falling(self._away() / radius) * _falling(self._relative_speed() / speed)

    def _radius(self, height: float) -> float:
        """Return the allowed distance from the pad's centre at a height, m, which grows with the height."""
        above = max(height - self._parameters.commit_height, 0.0)
        return self._parameters.align_radius + self._parameters.align_slope * above

    def _to_altitude(self, altitude: float) -> float:
        parameters = self._parameters
        climb = altitude - self._estimator.altitude
        return max(-parameters.max_descent_speed, min(parameters.max_climb_speed, climb))

    def _towards(self, to_go: Vector, max_speed: float) -> Vector:
        """Return the fastest velocity from which the drone can stop within a distance."""
        parameters, distance = self._parameters, float(np.linalg.norm(to_go))
        gain, deceleration = parameters.position_gain, parameters.max_deceleration
        bend = deceleration / gain**2  # m; nearer than that, speed is proportional to the distance
        speed = gain * distance if distance < bend else math.sqrt(2 * deceleration * (distance - bend / 2))
        wanted: Vector = min(speed, max_speed) * to_go / max(distance, 1e-9)
        return wanted

    def _cut(self) -> ShareCommand:
        """Return full thrust downwards, which stops the motors, and after a while nothing."""
        assert self._stamp is not None
        is_cutting = self._stamp - self._since <= self._parameters.cut_time
        return ShareCommand(up=-1.0) if is_cutting else ShareCommand()

    # What guidance and decision look at.

    def _away(self) -> float:
        """Return the distance from the pad's centre, m, when the next command takes effect."""
        estimator, lead = self._estimator, self._parameters.response_time
        return float(np.linalg.norm(estimator.pad + (estimator.pad_velocity - estimator.velocity) * lead))

    def _relative_speed(self) -> float:
        return float(np.linalg.norm(self._estimator.pad_velocity - self._estimator.velocity))

    def _distance(self) -> float | None:
        if not self._estimator.is_tracking or self._state is LandState.LANDED:
            return None
        return math.hypot(*self._estimator.pad, self._estimator.height_above_pad)

    def _where(self) -> str:
        beside = float(np.linalg.norm(self._estimator.pad))
        return f"{self._estimator.height_above_pad:.1f} m below and {beside:.2f} m aside"

    def _square(self, middle: Vector) -> ExpandingSquare:
        return ExpandingSquare(middle, self._parameters.search_spacing, self._parameters.search_radius)


def _falling(ratio: float) -> float:
    """Return 1 up to a ratio of 1, decreasing to 0 at 2."""
    return max(0.0, min(1.0, 2.0 - ratio))
