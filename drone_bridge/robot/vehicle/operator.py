# SPDX-License-Identifier: Apache-2.0
"""Robot operator: a driver that finds a tracked robot, binds its skid steer, follows a plan, and unbinds it.

    drone-bridge operate robot --name saber --plan '2s forward 0.4, 1s turn 0.8'

It runs the session of the bridge, and prints what the robot reports.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from typing import Any

from drone_bridge.net.clock import time_of_day_ms
from drone_bridge.net.connector import Cancellation
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.options import add_number, port, positive
from drone_bridge.programs.plan import Leg
from drone_bridge.programs.program import print_event, print_retry, run_program
from drone_bridge.programs.script import LOOK_S, PlannedCommands, Script
from drone_bridge.robot import codec
from drone_bridge.robot.discovery import DiscoveredPeer, DiscoveryRoute
from drone_bridge.robot.session.connected_driver import DriverParameters
from drone_bridge.robot.session.desired import DesiredSubsystems
from drone_bridge.robot.session.driver import DriverSession
from drone_bridge.robot.units import SkidSteer
from drone_bridge.wire.printable import printable

DISCOVERY_TIMEOUT_S = 1.0


class RobotCommands(PlannedCommands):
    """Commands of the plan, and what the robot reports."""

    def publish_event(self, message: Any) -> None:
        if isinstance(message, codec.SensorInfo):
            self._sensors = [printable(each.name) for each in message.sensors]
        elif isinstance(message, codec.SensorUpdate):
            names = dict(enumerate(getattr(self, "_sensors", [])))
            readings = (f"{names.get(each.sensor, f'sensor {each.sensor}')} {each.value}" for each in message.readings)
            self._limited.print(f"reads {', '.join(readings)}")
        elif isinstance(message, codec.LogMessage):
            print_event(f"robot log: {printable(message.text)}")


class RobotScript(Script):
    """Script of a robot, whose skid steer is to be bound first."""

    first_report_s = 0.0

    def prepare(self) -> None:
        super().prepare()
        reason = None
        while not self._session.is_open or self._session.undrivable:  # a server may hang up until its robot is there
            if self._session.undrivable not in (None, reason):
                print_event(reason := self._session.undrivable)
            self.listen(LOOK_S)

    def steer(self, leg: Leg) -> str:
        text = super().steer(leg)
        self._loop.post(self._session.commanded)
        return text


def drive(options: argparse.Namespace, cancellation: Cancellation, _: contextlib.ExitStack) -> int:
    """Drive until the plan ends."""
    skid_steer = SkidSteer(options.wheel_separation, options.max_wheel_speed)
    wish = RobotCommands(skid_steer.within_maxima)
    session = DriverSession(
        "operator",
        DesiredSubsystems(["first"], ["none"]),
        wish,
        DriverParameters(),
        time_of_day_ms,
        skid_steer=skid_steer,
        feedback=wish.make_feedback(),
    )
    link = _link(options)
    return RobotScript("robot", link, session, wish, options=options, cancellation=cancellation, requests=()).operate()


def _link(options: argparse.Namespace) -> TcpPeer:
    if not options.name:
        return TcpPeer(options.host, options.port, print_retry)
    route = DiscoveryRoute(codec.DISCOVERY_GROUP, options.discovery_port, options.discovery_interface)
    return DiscoveredPeer(options.name, options.port, print_retry, route=route, timeout_s=DISCOVERY_TIMEOUT_S)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Return its exit status."""
    parser = OperatorParser("robot", "A scripted driver of tracked robots.", codec.TCP_PORT, "the robot")
    parser.link.add_argument("--name", default="", help="find the robot of this name by discovery, instead of --host")
    parser.link.add_argument("--discovery-port", type=port, default=codec.DISCOVERY_PORT, help="(%(default)s)")
    parser.link.add_argument(
        "--discovery-interface", default="127.0.0.1", help="its address; 0.0.0.0: chosen by the system (%(default)s)"
    )
    robot, usual = parser.add_argument_group("robot"), SkidSteer()
    add_number(robot, "--wheel-separation", usual.wheel_separation, "m", positive)
    robot.add_argument(
        "--max-wheel-speed", type=positive, default=usual.max_wheel_speed, help="speed at 2048, m/s (%(default)s)"
    )
    return run_program("robot", drive, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
