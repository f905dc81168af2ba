# SPDX-License-Identifier: Apache-2.0
"""Operator of any Robot, which follows a plan: `drone-bridge operate <name> --plan '4s forward 0.5'`."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from functools import partial

from drone_bridge.net.connector import Cancellation
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.options import add_ports, add_sizes
from drone_bridge.programs.program import print_retry, run_program
from drone_bridge.programs.script import PlannedCommands, Script
from drone_bridge.robot_class.client_session import RobotClassOperatorSession
from drone_bridge.robot_class.heard_reports import HeardReports, OperatorParameters
from drone_bridge.robot_class.links import client_link, login_text
from drone_bridge.robot_class.robot import (
    Robot,
    first_link,
    further_links,
    is_stream,
    port_parameters,
    sized,
    unstoppable,
)
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.wire.addresses import address_name


def operate(
    robot: type[Robot], options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack
) -> int:
    """Follow the plan. Raises LinkError and ValueError."""
    robot = sized(robot, partial(getattr, options))
    if reason := unstoppable(robot):
        raise ValueError(reason)
    host, number, serial = options.host, options.port, options.serial
    ports = {name: getattr(options, f"{name}_port") for name in further_links(robot)}
    link = client_link(robot, host, number, print_retry, ports=ports, serial=serial)
    wish = PlannedCommands()
    parameters = OperatorParameters(rate=robot.rate, link_timeout=robot.link_timeout_s)
    pilot = TiltPilot(wish, robot.drone, hovers=robot.hovers) if robot.drone else None
    peer, reports = serial or address_name(host, number), HeardReports(robot, wish.make_feedback(pilot))
    login = login_text(options.login)
    session = RobotClassOperatorSession(
        robot, wish, parameters, peer, reports, pilot=pilot, is_line=bool(serial), login=login
    )
    return Script(
        robot.name, link, session, wish, options=options, cancellation=cancellation, requests=robot.requests
    ).operate()


def main(robot: type[Robot], arguments: Sequence[str] | None = None) -> int:
    """Run the program. Return its exit status."""
    parser = OperatorParser(
        robot.name, f"Client of {robot.summary} that follows a plan.", first_link(robot).port, "the robot"
    )
    add_ports(parser.link, port_parameters(robot), "of ours")
    add_sizes(parser.link, robot.sizes)
    parser.set_defaults(serial="", login="")
    if robot.login is not None:
        parser.link.add_argument("--login", help="environment variable or file with the login")
    if is_stream(robot):
        parser.link.add_argument("--serial", help="serial line to the robot, instead of host and port")
    if "takeoff" in robot.requests:
        parser.add_argument("--in-the-air", action="store_true", help="steer from the start, without takeoff or land")
    return run_program(f"{robot.name} operator", partial(operate, robot), parser.parse_args(arguments))
