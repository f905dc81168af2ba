# SPDX-License-Identifier: Apache-2.0
"""A simulated drone behind its control GUI: it listens for control packets over UDP and flies accordingly.

    python3 -m drone_bridge.dronegui.emulator --trajectory flight.csv

As in the original, no packet is answered, everybody may send, and the last command stays in force forever. Once reset
has been pressed, the drone's navdata goes to whoever sends packets. The GUI's user has two actions more: "Start
navdata" (SIGUSR1) and "Land" (SIGUSR2). The program reports on standard output: a line for each change and, once a
second, where the drone is.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import signal
import sys
import time
from collections.abc import Sequence
from typing import Final

from drone_bridge.dronegui.codec import (
    AXES,
    BUTTONS,
    DEFAULT_NAVDATA_PORT,
    DEFAULT_NAVDATA_SOURCE_PORT,
    DEFAULT_PORT,
)
from drone_bridge.dronegui.device import Dialect
from drone_bridge.dronegui.emulator.flight import COLUMNS, Airframe, Flight
from drone_bridge.dronegui.emulator.gui_program import GuiProgram
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkTimeoutError
from drone_bridge.net.udp import Datagram, UdpListener, open_preferred
from drone_bridge.programs.bad_network import BadNetwork
from drone_bridge.programs.options import (
    ProgramParser,
    add_address,
    add_bad_network,
    add_run,
    not_negative,
    port,
    positive,
)
from drone_bridge.programs.program import TrajectoryFile, run_program, say

REPORT_PERIOD_S: Final = 1.0
CSV_COLUMNS: Final = (*COLUMNS, *(f"control_{key}" for key in (*BUTTONS, *AXES)))
#: After the process was held up for longer than this, flight goes on from there instead of catching up.
LONGEST_CATCH_UP_S: Final = 0.25


def fly(
    flight: Flight,
    gui: GuiProgram,
    listener: UdpListener,
    options: argparse.Namespace,
    trajectory: TrajectoryFile | None,
) -> None:
    """Fly in real time until the duration is over. Raises LinkError and LinkCancelledError."""
    network: BadNetwork[Datagram] = BadNetwork(options.loss, options.reorder, options.seed)
    duration = math.inf if options.duration is None else options.duration
    step = 1 / options.rate
    due = time.monotonic()
    report_due = REPORT_PERIOD_S
    while flight.time < duration:
        phase = flight.phase
        flight.advance(step)
        if trajectory:
            trajectory.write([*flight.row(), *(float(getattr(flight.controls, key)) for key in (*BUTTONS, *AXES))])
        gui.send_navdata()
        due = max(due + step, time.monotonic() - LONGEST_CATCH_UP_S)
        with contextlib.suppress(LinkTimeoutError):
            while (left_s := due - time.monotonic()) > 0:
                for datagram in network.carry(listener.receive(left_s)):
                    gui.receive(datagram.data, datagram.source)
        if flight.phase is not phase:
            say(f"{phase.value} -> {flight.phase.value}: {flight.describe()}")
        if flight.time >= report_due:
            report_due += REPORT_PERIOD_S
            say(flight.describe())


def serve(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Listen and fly until the end. Raises LinkError and OSError."""
    airframe = Airframe(
        max_tilt=math.radians(options.max_tilt),
        max_yaw_rate=math.radians(options.max_yaw_rate),
        max_climb=options.max_climb,
        ceiling=options.ceiling,
    )
    flight = Flight(airframe, options.gusts, options.seed)
    dialect = Dialect(
        python_literals=options.python_literals,
        complete_states_only=options.strict_real,
        loose_values=options.strict_real,
        is_bootstrapped=options.bootstrapped,
        navdata_port=options.navdata_port,
        navdata_rate=options.navdata_rate,
        drone_patience_s=options.drone_patience,
    )
    trajectory = TrajectoryFile.wanted(options.trajectory, CSV_COLUMNS, stack)
    listener = UdpListener(options.host, options.port, cancellation)
    stack.callback(listener.close)
    navdata_socket = open_navdata_socket(options, cancellation, stack)
    gui = GuiProgram(flight, dialect, navdata_socket)
    for number, action in ((signal.SIGUSR1, gui.start_navdata), (signal.SIGUSR2, gui.land)):
        signal.signal(number, action)
    say(f"listening on {options.host}:{listener.port}")
    with contextlib.suppress(LinkCancelledError):
        fly(flight, gui, listener, options, trajectory)
    say(f"ended: {flight.describe()}; {gui.packets} packets, {gui.late} late, {gui.refused} refused")
    return 0


def open_navdata_socket(
    options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack
) -> UdpListener | None:
    """Return the socket for navdata, if it is sent. Raises LinkError."""
    if options.no_navdata:
        return None
    opened, problem = open_preferred(options.host, options.navdata_source_port, cancellation)
    stack.callback(opened.close)
    if problem:
        say(f"{problem} Navdata goes out from port {opened.port} instead.")
    return opened


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    return run_program("dronegui", serve, parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line. Exits with a message when it is wrong."""
    parser = ProgramParser("emulate", "dronegui", "A simulated drone behind its control GUI.", "after --duration")
    link = parser.add_argument_group("link")
    add_address(link, DEFAULT_PORT)
    link.add_argument(
        "--strict-real",
        action="store_true",
        help="read packets as the real receiver does: refuse incomplete states, take loose values",
    )
    link.add_argument("--python-literals", action="store_true", help="accept True, False and None")
    add_bad_network(link)
    navdata = parser.add_argument_group("navdata: what the GUI sends to its controllers")
    navdata.add_argument(
        "--navdata-port", type=port, default=DEFAULT_NAVDATA_PORT, help="of the controllers' hosts (%(default)s)"
    )
    navdata.add_argument(
        "--navdata-source-port",
        type=port,
        default=DEFAULT_NAVDATA_SOURCE_PORT,
        help="where it is sent from, if that is free; 0 takes any (%(default)s)",
    )
    navdata.add_argument("--navdata-rate", type=positive, default=15.0, help="per second (%(default)s)")
    navdata.add_argument(
        "--bootstrapped", action="store_true", help="ask the drone for navdata at the start, before reset is pressed"
    )
    navdata.add_argument(
        "--drone-patience",
        type=positive,
        default=math.inf,
        help="without packets for this long the drone takes the GUI for gone, and sends it no more navdata until reset "
        'or "Start navdata"; about 2 s with an AR.Drone (%(default)s)',
    )
    navdata.add_argument("--no-navdata", action="store_true", help="send none to the controllers")
    drone = parser.add_argument_group("drone: its configuration")
    drone.add_argument("--max-tilt", type=positive, default=12.0, help="at full roll or pitch, degrees (%(default)s)")
    drone.add_argument("--max-yaw-rate", type=positive, default=100.0, help="at full yaw, degrees/s (%(default)s)")
    drone.add_argument("--max-climb", type=positive, default=0.7, help="at full gas, m/s (%(default)s)")
    drone.add_argument("--ceiling", type=positive, default=3.0, help="maximum height, m (%(default)s)")
    drone.add_argument("--gusts", type=not_negative, default=0.0, help="standard deviation, m/s (%(default)s)")
    add_run(
        parser,
        seed_of="gusts, losses and reordering",
        rate=(100.0, "steps of the simulation per second"),
        duration="seconds",
    )
    options = parser.parse_args(arguments)
    if options.max_tilt > 60:
        parser.error(f"argument --max-tilt: must be at most 60, not {options.max_tilt:g}")
    return options


if __name__ == "__main__":
    sys.exit(main())
