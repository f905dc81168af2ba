# SPDX-License-Identifier: Apache-2.0
"""Testbed operator: an autopilot that flies a plan by body rates and thrust, also against testbed_server.

    python3 -m drone_bridge.testbed.vehicle.operator --plan '4s forward 0.5, 3s turn 0.5'

It ignores the images. Its position comes from the wire if available, else from the announced model of motion.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from collections.abc import Sequence

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.net.connector import Cancellation, LinkError, LinkTimeoutError
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.programs.one_stream import OneStream, make_link
from drone_bridge.programs.operator import Operator
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.options import one_of
from drone_bridge.programs.plan import Leg
from drone_bridge.programs.program import print_event, run_program
from drone_bridge.testbed.codec import (
    DEFAULT_PORT,
    AngleUnit,
    AttitudeLayout,
    AutopilotConnection,
    ConnectionClosed,
    Constants,
    SensorFrame,
    SimulationRestarted,
)
from drone_bridge.testbed.session.autopilot import FRAME_END_SILENCE_S
from drone_bridge.testbed.session.flight import TestbedFlight
from drone_bridge.wire.events import LocalProtocolError, ProtocolError


class TestbedPilot(Operator):
    """Replies to each frame of one connection."""

    __test__ = False  # not a test, although pytest collects names that begin with Test

    def __init__(self, stream: OneStream, options: argparse.Namespace, cancellation: Cancellation) -> None:
        super().__init__(options.plan, cancellation)
        self._stream, self._connection = stream, AutopilotConnection(options.layout)
        self._constants: Constants | None = None
        self._flight: TestbedFlight | None = None
        self._frame: SensorFrame | None = None  # the newest
        self._frames = 0
        self._first_s = 0.0  # of the simulation's clock

    @property
    def elapsed_s(self) -> float:
        return self._frame.time - self._first_s if self._frame else 0.0

    def prepare(self) -> None:
        """Wait for the first frame."""
        self.next_turn()

    def next_turn(self) -> None:
        """Wait for the next frame."""
        answered = self._frames
        self.wait(math.inf, until=lambda: self._frames > answered)

    def steer(self, leg: Leg) -> str:
        """Reply to the newest frame with the motion until the next one."""
        assert self._frame
        assert self._flight
        flight = self._flight
        flight.reported(flight.measurement(self._frame), 0.0)
        wanted = BodyVelocity(leg.forward, leg.left, leg.up, turn=leg.turn)
        motion, _ = flight.answer(flight.within_maxima(wanted))
        self._stream.send(self._connection.send(motion))
        return f"t={self._frame.time:.2f} s"

    def leave(self) -> None:
        """Finish with the motion that keeps a level drone in place."""
        print_event(f"ended: {self._frames} frames")
        with contextlib.suppress(LocalProtocolError, LinkError):  # if the testbed has disconnected
            if self._flight:
                self._stream.leave(self._connection.finish(self._flight.neutral))

    def listen(self, timeout_s: float) -> None:
        """Process one event, or receive more bytes."""
        event = self._connection.next_event()
        if isinstance(event, Constants):
            print_event(f"constants: {event}")
            self._begin(event)
        elif isinstance(event, SimulationRestarted):
            assert self._constants
            print_event(f"a new simulation has started, after {event.time_before:.2f} s")
            self._begin(self._constants)
        elif isinstance(event, SensorFrame):
            self._first_s = self._first_s if self._frame else event.time
            self._frame, self._frames = event, self._frames + 1
            if self.is_report_due():
                print_event(frame_text(event))
        elif isinstance(event, ConnectionClosed):
            raise LinkError("The testbed disconnected.")
        else:
            self._receive(timeout_s)

    def _receive(self, timeout_s: float) -> None:
        may_end = self._connection.silence_decides
        try:
            data = self._stream.receive(FRAME_END_SILENCE_S if may_end else timeout_s)
        except LinkTimeoutError:
            if may_end:
                self._connection.peer_waits()
            return
        self._connection.receive_data(data) if data else self._connection.receive_eof()

    def _begin(self, constants: Constants) -> None:
        """Start one simulation. Raises ValueError if the drone can't fly."""
        self._constants, self._frame = constants, None
        self._flight = TestbedFlight(constants, AngleUnit.DEGREES)
        if self._flight.problem:
            raise ValueError(self._flight.problem)


def frame_text(frame: SensorFrame) -> str:
    """Return a frame's measurements as text, in degrees and m."""
    named = {"pitch": frame.pitch, "roll": frame.roll, "heading": frame.yaw}
    angles = ", ".join(f"{name} {value:.2f}" for name, value in named.items() if value is not None)
    position = "" if frame.position is None else ", at {:.2f} {:.2f} {:.2f} m".format(*frame.position)
    return f"t={frame.time:.2f} s: {angles}{position}"


def operate(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Connect to a testbed and fly; return 1 unless the plan was completed."""
    link = make_link(options, cancellation, StreamOptions(acknowledges_at_once=True))
    stack.callback(link.close)
    stream = OneStream(link, cancellation)
    try:
        stream.open()
        print_event(f"connected to {stream.peer}")
        TestbedPilot(stream, options, cancellation).run()
    except (ProtocolError, LinkError) as error:
        if not cancellation.is_set:
            print_event(str(error))
            return 1
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line. Exits with a message when it is wrong."""
    parser = OperatorParser("testbed", "An autopilot that flies a plan.", DEFAULT_PORT, "the testbed")
    parser.link.add_argument("--role", choices=("connect", "listen"), default="connect")
    parser.link.add_argument(
        "--layout",
        type=one_of(AttitudeLayout),
        metavar="|".join(layout.value for layout in AttitudeLayout),
        help="floats after the images (default: detected from the first frame)",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    return run_program("testbed", operate, parse(arguments))


if __name__ == "__main__":
    sys.exit(main())
