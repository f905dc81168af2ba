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
from functools import partial
from typing import Any

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.net.connector import Cancellation
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.programs.one_stream import make_link
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.options import one_of
from drone_bridge.programs.plan import Plan
from drone_bridge.programs.program import print_event, run_program
from drone_bridge.programs.script import PlannedCommands, Script
from drone_bridge.session.node_parameters import NodeParameters
from drone_bridge.testbed.codec import DEFAULT_PORT, AngleUnit, AttitudeLayout, AutopilotConnection, Constants
from drone_bridge.testbed.session.autopilot import AutopilotSession
from drone_bridge.testbed.session.flight import TestbedFlight


class PlanOfFrames(PlannedCommands):
    """Commands of the plan at the time of each frame, which begins with the first one of a testbed."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan, self._first_s = plan, math.nan
        self.elapsed_s = 0.0

    def make_flight(self, constants: Constants) -> TestbedFlight:
        """Return the flight of an announced drone."""
        print_event(f"constants: {constants}")
        flight = TestbedFlight(constants, AngleUnit.DEGREES)
        self.within_maxima, self._first_s = flight.within_maxima, math.nan
        return flight

    def stamp(self, _: Any) -> None:
        """Command the leg at the time of a frame that has just been measured."""
        if self.newest and (time_s := self.newest.time_s) is not None:
            self._first_s = time_s if math.isnan(self._first_s) else self._first_s
            self.elapsed_s = time_s - self._first_s
        leg = self._plan.leg_at(self.elapsed_s)
        self.velocity = BodyVelocity(leg.forward, leg.left, leg.up, turn=leg.turn)


class AutopilotScript(Script):
    """Script in simulated time."""

    period_s, first_report_s = 0.01, math.inf
    commands: PlanOfFrames

    @property
    def elapsed_s(self) -> float:
        return self.commands.elapsed_s


def operate(options: argparse.Namespace, cancellation: Cancellation, _: contextlib.ExitStack) -> int:
    """Fly until the plan is complete, and leave the drone with the neutral reply. Raises LinkError."""
    link = make_link(options, cancellation, StreamOptions(acknowledges_at_once=True))
    wish: Any = PlanOfFrames(options.plan)
    session = AutopilotSession(
        wish,
        partial(AutopilotConnection, options.layout, AngleUnit.DEGREES),
        wish.make_flight,
        wish.stamp,
        NodeParameters(),
        feedback=wish.make_feedback(),
        is_lockstep=False,
        layout=options.layout or "auto",
    )
    script = AutopilotScript("testbed", link, session, wish, options=options, cancellation=cancellation, requests=())
    script.commands = wish
    return script.operate()


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
