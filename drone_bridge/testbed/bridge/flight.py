# SPDX-License-Identifier: Apache-2.0
"""TestbedFlight: converts commands to the replies to a testbed's frames."""

from collections.abc import Callable

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.flight_control import Command as FlownCommand
from drone_bridge.motion.flight_control import DroneModel
from drone_bridge.motion.velocity_control import VelocityControl, VelocityParameters
from drone_bridge.testbed import topics as translate
from drone_bridge.testbed.codec import AngleUnit, Constants, MotionParameters, SensorFrame
from drone_bridge.testbed.session.frame_time import FrameTime
from drone_bridge.testbed.topics import BodyRates, Command, Pose


class TestbedFlight:
    """Flight during one connection. Call `see`, then `answer`, for each frame."""

    __test__ = False  # not a test, although pytest collects names that begin with Test

    def __init__(
        self,
        constants: Constants,
        unit: AngleUnit,
        parameters: VelocityParameters,
        pose_of: Callable[[SensorFrame], Pose],
        time_unit_s: float = 1.0,
    ) -> None:
        """`pose_of` returns the pose in a frame. `time_unit_s` is the unit of time in frames, s."""
        self._constants = constants
        self._unit, self._pose_of = unit, pose_of
        #: Safe without knowledge of the drone's motion: no rotation, and thrust equal to its weight.
        self.neutral, _ = translate.motion_parameters(translate.hover(constants), constants, unit)
        #: Reason why velocities can't be flown; empty if they can.
        self.problem = ""
        #: Time of the newest frame.
        self.time = FrameTime(time_unit_s)
        self._control: VelocityControl | None = None
        # The command in the last reply, and whether it was computed from a velocity.
        self._flown: tuple[FlownCommand, bool] | None = None
        try:
            drone = DroneModel.of(translate.drone_properties(constants, unit))
            self._control = VelocityControl(drone, parameters)
        except ValueError as error:
            self.problem = str(error)

    @property
    def doubts(self) -> list[str]:
        """Reasons why velocities are not flown, from the frames, as sentences without a full stop. Thread-safe."""
        if self.time.problem:
            return [self.time.problem]
        return self._control.doubts if self._control else []

    def see(self, frame: SensorFrame) -> None:
        """Update the estimate with a frame. Until this frame the drone has followed the last reply."""
        time_s, pose = self.time.see(frame.time), self._pose_of(frame)
        if self._control is None:
            return
        if self._flown:
            self._control.flown(*self._flown)
        self._control.measured(time_s, pose.attitude, pose.position)

    def within_maxima(self, command: Command | BodyVelocity) -> Command | BodyVelocity:
        """Limit a velocity to the drone's maxima; return a raw command unchanged."""
        return self._control.within_maxima(command) if self._control and isinstance(command, BodyVelocity) else command

    def answer(self, command: Command | BodyVelocity | None) -> tuple[MotionParameters, bool]:
        """Return the reply to the frame, and whether it carries the command without clamping to the announced maxima.

        None means hover: the drone levels out and stops.
        """
        if isinstance(command, Command):
            motion, was_within = translate.motion_parameters(command, self._constants, self._unit)
            self._fly_raw(motion)
        elif self._control is None:
            return self.neutral, command is None
        else:
            flown = self._control.command(command or STILL)
            rates = BodyRates(flown.roll_rate, flown.pitch_rate, flown.yaw_rate)
            wanted = Command(rates, flown.thrust)
            motion, was_within = translate.motion_parameters(wanted, self._constants, self._unit)
            self._flown = flown, True
        return motion, was_within

    def replaced(self) -> None:
        """Handle that `neutral` was sent instead of the last reply. There is no lag to make up for then."""
        self._fly_raw(self.neutral)

    def _fly_raw(self, motion: MotionParameters) -> None:
        rates, thrust = translate.command_from_motion_parameters(motion, self._unit)
        self._flown = FlownCommand(*rates, thrust), False
