# SPDX-License-Identifier: Apache-2.0
"""TiltControl: velocity controller of a drone that is commanded by shares of its full tilt, climb and turn rate.

Such a drone accelerates with its tilt, against drag. Its speed is estimated by that model and corrected by the
measurements. A disturbance, mainly wind, is estimated with it. The command tracks a reference that moves within the
drone's abilities, which avoids overshoot. The lag behind the reference is made up for, up to a leash, which avoids
drift. Without measurements the control uses the estimate alone, with little tilt.

The tilt is the sum of two parts. What the reference needs follows from the command alone, so that no report takes the
authority to brake. The rest is feedback, and bounded by the proven wind (see ProvenWind).

The delay of a link may exceed the lag of the tilt. It shows in the time until a command takes effect. There is an
estimate for each of several delays. The one that agrees best with the measurements is extrapolated by the commands that
have not taken effect yet.

Vectors are in a levelled frame, REP 103: z up, x and y of the measured yaw's frame, or along the heading (body axes).
"""

from __future__ import annotations

import math
from collections import deque
from copy import copy

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.motion_observer import Trust
from drone_bridge.motion.proven_wind import MOVES_M_S, ProvenWind
from drone_bridge.motion.tilted_drone import GRAVITY, Motion, Shares, TiltedDrone, direction_of

MAX_ACCELERATION = 1.5  # m/s^2, of the commanded velocity
VELOCITY_GAIN = 2.5  # 1/s
POSITION_GAIN = 0.8  # 1/s
HEIGHT_GAIN = 1.5  # 1/s
YAW_GAIN = 2.0  # 1/s
# Largest distance between drone and reference; beyond it the reference waits.
LEASH_M = 0.5
HEIGHT_LEASH_M = 0.3
YAW_LEASH_RAD = 0.3
#: Time constant of the filter by which measured velocities correct the estimate.
MEMORY_S = 0.2
WIND_GAIN = 10.0  # 1/s^2
MAX_DISTURBANCE = 2.0  # m/s^2; wind is weaker
#: Decay time of the wind estimate without measurements.
GUST_TIME_S = 1.0
#: Share of the full tilt that is used without measurements, in addition to the tilt against the estimated wind.
BLIND_TILT_SHARE = 0.2
#: A longer step is due to a stall.
LONGEST_STEP_S = 0.2
#: Delays from a command to its effect in the measurements, beyond the lag of the tilt. By reports that are later than
#: LATE_S, height and heading are not held.
DELAYS_S, LATE_S = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 2.5, 3.0), 0.6
#: Estimates must differ by more, m/s, to reveal the delay.
TELLING_M_S = 0.1
#: Weight of a new measurement in the mean square error of an estimate.
DELAY_SHARE = 0.15
#: Hysteresis of the delay: margin for noise, (m/s)^2, and largest ratio to the present error.
DELAY_NOISE, BETTER_SHARE = 1e-3, 0.6
ALL, NOTHING = Trust(), Trust(speed=False, height=False, heading=False, is_settled=False)
#: Lag from a command to thrust.
THRUST_LAG_S = 0.15


class Estimate:
    """Estimated motion of a drone whose commands act after a delay. Horizontal vectors are complex: x + jy."""

    def __init__(self, drone: TiltedDrone, delay_s: float) -> None:
        self._drone = drone
        self.delay_s = delay_s
        self.velocity = self.disturbance = 0j
        self.tilt = 0j  # actual tilt, as acceleration in body axes, m/s^2
        self.error = 0.0  # mean square of the prediction error, (m/s)^2

    def predict(self, commanded: complex, yaw: float, step_s: float) -> None:
        """Predict one step with a commanded tilt, in body axes."""
        drone = self._drone
        self.tilt += (commanded - self.tilt) * -math.expm1(-step_s / drone.tilt_lag)
        self.velocity += (self.tilt * direction_of(yaw) + self.disturbance - drone.drag * self.velocity) * step_s

    def correct(self, velocity: complex, since_s: float, *, is_informative: bool) -> None:
        """Correct by a measured velocity, `since_s` after the last one."""
        missed = velocity - self.velocity
        if is_informative:
            self.error += DELAY_SHARE * (abs(missed) ** 2 - self.error)
        self.velocity += -math.expm1(-2 * since_s / MEMORY_S) * missed
        self.disturbance = _limited(self.disturbance + WIND_GAIN * since_s * missed, MAX_DISTURBANCE)


class TiltControl:
    """Velocity controller. Call `measure` for each measurement, and `command` for each command to send."""

    def __init__(self, drone: TiltedDrone) -> None:
        self.drone = drone
        self.restart()

    def restart(self) -> None:
        """Restart at rest, as at the beginning of a flight. It flies blind until the first measurement."""
        self._motion: Motion | None = None
        self._trust = NOTHING
        self._since_measured_s = 0.0
        self._yaw = self._yaw_rate = 0.0  # estimated
        self._estimates = [Estimate(self.drone, delay_s) for delay_s in DELAYS_S]
        self._best = self._estimates[0]
        self._now = copy(self._best)
        # Commanded tilt, in body axes, and its duration; the newest last. More than fit into the longest delay.
        self._commanded: deque[tuple[complex, float]] = deque(maxlen=256)
        self._asked = self._reference = 0j  # in body axes: commanded velocity, and that of an ideal drone
        self._behind = 0j  # distance to the reference, m
        self._wind, self._is_bounded = ProvenWind(), False  # whether the feedback was bounded
        self._climb = self._climb_reference = 0.0  # m/s
        self._height_behind = self._yaw_behind = 0.0

    def measure(self, motion: Motion, trust: Trust = ALL) -> None:
        """Correct the estimates by a measurement, as far as it is believed."""
        velocity = complex(motion.forward, motion.left) * direction_of(motion.yaw)
        before, self._motion, self._trust = self._motion, motion, trust
        if before is None:
            self._yaw = motion.yaw
            if trust.speed:
                self.set_estimate(velocity, 0j)
                self._asked = self._reference = complex(motion.forward, motion.left)
        else:
            self._height_behind += before.height - motion.height
            self._yaw_behind -= math.remainder(motion.yaw - self._yaw, math.tau)
            if trust.speed:
                self._correct(velocity)
            self._yaw = motion.yaw
        if trust.speed:
            self._since_measured_s = 0.0

    def set_estimate(self, velocity: complex, disturbance: complex) -> None:
        """Replace the estimates: a velocity (m/s), and the proven part of an acceleration by wind (m/s^2), levelled."""
        for estimate in (*self._estimates, self._now):
            estimate.velocity, estimate.disturbance = velocity, _limited(disturbance, self._wind.strength)

    @property
    def velocity(self) -> complex:
        """Velocity by the model, in body axes, m/s: the commanded one while the reported one does not answer."""
        return self._reference if self.is_unanswered else self._now.velocity / direction_of(self._yaw)

    @property
    def is_unanswered(self) -> bool:
        """Whether the drone has reported no motion for some time although it is tilted."""
        return self._wind.is_unanswered

    def command(self, wanted: BodyVelocity, step_s: float, *, is_blind: bool = False) -> Shares:
        """Return the command until the next call, `step_s` after the previous one.

        Args:
            wanted: the velocity to fly, within the drone's maxima.
            step_s: time since the last call, s.
            is_blind: whether measurements have stopped; the height is then not held.
        """
        step_s = min(step_s, LONGEST_STEP_S)
        self._since_measured_s += step_s
        trust = NOTHING if is_blind or self._motion is None else self._trust
        if self._best.delay_s > LATE_S:
            trust = trust._replace(height=False, heading=False)
        if not trust.speed:
            for estimate in self._estimates:
                estimate.disturbance *= math.exp(-step_s / GUST_TIME_S)
        self._predict(step_s)
        thrust, yaw = self._climbing(wanted.up, step_s, trust), self._turning(wanted.turn, step_s, trust)
        if not wanted.forward and not wanted.left and abs(self._reference) > MOVES_M_S:
            self._wind.stopped()
        needed, feedback = self._pull(complex(wanted.forward, wanted.left), step_s)
        most = math.tan(self.drone.max_tilt) * GRAVITY
        if trust.speed:
            share = self._wind.usable(abs(feedback), step_s, is_settled=trust.is_settled)
            feedback, self._is_bounded = share * feedback, share < 1.0
        else:
            self._wind.doubted(step_s)
            gentle = math.tan(self.drone.max_tilt * BLIND_TILT_SHARE) * GRAVITY
            most = min(most, gentle + abs(self._now.disturbance))
        pull = _limited(needed + feedback, most)
        self._commanded.append((pull, step_s))
        tilt, full = pull * math.atan(abs(pull) / GRAVITY) / max(abs(pull), 1e-9), self.drone.max_tilt
        return Shares(thrust, _share(tilt.real, full), _share(0.0 - tilt.imag, full), yaw)

    def _correct(self, velocity: complex) -> None:
        """Correct the estimates, and select the one with the best delay."""
        commanded, is_settled = self._reference * direction_of(self._yaw), self._trust.is_settled
        self._wind.measured(velocity, commanded, self._now.disturbance, self._since_measured_s, is_settled=is_settled)
        predicted = [estimate.velocity for estimate in self._estimates]
        is_informative = max(abs(each - predicted[0]) for each in predicted) > TELLING_M_S
        for estimate in self._estimates:
            estimate.correct(velocity, self._since_measured_s, is_informative=is_informative)
        best = min(self._estimates, key=lambda estimate: estimate.error)
        if best.error + DELAY_NOISE < BETTER_SHARE * self._best.error:
            self._best = best

    def _predict(self, step_s: float) -> None:
        """Predict each estimate by its delayed command, and extrapolate the best one by the commands under way."""
        self._yaw += self._yaw_rate * step_s
        for estimate in self._estimates:
            estimate.predict(self._commanded_before(estimate.delay_s), self._yaw, step_s)
        self._now = copy(self._best)
        age_s, under_way = 0.0, []
        for commanded, for_s in reversed(self._commanded):
            if age_s >= self._best.delay_s - 1e-9:
                break
            under_way.append((commanded, min(for_s, self._best.delay_s - age_s)))
            age_s += for_s
        for commanded, for_s in reversed(under_way):
            self._now.predict(commanded, self._yaw, for_s)

    def _commanded_before(self, delay_s: float) -> complex:
        """Return the tilt that was commanded `delay_s` ago."""
        age_s = 0.0
        for commanded, for_s in reversed(self._commanded):
            age_s += for_s
            if age_s > delay_s + 1e-9:
                return commanded
        return 0j

    def _pull(self, wanted: complex, step_s: float) -> tuple[complex, complex]:
        """Return the acceleration by tilt that tracks a velocity, in body axes: what it needs, and the feedback."""
        drone = self.drone
        before, self._asked = self._asked, self._asked + _limited(wanted - self._asked, MAX_ACCELERATION * step_s)
        self._reference += (self._asked - self._reference) * -math.expm1(-step_s / drone.tilt_lag)
        direction = direction_of(self._yaw)
        velocity, feed = self._now.velocity, self._reference * direction
        behind = _limited(self._behind + (feed - velocity) * step_s, LEASH_M)
        if not self._is_bounded or abs(behind) < abs(self._behind):  # never integrate what the bound has taken
            self._behind = behind
        acceleration = (self._asked - before) / step_s + 1j * self._yaw_rate * self._reference  # plus centripetal
        correction = VELOCITY_GAIN * (feed - velocity + POSITION_GAIN * self._behind)
        feedback = correction + drone.drag * (velocity - feed) - self._now.disturbance
        return acceleration + drone.drag * self._reference, feedback / direction

    def _climbing(self, wanted: float, step_s: float, trust: Trust) -> float:
        """Return the share of thrust that tracks a vertical velocity."""
        drone = self.drone
        before = self._climb
        self._climb += max(-MAX_ACCELERATION * step_s, min(MAX_ACCELERATION * step_s, wanted - before))
        self._climb_reference += (self._climb - self._climb_reference) * -math.expm1(-step_s / THRUST_LAG_S)
        correction = 0.0
        if not trust.height:
            self._height_behind = 0.0
        else:
            behind = self._height_behind + self._climb_reference * step_s
            self._height_behind = max(-HEIGHT_LEASH_M, min(HEIGHT_LEASH_M, behind))
            correction = HEIGHT_GAIN * self._height_behind
        acceleration = (self._climb - before) / step_s
        return _share(self._climb_reference + drone.climb_lag * acceleration + correction, drone.max_climb)

    def _turning(self, wanted: float, step_s: float, trust: Trust) -> float:
        """Return the share of yaw that tracks a turn rate. Without measurements the heading is an estimate."""
        most = self.drone.max_yaw_rate
        behind = self._yaw_behind + (wanted - self._yaw_rate) * step_s
        self._yaw_behind = max(-YAW_LEASH_RAD, min(YAW_LEASH_RAD, behind)) if trust.heading else 0.0
        share = _share(wanted + YAW_GAIN * self._yaw_behind, most)
        self._yaw_rate += (share * most - self._yaw_rate) * -math.expm1(-step_s / self.drone.tilt_lag)
        return share


def _limited(vector: complex, most: float) -> complex:
    length = math.hypot(vector.real, vector.imag)  # abs() would raise on overflow
    return vector * min(1.0, most / max(length, 1e-9))


def _share(value: float, full: float) -> float:
    return min(max(value / full, -1.0), 1.0)  # NaN is kept, so that neutral is sent instead
