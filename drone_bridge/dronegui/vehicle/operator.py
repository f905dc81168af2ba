# SPDX-License-Identifier: Apache-2.0
"""Dronegui operator: a client of the control GUI that follows a plan. It takes off, flies, lands, and reports navdata.

    drone-bridge operate dronegui --plan '4s forward 0.5, 3s turn 0.5'

It runs the session of the bridge, so take-off and landing are as safe as there: without navdata the drone may be
flying, and no button is pressed. With --landed, the user confirms that the drone is on the ground.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from functools import partial

from drone_bridge.ar_drone.drone import AR_DRONE
from drone_bridge.dronegui.codec import DEFAULT_NAVDATA_PORT, DEFAULT_PORT
from drone_bridge.dronegui.ports import NavdataPeer
from drone_bridge.dronegui.session.controller import DroneGuiControllerParameters, DroneGuiControllerSession
from drone_bridge.dronegui.session.requests import TAKE_OFF
from drone_bridge.net.clock import Clock
from drone_bridge.net.connector import Cancellation
from drone_bridge.programs.operator_options import LEAVES_MOVING, OperatorParser
from drone_bridge.programs.options import add_flag, add_number, port
from drone_bridge.programs.program import print_event, print_retry, run_program
from drone_bridge.programs.script import PlannedCommands, Script
from drone_bridge.session.session import LAND
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.wire.addresses import address_name

#: Longest landing, s, and height of a drone that has landed, m.
LANDING_S, GROUND_M = 15.0, 0.05


class DroneGuiScript(Script):
    """Script of a drone behind a GUI. With `landed`, a person has confirmed that it is on the ground."""

    first_report_s = 15.0  # the drone behind the GUI may be starting, too

    def take_off(self) -> None:
        if self.options.landed:
            self._ask("assume_flying", partial(self._session.assume_flying, False))
        else:  # the GUI's first navdata may be older than its drone's, and have no state
            self.wait(self.first_report_s, until=lambda: not (it := self._wish.newest) or it.is_flying is not None)
        super().take_off()

    def finish(self) -> None:
        super().finish()
        if self._flies:
            self.wait(LANDING_S, until=lambda: not (newest := self._wish.newest) or (newest.height or 0.0) < GROUND_M)


def operate(options: argparse.Namespace, cancellation: Cancellation, _: contextlib.ExitStack) -> int:
    """Fly until the plan is complete, and always leave the drone hovering. Raises LinkError."""
    link = NavdataPeer(
        options.host,
        options.port,
        options.navdata_port or None,
        print_retry,
        on_port=lambda address, problem: print_event(problem) if problem else None,
        clock=Clock(),
    )
    wish = PlannedCommands()
    pilot = TiltPilot(wish, AR_DRONE, hovers=True)
    session = DroneGuiControllerSession(
        address_name(options.host, options.port),
        pilot,
        wish.make_feedback(pilot),
        parameters=DroneGuiControllerParameters(navdata_port=options.navdata_port),
        is_hover_held=lambda: False,
        gui_host=lambda: link.peer_host,
        port_problem=(lambda: link.problem) if options.navdata_port else None,
    )
    requests = (TAKE_OFF, LAND)
    return DroneGuiScript(
        "dronegui", link, session, wish, options=options, cancellation=cancellation, requests=requests
    ).operate()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    what = "A client of an AR.Drone's control GUI that follows a plan." + LEAVES_MOVING
    parser = OperatorParser("dronegui", what, DEFAULT_PORT, "the GUI")
    add_number(parser.link, "--navdata-port", DEFAULT_NAVDATA_PORT, "local port for navdata, 0 to disable", port)
    add_flag(parser, "--landed", "the drone is on the ground, though no navdata shows it")
    add_flag(parser, "--in-the-air", "do not press any button: no take-off, no landing")
    return run_program("dronegui operator", operate, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
