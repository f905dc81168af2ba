# SPDX-License-Identifier: Apache-2.0
"""Turns commands of testbed_bridge into answers, using a model of the drone to fly velocities."""

from dataclasses import replace
from typing import Final

from drone_bridge.motion.flight_control import Command as FlownCommand
from drone_bridge.motion.velocity_control import HOVER, VelocityCommand, VelocityControl, VelocityParameters
from drone_bridge.ros.drone_model import drone_model
from drone_bridge.ros.frames import BodyRates
from drone_bridge.testbed.codec import AngleUnit, Constants, MotionParameters, SensorFrame
from drone_bridge.testbed.topics import translation as translate
from drone_bridge.testbed.topics.translation import Command

#: What cmd_vel moves, of a Twist.
FOLLOWED_AXES: Final = ("linear.x", "linear.y", "linear.z", "angular.z")
#: And where a Twist is rates and thrust.
RATES_AND_THRUST_AXES: Final = ("linear.z", "angular.x", "angular.y", "angular.z")


class TestbedFlight:
    """The flight of one conversation. For every frame, call `observe`, `answer` and `answered`, in this order.

    Estimating a drone's motion costs as much as publishing an image. A drone that has been level and still from the
    start, without commands, is known to be at rest: estimation begins when either changes.
    """

    __test__ = False  # not a test, whatever its name tells pytest

    def __init__(self, constants: Constants, unit: AngleUnit, parameters: VelocityParameters) -> None:
        self._constants = constants
        self._unit = unit
        #: What is safe without knowing how the drone moves: no rotation, and thrust against its weight.
        self.neutral, _ = translate.motion_parameters(translate.hover(constants), constants, unit)
        #: Why velocities can't be flown, if so.
        self.problem = ""
        self._control: VelocityControl | None = None
        self._is_at_rest = True
        self._resting: SensorFrame | None = None  # what is still seen of a drone at rest, without the images
        self._rested_until_s = 0.0  # by the time of the frames
        self._unseen: SensorFrame | None = None
        self._flown: tuple[FlownCommand, bool] | None = None  # until the next frame
        self._next: tuple[FlownCommand, bool] | None = None  # from then on
        try:
            drone = drone_model(translate.drone_properties(constants, unit))
            self._control = VelocityControl(drone, parameters)
        except ValueError as error:
            self.problem = str(error)

    def observe(self, frame: SensorFrame) -> None:
        """Note a frame."""
        if self._is_at_rest and not _is_still(frame, self._resting or frame):
            self._leave_rest()
        self._unseen = frame

    def estimate(self) -> None:
        """Estimate the motion now rather than after the answer, while the controller computes."""
        if not self._is_at_rest:
            self._catch_up()

    def answer(self, command: Command | VelocityCommand | None) -> tuple[MotionParameters, bool]:
        """Return the answer to the frame, and whether the command was within the drone's limits.

        None hovers: the drone levels out and stops.
        """
        if self._is_at_rest:
            if command is None:
                return self.neutral, True
            self._leave_rest()
        if isinstance(command, Command):
            motion, was_within = translate.motion_parameters(command, self._constants, self._unit)
        elif self._control is None:
            return self.neutral, command is None
        else:
            self._catch_up()
            wanted = command or HOVER
            flown = self._control.command(wanted)
            rates = BodyRates(flown.roll_rate, flown.pitch_rate, flown.yaw_rate)
            motion, _ = translate.motion_parameters(Command(rates, flown.thrust), self._constants, self._unit)
            was_within = self._control.limited(wanted) == wanted
        self._next = self._flight_of(motion), not isinstance(command, Command)
        return motion, was_within

    def answered(self) -> None:
        """Note that the answer was sent."""
        if self._is_at_rest:
            self._rest()
            return
        self._catch_up()
        self._flown = self._next

    def _rest(self) -> None:
        frame, self._unseen = self._unseen, None
        assert frame
        self._resting = self._resting or replace(frame, left=b"", right=b"")
        self._rested_until_s = frame.time

    def _leave_rest(self) -> None:
        """Start estimating from the last frame at rest, since when the drone has been hovering."""
        self._is_at_rest = False
        if self._resting:
            self._measure(replace(self._resting, time=self._rested_until_s))
            self._flown = self._flight_of(self.neutral), True

    def _catch_up(self) -> None:
        """Update the estimate, unless it was updated for this frame."""
        frame, self._unseen = self._unseen, None
        if frame is None or self._control is None:
            return
        if self._flown:
            self._control.flown(*self._flown)
        self._measure(frame)

    def _measure(self, frame: SensorFrame) -> None:
        if self._control is None:
            return
        position = translate.measured_position(frame)
        attitude = translate.measured_attitude(frame, self._unit)
        self._control.measured(frame.time, attitude, position)

    def _flight_of(self, motion: MotionParameters) -> FlownCommand:
        rates, thrust = translate.command_from_motion_parameters(motion, self._unit)
        return FlownCommand(rates.roll, rates.pitch, rates.yaw, thrust)


def _is_still(frame: SensorFrame, before: SensorFrame) -> bool:
    """Return whether a drone is level, and has neither turned nor moved."""
    return not frame.pitch and not frame.roll and frame.yaw == before.yaw and frame.position == before.position
