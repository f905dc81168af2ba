# SPDX-License-Identifier: Apache-2.0
"""Telemetry emulator: a drone without GPS above a rover with a landing pad, which broadcasts its telemetry.

    python3 -m drone_bridge.telemetry.emulator --rover circular --seed 3 --until-landed

A Broadcast sends telemetry over UDP to its bridge, or with `--role listen` to its last sender, and receives commands. A
Watch decides when the flight ends. The program prints one line per event: its destination, its commander, each
touchdown with its quality, and the final positions.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from drone_bridge.programs.missing_package import explain_missing

try:
    import cv2
except ModuleNotFoundError as error:
    if __name__ != "__main__":  # __name__ is different if the module is imported
        raise
    print(explain_missing("drone_bridge.telemetry.emulator", error), file=sys.stderr)
    sys.exit(2)

from drone_bridge.net.blocking import receive
from drone_bridge.net.connector import (
    Cancellation,
    LinkCancelledError,
    LinkOutdatedError,
    LinkRefusedError,
    LinkTimeoutError,
)
from drone_bridge.net.datagram_link import DatagramPeer, DatagramPort
from drone_bridge.programs.bad_network import BadNetwork
from drone_bridge.programs.lies import ALTITUDE, HEADING, LATE, NOISE, VELOCITY, FaultyReports, add_lies
from drone_bridge.programs.options import (
    ProgramParser,
    add_address,
    add_bad_network,
    add_choice,
    add_flag,
    add_number,
    add_run,
    add_word,
    not_negative,
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
    Vector,
)
from drone_bridge.telemetry.device import Audience
from drone_bridge.telemetry.emulator.rover import RoverPattern
from drone_bridge.telemetry.emulator.scene import PAD_HEIGHT
from drone_bridge.telemetry.emulator.world import (
    COLUMNS,
    LANDING_GEAR,
    FlightSetup,
    LandingFlight,
    LandingPhase,
    Touchdown,
)
from drone_bridge.wire.addresses import address_name, peer_name
from drone_bridge.wire.events import RemoteProtocolError

# Communication: sends telemetry, receives commands.

#: Longest stall that the flight catches up, s; after a longer one it continues from there.
LONGEST_CATCH_UP_S = 0.25
#: Maximum number of documents read per frame when there is no time left to wait.
DOCUMENTS_WHEN_LATE = 20
#: Timeout after which a waiting drone sends nothing more to a silent operator.
SILENT_S = 5.0


def lying(telemetry: DroneTelemetry, lies: FaultyReports[DroneTelemetry]) -> DroneTelemetry:
    """Return telemetry with the selected fault."""
    lies.count()
    altimeter, orientation = telemetry.altimeter, telemetry.imu.orientation
    altitude = lies.height(altimeter.altitude)
    yaw = math.remainder(orientation.yaw + math.radians(lies.heading_degrees), math.tau)
    reported = replace(
        telemetry,
        velocity=Vector(*(lies.velocity(each) for each in telemetry.velocity)),
        altimeter=replace(altimeter, altitude=altitude),
        imu=replace(telemetry.imu, orientation=orientation._replace(yaw=yaw)),
    )
    return replace(lies.delayed(reported, telemetry.timestamp or 0.0), timestamp=telemetry.timestamp)


class Broadcast:
    """Flight with its connection to the receiver of the telemetry, if any."""

    def __init__(
        self,
        flight: LandingFlight,
        link: DatagramPeer | DatagramPort,
        cancellation: Cancellation,
        network: BadNetwork[bytes],
        *,
        publish_rover: bool = False,
        fresh_sockets: bool = False,
        lies: FaultyReports[DroneTelemetry],
    ) -> None:
        """Prepare to send through `network` on an open link. With `fresh_sockets`, each document has its own socket."""
        self._lies = lies
        self.sent = self.commands = self.refused = 0
        self._flight = flight
        self._link, self._cancellation = link, cancellation
        self._audience = Audience() if isinstance(link, DatagramPort) else None
        self._network = network
        self._publish_rover, self._fresh_sockets = publish_rover, fresh_sockets
        self._connection = DroneConnection()
        self._reports = LimitedReports()
        self._is_heard = True

    def run(self, speed: float, is_to_continue: Callable[[], bool]) -> None:
        """Fly at `speed` simulated seconds per second until `is_to_continue` returns False after a frame.

        Raises LinkError, including LinkCancelledError.
        """
        due = time.monotonic()
        while True:
            frame = self._flight.frames
            telemetry = lying(self._flight.advance(), self._lies)
            for document in self._documents(frame, telemetry):
                for arriving in self._network.carry(document):
                    self._send(arriving)
            if not is_to_continue():
                return
            due = max(due + PERIOD_S / speed, time.monotonic() - LONGEST_CATCH_UP_S)
            self._receive_until(due)

    def _documents(self, frame: int, telemetry: DroneTelemetry) -> Iterator[bytes]:
        """Yield the documents to send at the end of this frame."""
        yield self._connection.send(telemetry)
        if self._publish_rover and frame % ROVER_EVERY == 0:
            yield RoverConnection().send(self._flight.rover_telemetry())

    def _send(self, document: bytes) -> None:
        """Send to the peer, or to the last operator if there is one."""
        to: Any = self._link.address if isinstance(self._link, DatagramPeer) else None
        if self._audience:
            if dropped := self._audience.drop_silent(time.monotonic(), SILENT_S):
                print_event(f"{peer_name(dropped)} is silent: waiting for the next one")
            to = self._audience.operator
            if to is None:
                return
        try:
            if self._fresh_sockets:
                with socket.socket(socket.AF_INET6 if ":" in to[0] else socket.AF_INET, socket.SOCK_DGRAM) as own:
                    own.sendto(document, to)
            else:
                self._link.send(document, to)
        except LinkRefusedError as error:
            self._report_closed_port(error)
        self.sent += 1

    def _receive_until(self, due: float) -> None:
        """Receive datagrams until the deadline, and a few if it has already passed."""
        late = 0
        with contextlib.suppress(LinkTimeoutError):
            while (left_s := due - time.monotonic()) > 0 or late < DOCUMENTS_WHEN_LATE:
                late += left_s <= 0
                try:
                    received = receive(self._link, self._cancellation, max(left_s, 0.0))
                except LinkRefusedError as error:
                    self._report_closed_port(error)
                    continue
                except LinkOutdatedError as error:
                    print_event(str(error))
                    self._link.open()
                    continue
                self._is_heard = True
                self._handle(received.data, received.source)

    def _handle(self, document: bytes, source: Any) -> None:
        self._connection.receive_data(document)
        try:
            event = self._connection.next_event()
        except RemoteProtocolError as error:
            self.refused += 1
            self._reports.print(f"refused a document from {peer_name(source)}: {error}")
            return
        if self._audience:
            if self._audience.operator is None:
                print_event(f"sending to {peer_name(source)}")
            self._audience.record(source, time.monotonic())
        if isinstance(event, DroneCommand):
            if event.problem:
                self._reports.print(f"clamped a command of {peer_name(source)}: {event.problem}")
            self._flight.follow_command(event)
            if not self.commands:
                print_event(f"commanded from {peer_name(source)}")
            self.commands += 1
        elif isinstance(event, RoverTelemetry):
            self._flight.move_rover(event)

    def _report_closed_port(self, error: LinkRefusedError) -> None:
        """Report once that the peer's port is closed, until it opens."""
        if self._is_heard:
            print_event(str(error))
        self._is_heard = False


# The program.

REPORT_PERIOD_S = 1.0
#: Time for which a drone must stand after a good touchdown to count as landed; its telemetry reports that within it.
STAYS_S = 1.0
LOWEST_START = 1.0  # m
HIGHEST_START = 50.0


class Watch:
    """Records and reports the flight, and decides when it ends."""

    def __init__(
        self, flight: LandingFlight, duration: float, until_landed: bool, trajectory: TrajectoryFile | None
    ) -> None:
        """`duration` is the maximum, in simulated seconds."""
        self.has_landed_well = False
        self._flight = flight
        self._frames = round(duration / PERIOD_S) if math.isfinite(duration) else math.inf
        self._until_landed = until_landed
        self._trajectory = trajectory
        self._phase = flight.world.phase
        self._touchdown: Touchdown | None = None
        self._report_due_s = REPORT_PERIOD_S

    def is_to_continue(self) -> bool:
        """Record a frame; return whether the flight goes on."""
        world = self._flight.world
        if self._trajectory:
            self._trajectory.write(world.row())
        if world.touchdown and world.touchdown is not self._touchdown:
            print_event(world.touchdown.describe())
        if world.phase is LandingPhase.FLYING and self._phase is not LandingPhase.FLYING:
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
    cv2.setNumThreads(1)  # waking other threads costs more than it gains for small images
    flight = LandingFlight(FlightSetup(**{each.name: getattr(options, each.name) for each in fields(FlightSetup)}))
    trajectory = TrajectoryFile.wanted(options.trajectory, COLUMNS, stack)
    link: DatagramPeer | DatagramPort
    if options.role == "listen":
        link = DatagramPort(options.host, options.port)
    else:
        link = DatagramPeer(options.host, options.port, print_retry, cancellation=cancellation)
    stack.callback(link.close)
    duration = math.inf if options.duration is None else options.duration
    watch = Watch(flight, duration, options.until_landed, trajectory)
    broadcast = None
    with contextlib.suppress(LinkCancelledError):
        link.open()
        if isinstance(link, DatagramPeer):
            print_event(f"sending to {link.peer}")
        else:
            print_event(f"waiting for an operator on {address_name(options.host, link.port)}")
        broadcast = Broadcast(
            flight,
            link,
            cancellation,
            BadNetwork(options.loss, options.reorder, options.seed),
            publish_rover=options.publish_rover,
            fresh_sockets=options.fresh_sockets,
            lies=FaultyReports(dict(options.lie)),
        )
        broadcast.run(options.speed, watch.is_to_continue)
    if broadcast:
        print_event(
            f"ended: {flight.world.describe()}; {broadcast.sent} documents sent, "
            f"{broadcast.commands} commands, {broadcast.refused} refused"
        )
    return int(options.until_landed and not watch.has_landed_well)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    return run_program("telemetry", fly, parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line. Exits with a message when it is wrong."""
    parser = ProgramParser(
        "emulate",
        "telemetry",
        "A simulated drone without GPS above a rover with a landing pad.",
        "after --duration",
    )
    link = parser.add_argument_group("link")
    add_word(
        link,
        "--role",
        ("connect", "listen"),
        "connect: send telemetry to the address; listen: wait on it, and reply to the last sender",
    )
    add_address(link, DEFAULT_PORT, "address to send to, or to wait on")
    add_flag(link, "--fresh-sockets", "send each document from a new socket, as some programs do")
    add_bad_network(link)
    link.add_argument("--no-images", dest="images", action="store_false", help="omit the camera's image")
    rover = parser.add_argument_group("rover")
    add_choice(
        rover,
        "--rover",
        RoverPattern.STATIONARY,
        "path, or follow: the position in received rover telemetry",
        dest="pattern",
    )
    add_number(rover, "--rover-speed", 0.5, "m/s")
    add_number(rover, "--rover-amplitude", 2.0, "of the pattern, m")
    add_flag(rover, "--publish-rover", "also send the rover's telemetry")
    drone = parser.add_argument_group("drone")
    add_lies(drone, (*VELOCITY, *ALTITUDE, *HEADING), (LATE, NOISE))
    add_word(drone, "--start", ("air", "ground"), "start position")
    add_number(drone, "--height", 5.0, "height of a start in the air, m")
    drone.add_argument("--wind", type=triple, metavar="'X Y Z'", default=(0.0, 0.0, 0.0), help="m/s (none)")
    add_number(drone, "--gusts", 0.3, "standard deviation, m/s", not_negative)
    run = add_run(parser, seed_of="start, gusts, noise, ground and losses", duration="simulated seconds")
    add_number(run, "--speed", 1.0, "simulated seconds per second")
    until = f"exit with 0 when the drone has stood on the pad for {STAYS_S:g} s after a good landing, else with 1"
    add_flag(run, "--until-landed", until)
    options = parser.parse_args(arguments)
    options.starts_on_ground = options.start == "ground"
    if not options.port and options.role == "connect":
        parser.error("argument --port: must not be 0 with --role connect")
    if not LOWEST_START <= options.height <= HIGHEST_START:
        parser.error(
            f"argument --height: must be from {LOWEST_START:g} to {HIGHEST_START:g}, well above the pad at "
            f"{PAD_HEIGHT + LANDING_GEAR:g}, not {options.height:g}"
        )
    return options


if __name__ == "__main__":
    sys.exit(main())
