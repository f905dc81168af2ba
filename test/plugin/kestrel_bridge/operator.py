# SPDX-License-Identifier: Apache-2.0
"""Client script of the kestrel that takes off, follows a plan, and lands, by the session of the bridge.

drone-bridge operate kestrel --plan '4s forward 0.5'
"""

from drone_bridge.net.datagram_link import DatagramPeer
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.program import print_retry, run_program
from drone_bridge.programs.script import LOOK_S, PlannedCommands, Script
from drone_bridge.wire.addresses import address_name
from kestrel_bridge.codec import DEFAULT_PORT
from kestrel_bridge.session import REQUESTS, ClientParameters, ClientSession
from kestrel_bridge.units import steer_from_velocity, within_full_scale


class KestrelCommands(PlannedCommands):
    """Commands of the plan, and the drone's newest state, which is printed."""

    state = None

    def publish_event(self, message) -> None:
        self.state = message
        self._limited.print(str(message))


class KestrelScript(Script):
    """Script that begins once the drone sends its state."""

    first_report_s = 0.0

    def prepare(self) -> None:
        while self._wish.state is None:
            self.listen(LOOK_S)
        super().prepare()


def operate(options, cancellation, stack) -> int:
    """Fly the plan. Raises LinkError."""
    drone = DatagramPeer(options.host, options.port, print_retry, cancellation=cancellation)
    wish, name = KestrelCommands(within_full_scale), address_name(options.host, options.port)
    session = ClientSession(name, wish, steer_from_velocity, ClientParameters())
    KestrelScript("kestrel", drone, session, wish, options=options, cancellation=cancellation, requests=REQUESTS).run()
    return 0


def main(arguments=None) -> int:
    """Run the program; return its exit code."""
    parser = OperatorParser("kestrel", "A client of the kestrel that follows a plan.", DEFAULT_PORT, "the drone")
    parser.add_argument("--in-the-air", action="store_true", help="steer from the start, without takeoff and landing")
    return run_program("kestrel operator", operate, parser.parse_args(arguments))
