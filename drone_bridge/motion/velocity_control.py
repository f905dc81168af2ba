# SPDX-License-Identifier: Apache-2.0
"""VelocityControl: velocity controller of a drone that is commanded by body rates and thrust.

The state is estimated with the announced model of motion, m dv/dt = thrust + m g - drag v, under the flown commands.
Measured positions correct it. A disturbance, mainly wind, is estimated with it. Without positions the velocity is
relative to the air, and the drone drifts with the wind.

A position farther than JUMP_M from the predicted one is not used. Once that has lasted for JUMPED_S, or positions show
less than a quarter of the speed that FULL_S of nearly full tilt gives, none is used for UNUSED_S: by a wrong position,
more tilt would fly the drone away. If the time of the measurements does not advance, or if they are too far apart, the
drone is levelled by its attitude.

All vectors are in a levelled frame, REP 103: z up, x and y rotated by the measured yaw, or by the yaw since the start
if none is measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from drone_bridge.motion.attitude_estimator import AttitudeEstimator
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.flight_control import CommandLimits, DroneModel, FlightControl, RatesAndThrust, hover
from drone_bridge.motion.quaternions import MeasuredAttitude, rotated

LONGEST_STEP_S = 1.0  # between measurements; a longer one restarts the estimate
_LONGEST_FLOWN_STEP_S = 0.25  # measurements that are farther apart can't hold a velocity
_MOST_REPEATS = 100  # of one time, before it is reported
_SHORTEST_STEP_S = 1e-9  # resolution of stamps; a shorter step counts as no time
_MEMORY_S = 0.2  # time constant of the filter by which positions correct the estimate
#: Strongest wind that is made up for, m/s. Along z, m/s^2: thrust and weight may differ from the announced ones.
_MAX_WIND_M_S, _MAX_LIFT = 10.0, 10.0
#: Largest distance between drone and reference; beyond it the reference waits.
_LEASH_M = 0.5
_YAW_LEASH = 0.3  # rad
#: Distance of a jump, m, and the time that a glitch may last, s.
JUMP_M, JUMPED_S = 1.0, 0.2
#: Nearly full tilt as a share, the time for which it must show, and that without positions after it does not, s.
NEARLY_FULL, FULL_S, UNUSED_S = 0.7, 0.5, 10.0
JUMPS = "its own position can't be right: it jumps"
UNANSWERED = "it tilts and its position does not answer: it touches something, or its own position is wrong"
#: Way by which a drone that was told to climb has left the ground, m.
_LIFTED_M = 0.05
#: Decimals of rad/s and N. Rounding errors below would otherwise go on the wire.
_DECIMALS = 9


# Limits and gains.
MAX_CLIMB_SPEED = 2.5  # up and down, m/s
MAX_ACCELERATION = 4.0  # horizontal and vertical, m/s^2
MAX_TILT = 0.5  # rad
MAX_TURN_RATE = 4.0  # rad/s, roll and pitch
VELOCITY_GAIN = 3.0  # 1/s
POSITION_GAIN = 1.0  # 1/s, on the distance to the reference
ATTITUDE_GAIN = 8.0  # 1/s
YAW_GAIN = 3.0  # 1/s


class VelocityControl:
    """Velocity controller of one flight. Call `measured`, then `command`, then `flown`, in each step.

    Never raises for finite measurements. A step back in time, or a long step, restarts the estimate.
    """

    def __init__(self, drone: DroneModel, max_speed: float = 5.0) -> None:
        """`max_speed` is the maximum horizontal speed, m/s."""
        self._drone, self._max_speed = drone, max_speed
        limits = CommandLimits(MAX_TILT, MAX_TURN_RATE, drone.max_yaw_rate)
        self._control = FlightControl(drone, limits, ATTITUDE_GAIN, YAW_GAIN)
        self._time_s: float | None = None
        self._step_s = 1 / 60
        self._stands_still = False  # whether the last measurement had the same time
        self._repeats = 0  # number of measurements with the same time
        self._flown = hover(drone)
        self._began_m: float | None = None  # height at which the present climb began
        self._is_led = True  # whether `command` has steered since the last measurement
        self._begin(MeasuredAttitude(), None)

    @property
    def doubts(self) -> list[str]:
        """Reasons why measurements are not used, as sentences without a full stop. For any thread."""
        if self._unused_s > 0.0:
            return [self._unused]
        if self._repeats > _MOST_REPEATS:
            return ["its time has stalled, so it is kept level"]
        if self._step_s > _LONGEST_FLOWN_STEP_S:
            apart = f"its measurements are {self._step_s:.3g} s apart"
            return [f"{apart}, and velocities are flown by {_LONGEST_FLOWN_STEP_S:g} s at most"]
        return []

    def measured(self, time_s: float, attitude: MeasuredAttitude, position: Sequence[float] | None) -> None:
        """Update the estimate by a measurement at a time (s), under the command that was `flown` since the last one.

        `position` is in m, in the reference frame of the measured yaw.
        """
        step_s = -1.0 if self._time_s is None else time_s - self._time_s
        self._stands_still = 0 <= step_s < _SHORTEST_STEP_S
        self._repeats = self._repeats + 1 if self._stands_still else 0
        if self._stands_still:
            self._attitude.replace(attitude)
            self._update_directions()
            return
        self._time_s = time_s
        if not 0 < step_s <= LONGEST_STEP_S:
            self._step_s = 1 / 60 if step_s <= 0 else step_s
            self._begin(attitude, position)
            return
        self._step_s = step_s
        pull = self._predict(step_s, attitude)
        if self._unused_s > 0.0:
            self._unused_s -= step_s
            if self._unused_s <= 0.0:
                self._begin(attitude, position)
        elif position is not None:
            self._correct_without_jumps(step_s, position)
            self._watch_answer(step_s, pull)
        if not self._is_led:  # another controller's motion leaves no lag to make up for
            self._reference, self._yaw_reference = self._position.copy(), self._yaw

    def command(self, wanted: BodyVelocity) -> RatesAndThrust:
        """Return the command until the next measurement, for a velocity within the maxima."""
        step_s, most = self._step_s, MAX_ACCELERATION
        if self._stands_still or step_s > _LONGEST_FLOWN_STEP_S:
            return self._level()
        yaw_rate, cosine, sine = wanted.turn, math.cos(self._yaw), math.sin(self._yaw)
        feed = (cosine * wanted.forward - sine * wanted.left, sine * wanted.forward + cosine * wanted.left, wanted.up)

        if feed[2] > 0.0:
            self._began_m = self._position[2] if self._began_m is None else self._began_m
        elif self._began_m is not None and not any(feed):
            if self._position[2] < self._began_m + _LIFTED_M:  # it stands, and would lift off without a command
                self._reference[2] = min(self._reference[2], self._began_m - _LIFTED_M)
            self._began_m = None
        # The reference moves like an ideal drone. The lag behind it, due to wind or braking, is made up for.
        behind = [reference - here for reference, here in zip(self._reference, self._position, strict=True)]
        share = min(1.0, _LEASH_M / max(math.hypot(*behind), 1e-9))
        self._reference = [
            here + share * way + speed * step_s for here, way, speed in zip(self._position, behind, feed, strict=True)
        ]
        yaw_error = math.remainder(self._yaw_reference - self._yaw, math.tau)
        yaw_error = max(-_YAW_LEASH, min(_YAW_LEASH, yaw_error))
        self._yaw_reference = self._yaw + yaw_error + yaw_rate * step_s

        x, y, z = (
            VELOCITY_GAIN * (speed + POSITION_GAIN * share * way - flown)
            for speed, way, flown in zip(feed, behind, self._velocity, strict=True)
        )
        x, y = x - yaw_rate * feed[1], y + yaw_rate * feed[0]  # centripetal acceleration
        share = min(1.0, most / max(math.hypot(x, y), 1e-9))
        wanted_acceleration = (share * x, share * y, max(-most, min(most, z)) + self._drone.gravity)
        x, y, z = (
            acceleration + self._drone.decay * speed - disturbance
            for acceleration, speed, disturbance in zip(
                wanted_acceleration, self._velocity, self._disturbance, strict=True
            )
        )
        turn = yaw_error + self._control.yaw_turn(yaw_rate, step_s)
        command = self._control.command(self._attitude.attitude, (x, y, z), turn, step_s, self._attitude.drift)
        return RatesAndThrust(*(round(value, _DECIMALS) for value in command))

    def _level(self) -> RatesAndThrust:
        """Return the command that levels the drone until the next measurement, with the thrust that carries it."""
        self._reference, self._yaw_reference = self._position.copy(), self._yaw
        upward, estimated = (0.0, 0.0, self._drone.gravity), self._attitude
        command = self._control.command(estimated.attitude, upward, 0.0, self._step_s, estimated.drift)
        return RatesAndThrust(*(round(value, _DECIMALS) for value in command))

    def within_maxima(self, wanted: BodyVelocity) -> BodyVelocity:
        """Clamp a velocity to the maxima. The horizontal direction is kept."""
        fast, climb, yaw = self._max_speed, MAX_CLIMB_SPEED, self._drone.max_yaw_rate
        share = min(1.0, fast / max(math.hypot(wanted.forward, wanted.left), 1e-9))
        return BodyVelocity(
            wanted.forward * share,
            wanted.left * share,
            max(-climb, min(climb, wanted.up)),
            turn=max(-yaw, min(yaw, wanted.turn)),
        )

    def flown(self, command: RatesAndThrust, is_velocity: bool) -> None:
        """Set the command that acts until the next measurement, and whether `command` computed it."""
        self._flown = command
        self._is_led = is_velocity

    def _begin(self, attitude: MeasuredAttitude, position: Sequence[float] | None) -> None:
        """Restart the estimate, at rest."""
        self._flown = hover(self._drone)
        self._attitude = AttitudeEstimator(attitude)
        self._update_directions()
        self._position = [0.0, 0.0, 0.0] if position is None else list(position)
        self._velocity = [0.0, 0.0, 0.0]
        self._disturbance = [0.0, 0.0, 0.0]
        self._jumped_s = self._unused_s = self._full_s = 0.0
        self._unused = ""
        self._given = self._before = 0j  # speed that nearly full tilt has given, and that when it began, m/s
        #: Position and heading of an ideal drone.
        self._reference, self._yaw_reference = self._position.copy(), self._yaw

    def _update_directions(self) -> None:
        """Update the directions of the thrust and the nose."""
        attitude = self._attitude.attitude
        self._up = rotated(attitude, 0.0, 0.0, 1.0)
        x, y, _ = rotated(attitude, 1.0, 0.0, 0.0)
        self._yaw = math.atan2(y, x)

    def _predict(self, step_s: float, attitude: MeasuredAttitude) -> complex:
        """Predict by the model. The attitudes at both ends of the step include every rotation of the drone.

        Returns the horizontal acceleration by thrust, x + jy, m/s^2.
        """
        before = self._up
        self._attitude.predict(self._flown.rates, step_s)
        self._attitude.correct(attitude)
        self._update_directions()
        middle = [one + other for one, other in zip(before, self._up, strict=True)]
        length = max(math.hypot(*middle), 1e-9)
        push = self._flown.thrust / self._drone.mass
        decay, gravity = self._drone.decay, (0.0, 0.0, self._drone.gravity)
        mean = [(before[axis] + 4 * middle[axis] / length + self._up[axis]) / 6 for axis in range(3)]  # Simpson's rule
        for axis, up in enumerate(mean):
            speed = self._velocity[axis]
            acceleration = push * up + self._disturbance[axis] - gravity[axis] - decay * speed
            self._position[axis] += (speed + acceleration * step_s / 2) * step_s
            self._velocity[axis] += acceleration * step_s
        return push * complex(mean[0], mean[1])

    def _correct_without_jumps(self, step_s: float, position: Sequence[float]) -> None:
        """Correct the state by a measured position, unless it jumps."""
        if math.dist(position, self._position) <= JUMP_M:
            self._jumped_s = 0.0
            self._correct(step_s, position)
        elif (jumped_s := self._jumped_s + step_s) < JUMPED_S:
            self._jumped_s = jumped_s
        else:
            self._leave_unused(JUMPS)

    def _watch_answer(self, step_s: float, pull: complex) -> None:
        """Stop the use of positions whose speed does not grow along nearly full tilt."""
        velocity = complex(self._velocity[0], self._velocity[1])
        if abs(pull) < NEARLY_FULL * self._drone.gravity * math.tan(MAX_TILT):
            self._full_s, self._given, self._before = 0.0, 0j, velocity
            return
        self._full_s, self._given = self._full_s + step_s, self._given + (pull - self._drone.decay * velocity) * step_s
        gained = ((velocity - self._before) * self._given.conjugate()).real
        if self._full_s > FULL_S and gained < 0.25 * abs(self._given) ** 2:
            self._leave_unused(UNANSWERED)

    def _leave_unused(self, reason: str) -> None:
        """Fly without positions for a while, and without the velocity and wind that they have shown."""
        self._unused, self._unused_s = reason, UNUSED_S
        self._velocity, self._disturbance = [0.0, 0.0, self._velocity[2]], [0.0, 0.0, 0.0]

    def _correct(self, step_s: float, position: Sequence[float]) -> None:
        """Correct the state by a measured position: a critically damped filter of third order."""
        kept = math.exp(-step_s / _MEMORY_S)
        of_velocity = 1.5 * (1 - kept) ** 2 * (1 + kept) / step_s
        of_disturbance = (1 - kept) ** 3 / step_s**2
        for axis, measured in enumerate(position):
            missed = measured - self._position[axis]
            self._position[axis] += (1 - kept**3) * missed
            self._velocity[axis] += of_velocity * missed
            most = _MAX_LIFT if axis == 2 else _MAX_WIND_M_S * self._drone.decay
            disturbance = self._disturbance[axis] + of_disturbance * missed
            self._disturbance[axis] = max(-most, min(most, disturbance))
