# SPDX-License-Identifier: Apache-2.0
"""A simulated drone without GPS above a rover with a landing pad, which broadcasts its telemetry.

    python3 -m drone_bridge.telemetry.emulator --rover circular --seed 3 --until-landed

A Broadcast sends telemetry over UDP to its bridge, and takes commands from it; a Watch decides when the flight ends. It
reports on standard output, a line for each event: where it sends to, who commands it, each touchdown and how good it
was, where everything ended.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields

from drone_bridge.programs.missing_package import explain_missing

try:
    import cv2
except ModuleNotFoundError as error:
    if __name__ != "__main__":  # an importing program has a name of its own
        raise
    sys.exit(explain_missing("drone_bridge.telemetry.emulator", error))

from drone_bridge.net.blocking import receive
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkRefusedError, LinkTimeoutError
from drone_bridge.net.datagram_link import DatagramPeer
from drone_bridge.programs.bad_network import BadNetwork
from drone_bridge.programs.options import (
    ProgramParser,
    add_bad_network,
    add_choice,
    add_run,
    not_negative,
    port,
    positive,
    triple,
)
from drone_bridge.programs.program import (
    LimitedReports,
    TrajectoryFile,
    print_event,
    print_retry,
    print_status,
    run_program,
)
from drone_bridge.telemetry.codec import (
    DEFAULT_PORT,
    PERIOD_S,
    ROVER_EVERY,
    DroneCommand,
    DroneConnection,
    DroneTelemetry,
    RoverConnection,
    RoverTelemetry,
)
from drone_bridge.telemetry.emulator.rover import Pattern
from drone_bridge.telemetry.emulator.scene import PAD_HEIGHT
from drone_bridge.telemetry.emulator.world import COLUMNS, LANDING_GEAR, LandingFlight, Phase, Setup, Touchdown
from drone_bridge.wire.events import RemoteProtocolError

# The wire: telemetry out, commands in.

#: After the process was held up for longer than this, flight goes on from there instead of catching up.
LONGEST_CATCH_UP_S = 0.25
#: The most documents read per frame when there is no time left to wait, however many are sent.
DOCUMENTS_WHEN_LATE = 20


class Broadcast:
    """One flight in conversation with the receiver of the telemetry, if any."""

    def __init__(
        self,
        flight: LandingFlight,
        peer: DatagramPeer,
        cancellation: Cancellation,
        network: BadNetwork[bytes],
        *,
        publish_rover: bool = False,
    ) -> None:
        """Datagrams are sent to the open `peer` through `network`."""
        self.sent = self.commands = self.refused = 0
        self._flight = flight
        self._peer, self._cancellation = peer, cancellation
        self._network = network
        self._publish_rover = publish_rover
        self._connection = DroneConnection()
        self._reports = LimitedReports()
        self._is_heard = True

    def run(self, speed: float, goes_on: Callable[[], bool]) -> None:
        """Fly at `speed` simulated seconds per second until `goes_on` is false after a frame.

        Raises LinkError, LinkCancelledError among them.
        """
        due = time.monotonic()
        while True:
            frame = self._flight.frames
            telemetry = self._flight.advance()
            for document in self._documents(frame, telemetry):
                for arriving in self._network.carry(document):
                    self._send(arriving)
            if not goes_on():
                return
            due = max(due + PERIOD_S / speed, time.monotonic() - LONGEST_CATCH_UP_S)
            self._receive_until(due)

    def _documents(self, frame: int, telemetry: DroneTelemetry) -> Iterator[bytes]:
        """Return the documents to send at the end of this frame."""
        yield self._connection.send(telemetry)
        if self._publish_rover and frame % ROVER_EVERY == 0:
            yield RoverConnection().send(self._flight.rover_telemetry())

    def _send(self, document: bytes) -> None:
        try:
            self._peer.send(document, None)
        except LinkRefusedError as error:
            self._is_not_heard(error)
        self.sent += 1

    def _receive_until(self, due: float) -> None:
        """Handle datagrams until the deadline, and a few if it has already passed."""
        late = 0
        with contextlib.suppress(LinkTimeoutError):
            while (left_s := due - time.monotonic()) > 0 or late < DOCUMENTS_WHEN_LATE:
                late += left_s <= 0
                try:
                    document = receive(self._peer, self._cancellation, max(left_s, 0.0)).data
                except LinkRefusedError as error:
                    self._is_not_heard(error)
                    continue
                self._is_heard = True
                self._take(document)

    def _take(self, document: bytes) -> None:
        self._connection.receive_data(document)
        try:
            event = self._connection.next_event()
        except RemoteProtocolError as error:
            self.refused += 1
            self._reports.print(f"refused a document from {self._peer.peer}: {error}")
            return
        if isinstance(event, DroneCommand):
            if event.problem:
                self._reports.print(f"took a command of {self._peer.peer} as the nearest one: {event.problem}")
            self._flight.follow_command(event)
            if not self.commands:
                print_event(f"commanded from {self._peer.peer}")
            self.commands += 1
        elif isinstance(event, RoverTelemetry):
            self._flight.move_rover(event)

    def _is_not_heard(self, error: LinkRefusedError) -> None:
        """Report once that nobody listens, until somebody does."""
        if self._is_heard:
            print_event(str(error))
        self._is_heard = False


# The program.

REPORT_PERIOD_S = 1.0
#: A drone has landed when it has stood for this long after a good touchdown; by then its telemetry has reported that.
STAYS_S = 1.0
LOWEST_START = 1.0  # m
HIGHEST_START = 50.0


class Watch:
    """Records and reports the flight, and decides when it ends."""

    def __init__(
        self, flight: LandingFlight, duration: float, until_landed: bool, trajectory: TrajectoryFile | None
    ) -> None:
        """`duration` in simulated s."""
        self.has_landed_well = False
        self._flight = flight
        self._frames = round(duration / PERIOD_S) if math.isfinite(duration) else math.inf
        self._until_landed = until_landed
        self._trajectory = trajectory
        self._phase = flight.world.phase
        self._touchdown: Touchdown | None = None
        self._report_due_s = REPORT_PERIOD_S

    def goes_on(self) -> bool:
        """Record a frame; return whether the flight goes on."""
        world = self._flight.world
        if self._trajectory:
            self._trajectory.write(world.row())
        if world.touchdown and world.touchdown is not self._touchdown:
            print_event(world.touchdown.describe())
        if world.phase is Phase.FLYING and self._phase is not Phase.FLYING:
            print_event(f"took off: {world.describe()}")
        self._phase, self._touchdown = world.phase, world.touchdown
        if world.time >= self._report_due_s:
            self._report_due_s += REPORT_PERIOD_S
            print_status(world.describe())
        touchdown = self._flight.touchdown
        if touchdown and touchdown.is_good and world.time - touchdown.time >= STAYS_S:
            self.has_landed_well = True
            if self._until_landed:
                return False
        return self._flight.frames < self._frames


def fly(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Fly until the end; return the exit code. Raises LinkError and OSError."""
    cv2.setNumThreads(1)  # images are small: waking other threads for them costs more than it gains
    flight = LandingFlight(Setup(**{each.name: getattr(options, each.name) for each in fields(Setup)}))
    trajectory = TrajectoryFile.wanted(options.trajectory, COLUMNS, stack)
    peer = DatagramPeer(options.host, options.port, print_retry, cancellation=cancellation)
    stack.callback(peer.close)
    duration = math.inf if options.duration is None else options.duration
    watch = Watch(flight, duration, options.until_landed, trajectory)
    broadcast = None
    with contextlib.suppress(LinkCancelledError):
        peer.open()
        print_event(f"sending to {peer.peer}")
        broadcast = Broadcast(
            flight,
            peer,
            cancellation,
            BadNetwork(options.loss, options.reorder, options.seed),
            publish_rover=options.publish_rover,
        )
        broadcast.run(options.speed, watch.goes_on)
    if broadcast:
        print_event(
            f"ended: {flight.world.describe()}; {broadcast.sent} documents sent, "
            f"{broadcast.commands} commands, {broadcast.refused} refused"
        )
    return int(options.until_landed and not watch.has_landed_well)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    return run_program("landing", fly, parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line. Exits with a message when it is wrong."""
    parser = ProgramParser(
        "emulate",
        "landing",
        "A simulated drone without GPS above a rover with a landing pad.",
        "after --duration",
    )
    link = parser.add_argument_group("link")
    link.add_argument("--host", default="127.0.0.1", help="where the telemetry goes (%(default)s)")
    link.add_argument("--port", type=port, default=DEFAULT_PORT, help="where the telemetry goes (%(default)s)")
    add_bad_network(link)
    link.add_argument("--no-images", dest="images", action="store_false", help="omit the camera's image")
    rover = parser.add_argument_group("rover")
    add_choice(
        rover,
        "--rover",
        Pattern.STATIONARY,
        "its path, or follow: the position in received rover telemetry",
        dest="pattern",
    )
    rover.add_argument("--rover-speed", type=positive, default=0.5, help="m/s (%(default)s)")
    rover.add_argument("--rover-amplitude", type=positive, default=2.0, help="of its pattern, m (%(default)s)")
    rover.add_argument("--publish-rover", action="store_true", help="also send the rover's telemetry")
    drone = parser.add_argument_group("drone")
    drone.add_argument("--start", choices=("air", "ground"), default="air", help="where it starts (%(default)s)")
    drone.add_argument("--height", type=positive, default=5.0, help="of a start in the air, m (%(default)s)")
    drone.add_argument("--wind", type=triple, metavar="'X Y Z'", default=(0.0, 0.0, 0.0), help="m/s (none)")
    drone.add_argument("--gusts", type=not_negative, default=0.3, help="standard deviation, m/s (%(default)s)")
    run = add_run(parser, seed_of="start, gusts, noise, ground and losses", duration="simulated seconds")
    run.add_argument("--speed", type=positive, default=1.0, help="simulated seconds per second (%(default)s)")
    run.add_argument(
        "--until-landed",
        action="store_true",
        help=f"exit with 0 once the drone has stood on the pad for {STAYS_S:g} s after a good landing, else with 1",
    )
    options = parser.parse_args(arguments)
    options.starts_on_ground = options.start == "ground"
    if not options.port:
        parser.error("argument --port: must be above 0, as the telemetry goes there")
    if not LOWEST_START <= options.height <= HIGHEST_START:
        parser.error(
            f"argument --height: must be from {LOWEST_START:g} to {HIGHEST_START:g}, well above the pad at "
            f"{PAD_HEIGHT + LANDING_GEAR:g}, not {options.height:g}"
        )
    return options


if __name__ == "__main__":
    sys.exit(main())
