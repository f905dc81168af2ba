# SPDX-License-Identifier: Apache-2.0
"""An autopilot for testbeds, including testbed_server, that flies a plan by body rates and thrust.

    python3 -m drone_bridge.testbed.operator --plan '4s forward 0.5, 3s turn 0.5'

It ignores the images. Its position comes from the wire if that carries one, and from the announced model of motion.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from collections.abc import Sequence

from drone_bridge.motion.flight_control import Command, DroneModel
from drone_bridge.motion.quaternions import MeasuredAttitude
from drone_bridge.motion.velocity_control import VelocityCommand, VelocityControl, VelocityParameters
from drone_bridge.net.connector import Cancellation, LinkError, LinkTimeoutError
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.programs.one_stream import OneStream, make_link
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.options import one_of
from drone_bridge.programs.plan import Leg, Plan
from drone_bridge.programs.program import print_event, run_program
from drone_bridge.testbed.codec import (
    DEFAULT_PORT,
    NEED_DATA,
    AttitudeLayout,
    AutopilotConnection,
    ConnectionClosed,
    Constants,
    MotionParameters,
    SensorFrame,
    SimulationRestarted,
)
from drone_bridge.wire.events import LocalProtocolError, ProtocolError

#: So long a silence where the first frame may end says that it does.
_FRAME_END_SILENCE_S = 0.5
_REPORT_PERIOD_S = 1.0  # of simulated time


class Pilot:
    """Flies a plan in one simulation. Converts between the testbed's axes and those of `flight`."""

    def __init__(self, constants: Constants, plan: Plan) -> None:
        """Raises ValueError for a drone that can't fly."""
        self._plan = plan
        self._drone = DroneModel(
            mass=constants.weight,
            gravity=abs(constants.gravity),
            drag=constants.drag,
            max_thrust=constants.max_thrust,
            max_roll_rate=math.radians(constants.max_roll_rate),
            max_pitch_rate=math.radians(constants.max_pitch_rate),
            max_yaw_rate=math.radians(constants.max_yaw_rate),
        )
        self._control = VelocityControl(self._drone, VelocityParameters())
        self._began_s: float | None = None
        self._leg: Leg | None = None
        self._reported_s = -math.inf
        self.elapsed_s = 0.0

    @property
    def is_over(self) -> bool:
        """Whether all legs are flown."""
        return self.elapsed_s >= self._plan.duration_s

    @property
    def hover(self) -> MotionParameters:
        """The motion that keeps a level drone in place."""
        return MotionParameters(0.0, 0.0, 0.0, min(self._drone.mass * self._drone.gravity, self._drone.max_thrust))

    def answer(self, frame: SensorFrame) -> MotionParameters:
        """Return the motion until the next frame."""
        if self._began_s is None:
            self._began_s = frame.time
        self.elapsed_s = frame.time - self._began_s
        self._report(frame)
        position = None if frame.position is None else _levelled(*frame.position)
        self._control.measured(frame.time, self._attitude(frame), position)
        leg = self._plan.leg_at(self.elapsed_s)
        command = self._control.command(VelocityCommand(leg.forward, leg.left, leg.up, leg.turn))
        self._control.flown(command, is_velocity=True)
        return self._motion(command)

    def _attitude(self, frame: SensorFrame) -> MeasuredAttitude:
        return MeasuredAttitude(
            roll=None if frame.roll is None else math.radians(frame.roll),
            pitch=math.radians(frame.pitch),
            yaw=None if frame.yaw is None else math.pi / 2 - math.radians(frame.yaw),  # headings turn right
        )

    def _motion(self, command: Command) -> MotionParameters:
        return MotionParameters(
            pitch_rate=math.degrees(command.pitch_rate),
            roll_rate=math.degrees(command.roll_rate),
            yaw_rate=math.degrees(0.0 - command.yaw_rate),  # to the right
            thrust=command.thrust,
        )

    def _report(self, frame: SensorFrame) -> None:
        leg = self._plan.leg_at(self.elapsed_s)
        if leg is not self._leg:
            self._leg = leg
            print_event(
                f"t={frame.time:.2f} s: leg {leg}" if leg.duration_s else f"t={frame.time:.2f} s: the plan is flown"
            )
        if frame.time - self._reported_s >= _REPORT_PERIOD_S or frame.time < self._reported_s:
            self._reported_s = frame.time
            named = {"pitch": frame.pitch, "roll": frame.roll, "heading": frame.yaw}
            angles = ", ".join(f"{name} {value:.2f}" for name, value in named.items() if value is not None)
            where = "" if frame.position is None else ", at {:.2f} {:.2f} {:.2f} m".format(*frame.position)
            print_event(f"t={frame.time:.2f} s: {angles}{where}")


def _levelled(x: float, y: float, z: float) -> tuple[float, float, float]:
    """Convert a point of the testbed's world (y up, -z ahead at heading 0) to x east, y north, z up."""
    return x, -z, y


def fly(stream: OneStream, options: argparse.Namespace) -> bool:
    """Fly the plan in one conversation; return whether it was completed. Raises ProtocolError and LinkError."""
    connection = AutopilotConnection(options.layout)
    pilot, frames, constants = None, 0, None
    try:
        while True:
            event = _next_event(stream, connection)
            if isinstance(event, Constants):
                constants = event
                print_event(f"constants: {constants}")
                pilot = Pilot(constants, options.plan)
            elif isinstance(event, SimulationRestarted):
                assert constants
                print_event(f"a new simulation has started, after {event.time_before:.2f} s")
                pilot = Pilot(constants, options.plan)
            elif isinstance(event, SensorFrame):
                assert pilot
                frames += 1
                answer = pilot.answer(event)
                if pilot.is_over:
                    return True
                stream.send(connection.send(answer))
            else:
                print_event("the testbed has left")
                return False
    finally:
        print_event(f"ended: {frames} frames")
        with contextlib.suppress(LocalProtocolError, LinkError):  # of a testbed that has gone
            if pilot:
                stream.leave(connection.finish(pilot.hover))


def _next_event(
    stream: OneStream, connection: AutopilotConnection
) -> Constants | SimulationRestarted | SensorFrame | ConnectionClosed:
    while (event := connection.next_event()) is NEED_DATA:
        try:
            data = stream.receive(_FRAME_END_SILENCE_S if connection.silence_decides else math.inf)
        except LinkTimeoutError:
            connection.peer_waits()
            continue
        if data:
            connection.receive_data(data)
        else:
            connection.receive_eof()
    assert isinstance(event, Constants | SimulationRestarted | SensorFrame | ConnectionClosed)
    return event


def operate(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Connect to a testbed and fly; return 1 unless the plan was completed."""
    link = make_link(options, cancellation, StreamOptions(acknowledges_at_once=True))
    stack.callback(link.close)
    stream = OneStream(link, cancellation)
    try:
        stream.open()
        print_event(f"connected to {stream.peer}")
        return 0 if fly(stream, options) else 1
    except (ProtocolError, LinkError) as error:
        if cancellation.is_set:
            return 0
        print_event(str(error))
        return 1


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line. Exits with a message when it is wrong."""
    parser = OperatorParser("testbed", "An autopilot that flies a plan.", DEFAULT_PORT, "the testbed")
    parser.link.add_argument("--role", choices=("connect", "listen"), default="connect")
    parser.link.add_argument(
        "--layout",
        type=one_of(AttitudeLayout),
        metavar="|".join(layout.value for layout in AttitudeLayout),
        help="what follows the images (found out from the first frame)",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    return run_program("testbed", operate, parse(arguments))


if __name__ == "__main__":
    sys.exit(main())
