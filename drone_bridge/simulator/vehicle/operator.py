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
from drone_bridge.programs.program import print_event, print_retry, run_program
from drone_bridge.programs.script import PlannedCommands, Script
from drone_bridge.simulator.codec import DEFAULT_PORT, VEHICLE, Configured
from drone_bridge.simulator.session.client import CONNECTIONS, SimulatorClientSession
from drone_bridge.simulator.session.client_parameters import SimulatorClientParameters
from drone_bridge.simulator.session.desired_items import DesiredEntityStream
from drone_bridge.simulator.session.entities import Entities
from drone_bridge.simulator.session.simulated_time import SimulatedTime
from drone_bridge.simulator.session.simulation import Simulation
from drone_bridge.simulator.session.steering import Steering


class PlanTime(SimulatedTime):
    """Time of a plan, which is simulated."""

    #: Simulated seconds per second of the wall clock.
    speed = 1.0

    def configure(self, configured: Configured) -> None:
        """See SimulatedTime. A plan for a world that is not real-time is in wall time."""
        super().configure(configured)
        self.speed = 1.0 if configured.non_real_time else configured.speed
        if self.speed != 1.0:
            print_event(f"the plan is in simulated time: {self.speed:g} s per second")


class SimulatorScript(Script):
    """Script of a vehicle in simulated time."""

    first_report_s = math.inf
    time: PlanTime

    @property
    def elapsed_s(self) -> float:
        return super().elapsed_s * self.time.speed


def operate(options: argparse.Namespace, cancellation: Cancellation, _: contextlib.ExitStack) -> int:
    """Steer until the plan is complete, and always leave the vehicle at rest."""
    wish, time = PlannedCommands(), PlanTime(is_published=False)
    parameters = SimulatorClientParameters(run_on_connect=True, rate=20.0, release_after=0.0)
    entities = Entities(VEHICLE, {}, lambda name, fallback: name or fallback, ())
    simulation = Simulation(entities, lambda: [DesiredEntityStream(VEHICLE, 1)], time, Random())
    steering = Steering(wish, parameters)
    feedback = wish.make_feedback()
    session = SimulatorClientSession(simulation, steering, parameters, feedback, check_hold=lambda name: None)
    stream = StreamOptions(acknowledges_at_once=True)
    link = TcpPeer(options.host, options.port, print_retry, connections=CONNECTIONS, options=stream)
    script = SimulatorScript("simulator", link, session, wish, options=options, cancellation=cancellation, requests=())
    script.time = time
    return script.operate()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Return its exit status."""
    parser = OperatorParser("simulator", "Scripted client of the simulator.", DEFAULT_PORT, "the simulator")
    return run_program("simulator", operate, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
