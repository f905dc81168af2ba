# SPDX-License-Identifier: Apache-2.0
"""Telemetry emulator: a drone without GPS above a rover with a landing pad, which broadcasts its telemetry.

    python3 -m drone_bridge.telemetry.vehicle.emulator --rover circular --seed 3 --until-landed

A Broadcast sends telemetry over UDP to its bridge, or with `--role listen` to its last sender, and receives commands. A
Watch decides when the flight ends. The program prints one line per event: its destination, its commander, each
touchdown with its quality, and the final positions.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from drone_bridge.programs.missing_package import explain_missing

try:
    import cv2
except ModuleNotFoundError as error:
    if __name__ != "__main__":  # __name__ is different if the module is imported
        raise
    print(explain_missing("drone_bridge.telemetry.vehicle.emulator", error), file=sys.stderr)
    sys.exit(2)

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkRefusedError
from drone_bridge.net.datagram_link import DatagramPeer, DatagramPort
from drone_bridge.programs.emulation import Emulation
from drone_bridge.programs.options import (
    ProgramParser,
    add_address,
    add_choice,
    add_flag,
    add_number,
    add_run,
    add_word,
    not_negative,
    triple,
)
from drone_bridge.programs.program import LimitedReports, TrajectoryFile, print_event, print_retry, run_program
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
from drone_bridge.telemetry.vehicle.emulator.rover import RoverPattern
from drone_bridge.telemetry.vehicle.emulator.scene import PAD_HEIGHT
from drone_bridge.telemetry.vehicle.emulator.world import (
    COLUMNS,
    LANDING_GEAR,
    FlightSetup,
    LandingFlight,
    LandingPhase,
    Touchdown,
)
from drone_bridge.wire.addresses import address_name, peer_name
from drone_bridge.wire.events import RemoteProtocolError

#: Timeout after which a waiting drone sends nothing more to a silent operator.
SILENT_S = 5.0


#: Time for which a drone must stand after a good touchdown to count as landed; its telemetry reports that within it.
STAYS_S = 1.0


class Watch:
    """Reports a flight's touchdowns and takeoffs, and whether it has landed well."""

    def __init__(self, flight: LandingFlight) -> None:
        self.has_landed_well = False
        self._flight, self._phase = flight, flight.world.phase
        self._touchdown: Touchdown | None = None

    def changes(self) -> Iterator[str]:
        """Yield a line for each change since the last frame."""
        world, touchdown = self._flight.world, self._flight.touchdown
        if world.touchdown and world.touchdown is not self._touchdown:
            yield world.touchdown.describe()
        if world.phase is LandingPhase.FLYING and self._phase is not LandingPhase.FLYING:
            yield f"took off: {world.describe()}"
        self._phase, self._touchdown = world.phase, world.touchdown
        if touchdown and touchdown.is_good and world.time - touchdown.time >= STAYS_S:
            self.has_landed_well = True


class Broadcast(Emulation):
    """Flight with its connection to the receiver of the telemetry, if any."""

    def __init__(
        self, flight: LandingFlight, link: DatagramPeer | DatagramPort, watch: Watch, options: argparse.Namespace
    ) -> None:
        """Prepare to send on an open link."""
        self.step_s = PERIOD_S / options.speed
        self.sent = self.commands = self.refused = 0
        self._flight, self._link, self._watch, self._options = flight, link, watch, options
        self._audience = Audience() if isinstance(link, DatagramPort) else None
        self._connection = DroneConnection()
        self._reports = LimitedReports()
        self._is_heard = True

    @property
    def time_s(self) -> float:
        return round(self._flight.frames * PERIOD_S, 6)

    @property
    def has_ended(self) -> bool:
        return self._watch.has_landed_well and bool(self._options.until_landed)

    def step(self, now_s: float) -> None:
        frame = self._flight.frames
        telemetry = self._flight.advance()
        if self._options.lie:
            telemetry = replace(telemetry, velocity=Vector(0.0, 0.0, 0.0))
        for document in self._documents(frame, telemetry):
            self._send(document)

    def row(self) -> Sequence[float | str]:
        return self._flight.world.row()

    def changes(self) -> Iterator[str]:
        return self._watch.changes()

    def describe(self) -> str:
        return self._flight.world.describe()

    def _documents(self, frame: int, telemetry: DroneTelemetry) -> Iterator[bytes]:
        """Yield the documents to send at the end of this frame."""
        yield self._connection.send(telemetry)
        if self._options.publish_rover and frame % ROVER_EVERY == 0:
            yield RoverConnection().send(self._flight.rover_telemetry())

    def _send(self, document: bytes) -> None:
        """Send to the peer, or to the last operator if there is one."""
        to: Any = self._link.address if isinstance(self._link, DatagramPeer) else None
        if self._audience:
            if dropped := self._audience.drop_silent(elapsed_s(), SILENT_S):
                print_event(f"{peer_name(dropped)} is silent: waiting for the next one")
            to = self._audience.operator
            if to is None:
                return
        try:
            if self._options.fresh_sockets:
                with socket.socket(socket.AF_INET6 if ":" in to[0] else socket.AF_INET, socket.SOCK_DGRAM) as own:
                    own.sendto(document, to)
            else:
                self._link.send(document, to)
        except LinkRefusedError as error:
            self.handle_refusal(str(error))
        self.sent += 1

    def receive(self, link: Any, received: Any, now_s: float) -> None:
        self._is_heard, source = True, received.source
        self._connection.receive_data(received.data)
        try:
            event = self._connection.next_event()
        except RemoteProtocolError as error:
            self.refused += 1
            self._reports.print(f"refused a document from {peer_name(source)}: {error}")
            return
        if self._audience:
            if self._audience.operator is None:
                print_event(f"sending to {peer_name(source)}")
            self._audience.record(source, now_s)
        if isinstance(event, DroneCommand):
            if event.problem:
                self._reports.print(f"clamped a command of {peer_name(source)}: {event.problem}")
            self._flight.follow_command(event)
            if not self.commands:
                print_event(f"commanded from {peer_name(source)}")
            self.commands += 1
        elif isinstance(event, RoverTelemetry):
            self._flight.move_rover(event)

    def handle_refusal(self, sentence: str) -> None:
        """Report once that the peer's port is closed, until it opens."""
        if self._is_heard:
            print_event(sentence)
        self._is_heard = False


# The program.

LOWEST_START = 1.0  # m
HIGHEST_START = 50.0


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
    watch, broadcast = Watch(flight), None
    with contextlib.suppress(LinkCancelledError):
        link.open()
        if isinstance(link, DatagramPeer):
            print_event(f"sending to {link.peer}")
        else:
            print_event(f"waiting for an operator on {address_name(options.host, link.port)}")
        broadcast = Broadcast(flight, link, watch, options)
        broadcast.run([link], options, cancellation, trajectory)
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
        "emulate", "telemetry", "A simulated drone without GPS above a rover with a landing pad.", "after --duration"
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
    drone.add_argument("--lie", choices=("velocity-zero",), help="report a wrong measurement (none)")
    add_word(drone, "--start", ("air", "ground"), "start position")
    add_number(drone, "--height", 5.0, "height of a start in the air, m")
    drone.add_argument("--wind", type=triple, metavar="'X Y Z'", default=(0.0, 0.0, 0.0), help="m/s (none)")
    add_number(drone, "--gusts", 0.3, "standard deviation, m/s", not_negative)
    run = add_run(parser, seed_of="start, gusts, noise and ground", duration="simulated seconds")
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
