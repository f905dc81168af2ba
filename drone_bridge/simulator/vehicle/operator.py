# SPDX-License-Identifier: Apache-2.0
"""Operator of the underwater simulator: runs the world, follows a plan, and prints the vehicle's state.

    drone-bridge operate simulator --plan '4s forward 0.5, 3s turn 0.5'

It runs the session of the bridge, which learns the rotation from the vehicle's principal axes to its model.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from collections.abc import Sequence
from random import Random

from drone_bridge.net.connector import Cancellation
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.program import print_retry, run_program
from drone_bridge.programs.script import PlannedCommands, Script
from drone_bridge.simulator.codec import DEFAULT_PORT, VEHICLE
from drone_bridge.simulator.session.client import CONNECTIONS, SimulatorClientSession
from drone_bridge.simulator.session.client_parameters import SimulatorClientParameters
from drone_bridge.simulator.session.desired_items import DesiredEntityStream
from drone_bridge.simulator.session.entities import Entities
from drone_bridge.simulator.session.simulated_time import SimulatedTime
from drone_bridge.simulator.session.simulation import Simulation
from drone_bridge.simulator.session.steering import Steering


class SimulatorScript(Script):
    """Script of a vehicle, which reports once the world runs."""

    first_report_s = math.inf


def operate(options: argparse.Namespace, cancellation: Cancellation, _: contextlib.ExitStack) -> int:
    """Steer until the plan is complete, and always leave the vehicle at rest."""
    wish = PlannedCommands()
    parameters = SimulatorClientParameters(run_on_connect=True, rate=20.0, release_after=0.0)
    entities = Entities(VEHICLE, {}, lambda name, fallback: name or fallback, ())
    simulation = Simulation(
        entities, lambda: [DesiredEntityStream(VEHICLE, 1)], SimulatedTime(is_published=False), Random()
    )
    steering = Steering(wish, parameters)
    feedback = wish.make_feedback()
    session = SimulatorClientSession(simulation, steering, parameters, feedback, check_hold=lambda name: None)
    stream = StreamOptions(acknowledges_at_once=True)
    link = TcpPeer(options.host, options.port, print_retry, connections=CONNECTIONS, options=stream)
    script = SimulatorScript("simulator", link, session, wish, options=options, cancellation=cancellation, requests=())
    return script.operate()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Return its exit status."""
    parser = OperatorParser("simulator", "Scripted client of the simulator.", DEFAULT_PORT, "the simulator")
    return run_program("simulator", operate, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
