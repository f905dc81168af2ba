# SPDX-License-Identifier: Apache-2.0
"""Telemetry operator: flies a drone by its telemetry, following a plan.

    drone-bridge operate telemetry --plan '2s up 0.3, 4s forward 0.5'

It waits for telemetry on its port, and sends commands to the sender. With `--role connect` it sends first, to a waiting
drone. It runs the session of the bridge, so velocities are held by the drone's own measurements.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from collections.abc import Sequence

from drone_bridge.net.connector import Cancellation
from drone_bridge.net.datagram_link import DatagramCaller, DatagramPort
from drone_bridge.programs.operator_options import LEAVES_MOVING, OperatorParser
from drone_bridge.programs.options import add_word
from drone_bridge.programs.program import print_event, print_retry, run_program
from drone_bridge.programs.script import PlannedCommands, Script
from drone_bridge.session.arbiter import LANDING_SPEED
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.telemetry.codec import DEFAULT_PORT
from drone_bridge.telemetry.session.controller import TelemetryControllerParameters, TelemetryControllerSession
from drone_bridge.telemetry.units import LANDING_DRONE, Units
from drone_bridge.wire.addresses import ANY, AllowedPeers, address_name


class TelemetryScript(Script):
    """Script of a drone that is known only by its telemetry."""

    first_report_s = math.inf


def operate(options: argparse.Namespace, cancellation: Cancellation, _: contextlib.ExitStack) -> int:
    """Fly until the plan is complete, and always leave the drone in hover. Raises LinkError."""
    link: DatagramPort | DatagramCaller
    if options.role == "connect":
        link = caller = DatagramCaller(options.host, options.port, print_retry)
        called = lambda: caller.address  # noqa: E731
    else:
        link, called = DatagramPort(options.host, options.port), None
        print_event(f"waiting for telemetry on {address_name(options.host, link.port)}")
    wish = PlannedCommands()
    pilot = TiltPilot(wish, LANDING_DRONE, hovers=False)
    session = TelemetryControllerSession(
        pilot,
        wish.make_feedback(pilot),
        Units(),
        TelemetryControllerParameters(),
        AllowedPeers([ANY]),
        sinking=LANDING_DRONE.climbing(-LANDING_SPEED),
        called=called,
    )
    return TelemetryScript(
        "telemetry", link, session, wish, options=options, cancellation=cancellation, requests=()
    ).operate()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = OperatorParser(
        "telemetry",
        "A program that flies a drone by its telemetry, following a plan." + LEAVES_MOVING,
        DEFAULT_PORT,
        "this end; with --role connect, of the drone",
    )
    roles = "listen: wait for telemetry; connect: send first, to a waiting drone"
    add_word(parser.link, "--role", ("listen", "connect"), roles)
    return run_program("telemetry operator", operate, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
