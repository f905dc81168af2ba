# SPDX-License-Identifier: Apache-2.0
"""TestbedFlight: converts commands to the replies to a testbed's frames, by its measurements. Pure."""

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.flight_control import RatesAndThrust
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.quaternions import MeasuredAttitude
from drone_bridge.motion.velocity_control import VelocityControl
from drone_bridge.testbed import units
from drone_bridge.testbed.codec import AngleUnit, Constants, MotionParameters, SensorFrame
from drone_bridge.testbed.session.frame_time import FrameTime


class TestbedFlight:
    """Flight during one connection. For each frame, call `measurement`, then by Feedback `reported`, then `answer`."""

    __test__ = False  # not a test, although pytest collects names that begin with Test

    def __init__(self, constants: Constants, unit: AngleUnit, max_speed: float = 5.0, time_unit_s: float = 1.0) -> None:
        """`max_speed` is the maximum horizontal speed, m/s, and `time_unit_s` the unit of time in frames, s."""
        self._constants = constants
        self._unit = unit
        #: Safe without knowledge of the drone's motion: no rotation, and thrust equal to its weight.
        self.neutral, _ = units.motion_parameters(units.hover(constants), constants, unit)
        #: Reason why velocities can't be flown; empty if they can.
        self.problem = ""
        #: Time of the newest frame.
        self.time = FrameTime(time_unit_s)
        self._control: VelocityControl | None = None
        # The command in the last reply, and whether it was computed from a velocity.
        self._flown: tuple[RatesAndThrust, bool] | None = None
        try:
            self._control = VelocityControl(units.drone_model(constants, unit), max_speed)
        except ValueError as error:
            self.problem = str(error)

    @property
    def doubts(self) -> list[str]:
        """Reasons why velocities are not flown, from the frames, as sentences without a full stop. Thread-safe."""
        if self.time.problem:
            return [self.time.problem]
        return self._control.doubts if self._control else []

    @property
    def is_position_doubted(self) -> bool:
        return bool(self.doubts)

    #: The wire has no heights.
    is_height_doubted = False
    #: Positions are reported, and continue after a doubt.
    modelled_velocity = None

    def measurement(self, frame: SensorFrame) -> Measurement:
        """Return the measurement of the next frame."""
        return units.measurement(frame, self._unit, self.time.see(frame.time))

    def reported(self, measured: Measurement, now_s: float) -> None:
        """Update the estimate with a frame. Until this frame the drone has followed the last reply."""
        if self._control is None or measured.time_s is None:
            return
        if self._flown:
            self._control.flown(*self._flown)
        attitude = MeasuredAttitude(measured.roll, measured.pitch, measured.yaw)
        self._control.measured(measured.time_s, attitude, measured.position)

    def within_maxima(self, command: RatesAndThrust | BodyVelocity) -> RatesAndThrust | BodyVelocity:
        """Limit a velocity to the drone's maxima; return a raw command unchanged."""
        return self._control.within_maxima(command) if self._control and isinstance(command, BodyVelocity) else command

    def answer(self, command: RatesAndThrust | BodyVelocity | None) -> tuple[MotionParameters, bool]:
        """Return the reply to the frame, and whether it carries the command without clamping to the announced maxima.

        None means hover: the drone levels out and stops.
        """
        if isinstance(command, RatesAndThrust):
            motion, was_within = units.motion_parameters(command, self._constants, self._unit)
            self._fly_raw(motion)
        elif self._control is None:
            return self.neutral, command is None
        else:
            flown = self._control.command(command or STILL)
            motion, was_within = units.motion_parameters(flown, self._constants, self._unit)
            self._flown = flown, True
        return motion, was_within

    def replaced(self) -> None:
        """Record that `neutral` was sent instead of the last reply. There is no lag to make up for then."""
        self._fly_raw(self.neutral)

    def _fly_raw(self, motion: MotionParameters) -> None:
        self._flown = units.command_from_motion_parameters(motion, self._unit), False
