# SPDX-License-Identifier: Apache-2.0
"""LandOnPad, the logic of the behaviour `land_on_pad`: find a moving pad, follow it, land, and stop the motors.

The drone has no absolute position. Measurements are its velocity, its height and, while the pad is in sight, the pad's
relative position. Each set of measurements is processed in three stages:

1. Estimate: Kalman filters track the pad's position and velocity, also for a while after the last sighting.
2. Decision: the state of the landing, and the reason for it.
3. Guidance: a velocity for that state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.flight_control import braking_profile
from drone_bridge.motion.matrices import Matrix, Vector, limited

RESPONSE_TIME = 0.3  # delay from a command to its effect, s

# Limits.
MAX_SPEED = 2.5  # relative to the pad, towards it, m/s
MAX_DECELERATION = 0.9  # deceleration on which braking distances are based, m/s^2
MAX_CLIMB_SPEED = 2.0  # m/s
MAX_DESCENT_SPEED = 1.5  # speed while searching, m/s

# Search.
SEARCH_HEIGHT = 7.0  # height above ground, m
SEARCH_SPEED = 1.5  # m/s
SEARCH_SPACING = 4.0  # distance between the lanes of the search pattern, m
SEARCH_RADIUS = 10.0  # radius at which the search starts over, m
LOST_TIME = 0.5  # time without sight of the pad after which the drone climbs, s
COAST_TIME = 3.0  # time without sight of the pad after which the search restarts, s

# Landing.
ALIGN_RADIUS = 0.2  # maximum distance from the pad's centre for landing, m
ALIGN_SLOPE = 0.2  # additional distance allowed while descending, per m above COMMIT_HEIGHT
ALIGN_SPEED = 0.4  # maximum speed relative to the pad for landing, m/s
COMMIT_HEIGHT = 0.6  # height above the pad below which the landing is not aborted, m
#: Standard deviation of the pad's position, while out of sight, above which a landing is aborted, m.
BLIND_DEVIATION = 0.3
TOUCHDOWN_SPEED = 0.5  # sink rate at touchdown, m/s
TOUCHDOWN_HEIGHT = 0.2  # upper bound of the height measured while standing on the pad, m
DESCENT_GAIN = 1.0  # additional sink rate per m above COMMIT_HEIGHT, 1/s
CUT_TIME = 2.0  # time for which the motors are commanded to stop after touchdown, s

# Control.
POSITION_GAIN = 2.0  # position gain close to the pad, 1/s
YAW_GAIN = 0.35  # turn rate per rad of heading error, while searching, 1/s

GRAVITY = 9.81  # m/s^2
MAX_TURN_RATE = 0.5  # rad/s
#: Lead compensation for the lag of the drone: share of the velocity error that is added to the command.
LEAD = 1.0
#: Limit of the commanded speed, in multiples of MAX_SPEED. No pad is that fast.
FASTEST = 3.0


def acceleration_of_tilt(rotation: Matrix) -> Vector:
    """Return the horizontal acceleration, 2, m/s^2, of a tilted drone whose thrust balances its weight."""
    upright = max(float(rotation[2, 2]), 0.1)
    acceleration: Vector = GRAVITY * rotation[:2, 2] / upright
    return acceleration


def _heading(rotation: Matrix) -> Vector:
    forward: Vector = rotation[:2, 0]
    return forward / max(float(np.linalg.norm(forward)), 1e-9)


# Inputs and outputs of `LandOnPad`.


class LandState(str, Enum):
    """State of the landing."""

    SEARCHING = "searching"
    APPROACHING = "approaching"
    FOLLOWING = "following"
    DESCENDING = "descending"
    COMMITTED = "committed"
    CLIMBING = "climbing"
    LANDED = "landed"


@dataclass(frozen=True, slots=True)
class PadSighting:
    """Position of the pad relative to the drone, with its uncertainty."""

    stamp: float  # s
    offset: Vector  # from the drone, 3, m, levelled axes
    deviation: float  # standard deviation of the offset along each horizontal axis, m
    vertical_deviation: float  # the same along the vertical axis, m


@dataclass(frozen=True, slots=True)
class StampedMeasurements:
    """Measurements of one stamp. Levelled axes: z up, x along the nose at yaw 0."""

    stamp: float  # s
    rotation: Matrix  # from body to levelled axes
    velocity: Vector  # 3, m/s
    altitude: float  # m above the ground
    sighting: PadSighting | None = None
    landed: bool = False


@dataclass(frozen=True, slots=True)
class PadDecision:
    """Command, and the reason for it."""

    command: BodyVelocity
    state: LandState
    reason: str  # a human-readable phrase
    distance: float | None  # to the pad, m; None while unknown

    @property
    def is_final(self) -> bool:
        """Whether it is the last descent, up to the stop of the motors."""
        return self.state in (LandState.COMMITTED, LandState.LANDED) and self.command != STILL


# Kalman filters for the position and velocity of pad and drone.
#
# Frame: levelled, z up, x along the nose at yaw 0. It has no fixed origin: without GPS, only the position of the pad
# relative to the drone and its rate of change are known.


PAD, PAD_VELOCITY, DRONE_VELOCITY = range(3)  # rows of the horizontal state
HEIGHT, CLIMB, PAD_HEIGHT = range(3)  # entries of the vertical state
_ENTRY = np.eye(3)  # rows that measure one entry

START_DRONE_SPEED_DEVIATION = 1.0  # m/s
START_PAD_SPEED_DEVIATION = 0.5  # m/s
START_HEIGHT_DEVIATION = 10.0  # m
START_CLIMB_DEVIATION = 1.0  # m/s
START_PAD_HEIGHT_DEVIATION = 0.3  # m above the ground, which the altimeter refers to
UNKNOWN_DEVIATION = 100.0  # m
PAD_ACCELERATION_NOISE = 0.6  # m/s after 1 s; a reversing rover changes its velocity abruptly
DRONE_ACCELERATION_NOISE = 0.6  # m/s after 1 s: gusts, drag, and errors of the measured tilt
CLIMB_NOISE = 3.0  # m/s after 1 s; large, since thrust is not modelled
PAD_HEIGHT_NOISE = 0.02  # m after 1 s
VELOCITY_DEVIATION = 0.08  # m/s, by optical flow
HEIGHT_DEVIATION = 0.05  # m
CLIMB_DEVIATION = 0.1  # m/s
UNRELATED_DEVIATIONS = 5.0  # a sighting this far from the expected position is not accepted at once ...
BELIEVED_AFTER = 3  # ... but after this many in a row


class KalmanFilter:
    """State with its covariance. All columns of the state have the same noise, and share one covariance."""

    def __init__(self, state: Vector, deviations: Sequence[float]) -> None:
        self.state = state
        self.covariance: Matrix = np.diag(deviations) ** 2

    def predict(self, transition: Matrix, noise: Sequence[float], seconds: float) -> None:
        """Advance in time. `noise` is the standard deviation that 1 s adds to each entry."""
        self.state = transition @ self.state
        self.covariance = transition @ self.covariance @ transition.T + np.diag(noise) ** 2 * seconds

    def correct(self, row: Vector, measured: Vector | float, deviation: float) -> None:
        """Correct by a measurement of row @ state (Joseph's form)."""
        gain = self.covariance @ row / self.variance(row, deviation)
        kept = np.eye(len(row)) - np.outer(gain, row)
        self.state = self.state + np.multiply.outer(gain, measured - row @ self.state)
        self.covariance = kept @ self.covariance @ kept.T + deviation**2 * np.outer(gain, gain)

    def variance(self, row: Vector, deviation: float = 0.0) -> float:
        """Return the variance of a measurement of row @ state."""
        return float(row @ self.covariance @ row) + deviation**2


class PadEstimator:
    """Fuses the drone's velocity and altitude with sightings of the pad.

    The horizontal state is 3 x 2, with the rows named above. The drone's own motion is estimated without a pad, too.
    `is_tracking` is False before the first sighting and after `forget`.
    """

    def __init__(self) -> None:
        start = [UNKNOWN_DEVIATION, START_PAD_SPEED_DEVIATION, START_DRONE_SPEED_DEVIATION]
        self._level = KalmanFilter(np.zeros((3, 2)), start)
        start = [START_HEIGHT_DEVIATION, START_CLIMB_DEVIATION, START_PAD_HEIGHT_DEVIATION]
        self._vertical = KalmanFilter(np.zeros(3), start)
        self._doubted = 0  # rejected sightings in a row
        self.is_tracking = False

    @property
    def pad(self) -> Vector:
        """Position of the pad relative to the drone, 2, m. Meaningless before the first sighting."""
        return np.array(self._level.state[PAD])

    @property
    def pad_velocity(self) -> Vector:
        """Velocity of the pad over ground, 2, m/s."""
        return np.array(self._level.state[PAD_VELOCITY])

    @property
    def velocity(self) -> Vector:
        """Velocity of the drone over ground, 2, m/s."""
        return np.array(self._level.state[DRONE_VELOCITY])

    @property
    def altitude(self) -> float:
        """Height of the drone above the ground, m."""
        return float(self._vertical.state[HEIGHT])

    @property
    def climb_speed(self) -> float:
        """Vertical speed of the drone, positive upwards, m/s."""
        return float(self._vertical.state[CLIMB])

    @property
    def height_above_pad(self) -> float:
        """Height of the drone above the pad, m. Before the first sighting, the pad is assumed to lie on the ground."""
        return float(self._vertical.state[HEIGHT] - self._vertical.state[PAD_HEIGHT])

    @property
    def pad_deviation(self) -> float:
        """Standard deviation of the pad's position along each horizontal axis, m."""
        return math.sqrt(self._level.variance(_ENTRY[PAD]))

    def predict(self, acceleration: Vector, seconds: float) -> None:
        """Advance in time by the acceleration due to the drone's tilt, 2, m/s^2."""
        transition = np.array([[1.0, seconds, -seconds], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        self._level.predict(transition, (0.0, PAD_ACCELERATION_NOISE, DRONE_ACCELERATION_NOISE), seconds)
        self._level.state[PAD] -= acceleration * seconds**2 / 2
        self._level.state[DRONE_VELOCITY] += acceleration * seconds
        climbing = np.array([[1.0, seconds, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        self._vertical.predict(climbing, (0.0, CLIMB_NOISE, PAD_HEIGHT_NOISE), seconds)

    def measured_velocity(self, velocity: Vector) -> None:
        """Correct by the drone's velocity, 3, m/s."""
        self._level.correct(_ENTRY[DRONE_VELOCITY], velocity[:2], VELOCITY_DEVIATION)
        self._vertical.correct(_ENTRY[CLIMB], float(velocity[2]), CLIMB_DEVIATION)

    def measured_altitude(self, altitude: float) -> None:
        """Correct by the drone's height above the ground, m."""
        self._vertical.correct(_ENTRY[HEIGHT], altitude, HEIGHT_DEVIATION)

    def saw_pad(self, sighting: PadSighting, age: float) -> bool:
        """Correct by a sighting that is `age` s old. Return whether it was accepted."""
        row = np.array([1.0, -age, age])  # coefficients of the pad, its velocity and the drone's
        offset, deviation = sighting.offset, sighting.deviation
        if self.is_tracking:
            away = float(np.linalg.norm(offset[:2] - row @ self._level.state))
            if away > UNRELATED_DEVIATIONS * math.sqrt(self._level.variance(row, deviation)):
                self._doubted += 1
                if self._doubted < BELIEVED_AFTER:
                    return False
                self.forget()
        self._doubted = 0
        self.is_tracking = True
        self._level.correct(row, offset[:2], deviation)
        above = np.array([1.0, -age, -1.0])  # coefficients of the height, the climb and the pad's height
        self._vertical.correct(above, -float(offset[2]), max(sighting.vertical_deviation, HEIGHT_DEVIATION))
        return True

    def forget(self) -> None:
        """Discard the pad, but keep the drone's own motion."""
        self.is_tracking = False
        self._doubted = 0
        own = math.sqrt(self._level.variance(_ENTRY[DRONE_VELOCITY]))
        state = self._level.state * _ENTRY[DRONE_VELOCITY][:, np.newaxis]
        self._level = KalmanFilter(state, [UNKNOWN_DEVIATION, START_PAD_SPEED_DEVIATION, own])


# The expanding square, a pattern of search and rescue.


CORNER_REACHED_M = 0.4
_DIRECTIONS = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))


class ExpandingSquare:
    """Search pattern: legs of 1, 1, 2, 2, 3, 3 ... times the spacing, each at a right angle to the last one.

    It begins in the middle, and starts over there at the radius.
    """

    def __init__(self, middle: Vector) -> None:
        self._middle = middle.copy()
        self._leg = 0
        self.corner = middle.copy()

    def advance(self, position: Vector) -> Vector:
        """Return the corner to fly to. The next one follows once this one is reached."""
        if float(np.linalg.norm(self.corner - position)) < CORNER_REACHED_M:
            direction = np.array(_DIRECTIONS[self._leg % len(_DIRECTIONS)])
            self.corner = self.corner + (self._leg // 2 + 1) * SEARCH_SPACING * direction
            self._leg += 1
            if float(np.abs(self.corner - self._middle).max()) > SEARCH_RADIUS:
                self.corner, self._leg = self._middle.copy(), 0
        return self.corner


LONGEST_GAP = 1.0  # s between measurements; a longer gap resets the landing
OLDEST_SIGHTING = 0.5  # s
HIGH_ENOUGH = 0.8  # share of SEARCH_HEIGHT from which the drone flies along the search pattern
FLYING = 0.5  # m above the ground or the landing place; a drone that has been this high counts as having flown
FAR_HYSTERESIS = 1.2  # factor on the distance from which a pad is approached again
VIEW_SLOPE = 0.35  # m of horizontal distance per m of height, within which a pad is in view unless the drone tilts hard
ABORT_FACTOR = 1.5  # multiple of the radius within which a landing is committed
RISE = 0.5  # m above COMMIT_HEIGHT to which an aborted landing climbs
STILL_SPEED = 0.1  # m/s; a descending drone that is slower than this ...
STILL_TIME = 0.3  # s ... for this long stands on something


class LandOnPad:
    """Pilot of a landing: measurements in, commands out, until touchdown."""

    def __init__(self, *, climbs_first: bool = False) -> None:
        """With `climbs_first`, climb to the search height first, even if the pad is in sight or below."""
        self._climbs_first = climbs_first
        self._stamp: float | None = None

    def update(self, measured: StampedMeasurements) -> PadDecision:
        """Return the decision. A stamp that goes back or jumps by more than LONGEST_GAP resets the landing."""
        if self._stamp is None or not 0 <= measured.stamp - self._stamp <= LONGEST_GAP:
            self._start(measured)
            seconds = 0.0
        else:
            seconds = measured.stamp - self._stamp
        self._stamp = measured.stamp
        self._estimate(measured, seconds)
        self._decide(measured, seconds)
        command = self._cut() if self._state is LandState.LANDED else self._guide(measured.rotation)
        return PadDecision(command, self._state, self._reason, self._distance())

    def _start(self, measured: StampedMeasurements) -> None:
        self._estimator = PadEstimator()
        self._state, self._reason = LandState.SEARCHING, "nothing seen yet"
        self._since = measured.stamp  # when this state began
        self._seen_at = -math.inf
        self._position: Vector = np.zeros(2)  # by dead reckoning, relative to the start, m
        self._search: ExpandingSquare | None = None
        self._has_flown = False
        self._landed_altitude = math.nan
        self._still_for = 0.0  # s

    # Estimate.

    def _estimate(self, measured: StampedMeasurements, seconds: float) -> None:
        estimator = self._estimator
        if seconds > 0:
            estimator.predict(acceleration_of_tilt(measured.rotation), seconds)
        estimator.measured_velocity(measured.velocity)
        estimator.measured_altitude(measured.altitude)
        self._position = self._position + estimator.velocity * seconds
        sighting = measured.sighting
        if sighting is not None:
            age = measured.stamp - sighting.stamp
            if 0 <= age <= OLDEST_SIGHTING and estimator.saw_pad(sighting, age):
                self._seen_at = max(self._seen_at, sighting.stamp)
        self._has_flown |= not measured.landed and measured.altitude > FLYING

    # Decision.

    def _decide(self, measured: StampedMeasurements, seconds: float) -> None:
        if self._state is LandState.LANDED:
            if not measured.landed and measured.altitude > self._landed_altitude + FLYING:
                self._start(measured)  # the drone has taken off again
            return
        if touchdown := self._touchdown(measured, seconds):
            self._landed_altitude = measured.altitude
            self._enter(LandState.LANDED, touchdown)
            return
        self._climbs_first &= self._estimator.altitude < HIGH_ENOUGH * SEARCH_HEIGHT
        if self._climbs_first:
            self._enter(LandState.SEARCHING, f"climbing to search, {measured.altitude:.1f} m high")
            return
        if not self._estimator.is_tracking:
            self._enter(LandState.SEARCHING, "pad not seen" if self._search is None else "pad not found yet")
            return
        unseen = measured.stamp - self._seen_at
        if self._state is LandState.COMMITTED:
            self._decide_when_committed(measured.stamp, unseen)
        else:
            self._decide_when_tracking(unseen)

    def _decide_when_tracking(self, unseen: float) -> None:
        if unseen > COAST_TIME:
            self._search = ExpandingSquare(self._position + self._estimator.pad)
            self._estimator.forget()
            self._enter(LandState.SEARCHING, f"pad lost for {unseen:.1f} s")
        elif unseen > LOST_TIME and self._ought_to_see_it():
            self._enter(LandState.CLIMBING, f"pad out of sight for {unseen:.1f} s, {self._where()}")
        elif self._state is LandState.CLIMBING and self._is_too_low_to_go_on():
            self._enter(LandState.CLIMBING, f"off the pad, {self._where()}")
        else:
            self._decide_in_sight(unseen)

    def _decide_in_sight(self, unseen: float) -> None:
        height = self._estimator.height_above_pad
        away, speed = self._away(), self._relative_speed()
        self._search = None
        far = 1.5 * self._radius(height) * (1.0 if self._state is LandState.APPROACHING else FAR_HYSTERESIS)
        if away > far:
            self._enter(LandState.APPROACHING, f"pad seen {unseen:.1f} s ago, {self._where()}")
        elif height <= COMMIT_HEIGHT and away <= ALIGN_RADIUS and speed <= ALIGN_SPEED:
            self._enter(LandState.COMMITTED, f"aligned at {height:.2f} m, {away:.2f} m off")
        elif self._share_of_descent(height) > 0 and height > COMMIT_HEIGHT:
            self._enter(LandState.DESCENDING, f"above the pad, {self._where()}")
        else:
            self._enter(LandState.FOLLOWING, f"aligning, {self._where()} at {speed:.2f} m/s past it")

    def _decide_when_committed(self, stamp: float, unseen: float) -> None:
        height, away = self._estimator.height_above_pad, self._away()
        if unseen <= LOST_TIME and away > ABORT_FACTOR * ALIGN_RADIUS:
            self._enter(LandState.CLIMBING, f"off the pad, {self._where()}")
        elif self._estimator.pad_deviation > BLIND_DEVIATION and height > TOUCHDOWN_HEIGHT:
            self._enter(LandState.CLIMBING, f"pad not seen for {unseen:.1f} s, it may be elsewhere by now")
        elif height < -TOUCHDOWN_HEIGHT:
            self._enter(LandState.CLIMBING, "beside the pad, and lower")
        elif stamp - self._since > 2.0 + 2.0 * COMMIT_HEIGHT / TOUCHDOWN_SPEED:
            self._enter(LandState.CLIMBING, "no touchdown")
        else:
            self._reason = f"going down, {height:.2f} m above the pad, last seen {unseen:.1f} s ago"

    def _ought_to_see_it(self) -> bool:
        """Return whether the pad should be visible. The tilt towards a pad farther aside may hide it."""
        is_below = self._away() <= VIEW_SLOPE * self._estimator.height_above_pad
        return is_below or self._state in (LandState.CLIMBING, LandState.SEARCHING)

    def _is_too_low_to_go_on(self) -> bool:
        is_low = self._estimator.height_above_pad < COMMIT_HEIGHT + RISE
        return is_low and self._away() > ALIGN_RADIUS

    def _touchdown(self, measured: StampedMeasurements, seconds: float) -> str:
        """Return the evidence of touchdown, or an empty string in flight."""
        if measured.landed and self._has_flown:
            return "touchdown was reported"
        is_still = self._state is LandState.COMMITTED and abs(self._estimator.climb_speed) < STILL_SPEED
        is_down = self._estimator.height_above_pad < TOUCHDOWN_HEIGHT
        self._still_for = self._still_for + seconds if is_still and is_down else 0.0
        return "it sinks no further" if self._still_for >= STILL_TIME else ""

    def _enter(self, state: LandState, reason: str) -> None:
        assert self._stamp is not None
        if state is not self._state:
            self._state, self._since = state, self._stamp
        self._reason = reason

    # Guidance.

    def _guide(self, rotation: Matrix) -> BodyVelocity:
        """Return the velocity for the current state."""
        estimator, turn = self._estimator, 0.0
        if self._state is LandState.SEARCHING:
            wanted, turn = self._searching(rotation)
            climb = self._to_altitude(SEARCH_HEIGHT)
        else:
            wanted, climb = self._chasing(), self._sinking()
        heading = _heading(rotation)
        led = limited(wanted + LEAD * (wanted - estimator.velocity), FASTEST * MAX_SPEED)
        left = float(heading[0] * led[1] - heading[1] * led[0])
        turn = max(-MAX_TURN_RATE, min(MAX_TURN_RATE, turn))
        return BodyVelocity(float(led @ heading), left, climb, turn=turn)

    def _searching(self, rotation: Matrix) -> tuple[Vector, float]:
        """Return the velocity along the search pattern, m/s, and the yaw rate that aligns the nose with it, rad/s."""
        if self._estimator.altitude < HIGH_ENOUGH * SEARCH_HEIGHT:
            return np.zeros(2), 0.0
        if self._search is None:
            self._search = ExpandingSquare(self._position)
        to_go = self._search.advance(self._position) - self._position
        ahead = math.atan2(to_go[1], to_go[0]) - math.atan2(rotation[1, 0], rotation[0, 0])
        turn = YAW_GAIN * math.remainder(ahead, math.tau)
        return self._towards(to_go, SEARCH_SPEED), turn

    def _chasing(self) -> Vector:
        """Return the velocity that leads to the pad and follows it."""
        estimator, lead = self._estimator, RESPONSE_TIME
        to_go = estimator.pad + (estimator.pad_velocity - estimator.velocity) * lead
        wanted: Vector = estimator.pad_velocity + self._towards(to_go, MAX_SPEED)
        return wanted

    def _sinking(self) -> float:
        """Return the vertical velocity, m/s, while the pad is tracked."""
        height = self._estimator.height_above_pad
        if self._state is LandState.COMMITTED:
            return -TOUCHDOWN_SPEED
        if self._state is LandState.CLIMBING:
            return self._to_altitude(max(SEARCH_HEIGHT, self._estimator.altitude))
        if height <= COMMIT_HEIGHT:
            return min(COMMIT_HEIGHT - height, MAX_CLIMB_SPEED)
        return -self._share_of_descent(height) * self._descent_speed(height)

    def _descent_speed(self, height: float) -> float:
        above = height - COMMIT_HEIGHT
        return min(TOUCHDOWN_SPEED + DESCENT_GAIN * above, MAX_DESCENT_SPEED)

    def _share_of_descent(self, height: float) -> float:
        """Return the share of the descent speed: 1 if well aligned, 0 to stay at this height."""
        above = max(height - COMMIT_HEIGHT, 0.0)
        radius, speed = self._radius(height), ALIGN_SPEED + above / 2
        return _falling(self._away() / radius) * _falling(self._relative_speed() / speed)

    def _radius(self, height: float) -> float:
        """Return the allowed distance from the pad's centre, m, which grows with the height."""
        above = max(height - COMMIT_HEIGHT, 0.0)
        return ALIGN_RADIUS + ALIGN_SLOPE * above

    def _to_altitude(self, altitude: float) -> float:
        climb = altitude - self._estimator.altitude
        return max(-MAX_DESCENT_SPEED, min(MAX_CLIMB_SPEED, climb))

    def _towards(self, to_go: Vector, max_speed: float) -> Vector:
        """Return the fastest velocity, up to `max_speed`, from which the drone can stop within a distance."""
        distance = float(np.linalg.norm(to_go))
        speed, _ = braking_profile(distance, POSITION_GAIN, MAX_DECELERATION)
        wanted: Vector = min(speed, max_speed) * to_go / max(distance, 1e-9)
        return wanted

    def _cut(self) -> BodyVelocity:
        """Return a descent, which stops the motors of a landed drone, and zero after CUT_TIME."""
        assert self._stamp is not None
        is_cutting = self._stamp - self._since <= CUT_TIME
        return BodyVelocity(up=-MAX_DESCENT_SPEED) if is_cutting else BodyVelocity()

    # Inputs of guidance and decision.

    def _away(self) -> float:
        """Return the distance from the pad's centre, m, when the next command takes effect."""
        estimator, lead = self._estimator, RESPONSE_TIME
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


def _falling(ratio: float) -> float:
    """Return 1 up to a ratio of 1, decreasing to 0 at 2."""
    return max(0.0, min(1.0, 2.0 - ratio))
