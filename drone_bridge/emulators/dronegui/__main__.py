# SPDX-License-Identifier: Apache-2.0
"""A drone behind its control GUI, to try controllers on: it listens for control packets over UDP and flies by them.

    python3 -m drone_bridge.emulators.dronegui --trajectory flight.csv

As in the original, nothing is ever answered, everybody may send, and the last command stays in force for ever. It
reports on standard output: a line for each change and, once a second, where the drone is.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import time
from collections.abc import Sequence
from typing import Final

from drone_bridge.emulators.bad_network import BadNetwork
from drone_bridge.emulators.dronegui.flight import COLUMNS, Airframe, Flight
from drone_bridge.emulators.options import count, not_negative, port, positive, probability
from drone_bridge.emulators.program import TrajectoryFile, conduct, say
from drone_bridge.links.cancellation import Cancellation
from drone_bridge.links.errors import LinkCancelledError, LinkTimeoutError
from drone_bridge.links.udp import UdpListener, name
from drone_bridge.protocols.dronegui import AXES, BUTTONS, DEFAULT_PORT, ControlPacket, Controls, ReceiverConnection
from drone_bridge.protocols.errors import RemoteProtocolError

REPORT_PERIOD_S: Final = 1.0
CSV_COLUMNS: Final = (*COLUMNS, *(f"control_{key}" for key in (*BUTTONS, *AXES)))
#: After the process was held up for longer than this, flight goes on from there instead of catching up.
LONGEST_CATCH_UP_S: Final = 0.25


class Gui:
    """The receiver of packets: what is in force now, and what came."""

    def __init__(self, python_literals: bool, strict_real: bool) -> None:
        self.controls = Controls()
        self.packets = self.late = self.refused = 0
        self._protocol = ReceiverConnection(python_literals=python_literals, complete_states_only=strict_real)
        self._sender = ""
        self._may_complain_at = 0.0

    def receive(self, datagram: bytes, sender: str) -> bool:
        """Take a datagram; return whether it took effect."""
        self._protocol.receive_data(datagram)
        try:
            event = self._protocol.next_event()
        except RemoteProtocolError as error:
            self.refused += 1
            self._complain(f"refused a packet of {sender}: {error}")
            return False
        if not isinstance(event, ControlPacket):
            self.late += 1
            return False
        if sender != self._sender:
            self._complain(f"controlled by {sender}")
            self._sender = sender
        self.packets += 1
        self.controls = event.controls
        return True

    def _complain(self, sentence: str) -> None:
        """Say something that senders decide about, and so not more than once a second."""
        if time.monotonic() >= self._may_complain_at:
            say(sentence)
            self._may_complain_at = time.monotonic() + REPORT_PERIOD_S


def fly(
    flight: Flight, gui: Gui, listener: UdpListener, options: argparse.Namespace, trajectory: TrajectoryFile | None
) -> None:
    """Fly by the wall clock until the duration is over. Raises LinkError, LinkCancelledError among them."""
    network: BadNetwork[tuple[bytes, str]] = BadNetwork(options.loss, options.reorder, options.seed)
    duration = math.inf if options.duration is None else options.duration
    step = 1 / options.rate
    due = time.monotonic()
    report_due = REPORT_PERIOD_S
    if trajectory:
        trajectory.restart()
    while flight.time < duration:
        phase = flight.phase
        flight.advance(step)
        if trajectory:
            trajectory.write([*flight.row(), *(float(getattr(gui.controls, key)) for key in (*BUTTONS, *AXES))])
        due = max(due + step, time.monotonic() - LONGEST_CATCH_UP_S)
        with contextlib.suppress(LinkTimeoutError):
            while (left_s := due - time.monotonic()) > 0:
                datagram, source = listener.receive(left_s)
                for data, sender in network.carry((datagram, name(source))):
                    if gui.receive(data, sender):
                        flight.control(gui.controls)
        if flight.phase is not phase:
            say(f"{phase.value} -> {flight.phase.value}: {flight.describe()}")
        if flight.time >= report_due:
            report_due += REPORT_PERIOD_S
            say(flight.describe())


def serve(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Listen and fly until it is over. Raises LinkError and OSError when that is impossible."""
    airframe = Airframe(
        max_tilt=math.radians(options.max_tilt),
        max_yaw_rate=math.radians(options.max_yaw_rate),
        max_climb=options.max_climb,
        ceiling=options.ceiling,
    )
    flight = Flight(airframe, options.gusts, options.seed)
    gui = Gui(options.python_literals, options.strict_real)
    trajectory = TrajectoryFile.wanted(options.trajectory, CSV_COLUMNS, stack)
    listener = UdpListener(options.host, options.port, cancellation)
    stack.callback(listener.close)
    say(f"listening on {options.host}:{listener.port}")
    with contextlib.suppress(LinkCancelledError):
        fly(flight, gui, listener, options, trajectory)
    say(f"ended: {flight.describe()}; {gui.packets} packets, {gui.late} late, {gui.refused} refused")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    return conduct("dronegui", serve, parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line. Exits with a message when it is wrong."""
    parser = argparse.ArgumentParser(
        prog="python3 -m drone_bridge.emulators.dronegui",
        usage="%(prog)s [options]",
        description="A drone behind its control GUI, to try controllers on. Ends on SIGINT, SIGTERM or after "
        "--duration, with 0; with 2 when it can't start.",
    )
    link = parser.add_argument_group("link")
    link.add_argument("--host", default="127.0.0.1", help="to listen on (%(default)s)")
    link.add_argument("--port", type=port, default=DEFAULT_PORT, help="0 listens on a free one (%(default)s)")
    link.add_argument("--strict-real", action="store_true", help="refuse incomplete states, as the real receiver does")
    link.add_argument("--python-literals", action="store_true", help="accept True, False and None")
    link.add_argument("--loss", type=probability, default=0.0, help="probability that a packet is lost (%(default)s)")
    link.add_argument("--reorder", type=probability, default=0.0, help="that the next one overtakes it (%(default)s)")
    drone = parser.add_argument_group("drone: what it is configured to")
    drone.add_argument("--max-tilt", type=positive, default=12.0, help="at full roll or pitch, degrees (%(default)s)")
    drone.add_argument("--max-yaw-rate", type=positive, default=100.0, help="at full yaw, degrees/s (%(default)s)")
    drone.add_argument("--max-climb", type=positive, default=0.7, help="at full gas, m/s (%(default)s)")
    drone.add_argument("--ceiling", type=positive, default=3.0, help="it does not climb higher, m (%(default)s)")
    drone.add_argument("--gusts", type=not_negative, default=0.0, help="standard deviation, m/s (%(default)s)")
    run = parser.add_argument_group("run")
    run.add_argument("--seed", type=count, default=0, help="of gusts, losses and reordering (%(default)s)")
    run.add_argument("--rate", type=positive, default=100.0, help="steps of the simulation per second (%(default)s)")
    run.add_argument("--duration", type=not_negative, help="end after so many seconds")
    run.add_argument("--trajectory", metavar="FILE.csv", help="write each state of the flight there")
    options = parser.parse_args(arguments)
    if options.max_tilt > 60:
        parser.error(f"argument --max-tilt: must be at most 60, not {options.max_tilt:g}")
    return options


if __name__ == "__main__":
    sys.exit(main())
