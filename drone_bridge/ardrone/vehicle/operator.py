# SPDX-License-Identifier: Apache-2.0
"""Ardrone operator: a client of an AR.Drone that follows a plan. It takes off, flies, lands, and reports navdata.

    drone-bridge operate ardrone --plan '4s forward 0.5, 3s turn 0.5'

It runs the session of the bridge, so take-off and landing are as safe as there: it waits for navdata, and does not take
off if the drone flies already. Velocities are held by the drone's own measurements.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from collections.abc import Sequence

from drone_bridge.ar_drone.drone import AR_DRONE
from drone_bridge.ardrone.codec import CONTROL_PORT, DEFAULT_PORT, NAVDATA_PORT, setting
from drone_bridge.ardrone.ports import DronePeer
from drone_bridge.ardrone.session.client import ArdroneClientSession
from drone_bridge.ardrone.session.requests import TAKE_OFF, ArdroneClientParameters
from drone_bridge.ardrone.session.settings import WantedSetting as Setting
from drone_bridge.net.connector import Cancellation
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.options import port
from drone_bridge.programs.program import print_retry, run_program
from drone_bridge.programs.script import PlannedCommands, Script
from drone_bridge.session.session import LAND
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.wire.addresses import address_name

LANDING_S = 15.0


class ArdroneScriptedClient(Script):
    """Script of a drone, which reports always, and takes a while to land."""

    first_report_s = math.inf

    def finish(self) -> None:
        super().finish()
        if self._flies:
            self.wait(LANDING_S, until=lambda: not self._session.watch.navdata.is_airborne)


def operate(options: argparse.Namespace, cancellation: Cancellation, _: contextlib.ExitStack) -> int:
    """Fly until the plan is complete, and always leave the drone hovering or landed. Raises LinkError."""
    ports = options.port, options.navdata_port, options.control_port
    wish = PlannedCommands()
    pilot = TiltPilot(wish, AR_DRONE, hovers=True)
    session = ArdroneClientSession(
        address_name(options.host, options.port),
        pilot,
        wish.make_feedback(pilot),
        parameters=ArdroneClientParameters(),
        wishes=lambda: [Setting(setting("general:navdata_demo", True), is_required=True)],
        use_settings=lambda settings: pilot.use(settings.maxima(AR_DRONE)),
    )
    link = DronePeer(options.host, ports, print_retry)
    return ArdroneScriptedClient(
        "ardrone", link, session, wish, options=options, cancellation=cancellation, requests=(TAKE_OFF, LAND)
    ).operate()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = OperatorParser("ardrone", "A client of an AR.Drone that follows a plan.", DEFAULT_PORT, "the drone")
    for name, number, purpose in (("navdata", NAVDATA_PORT, "navdata"), ("control", CONTROL_PORT, "settings")):
        parser.link.add_argument(
            f"--{name}-port", type=port, default=number, help=f"the drone's port for {purpose} (%(default)s)"
        )
    parser.add_argument("--in-the-air", action="store_true", help="steer from the start, without take-off and landing")
    return run_program("ardrone operator", operate, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
