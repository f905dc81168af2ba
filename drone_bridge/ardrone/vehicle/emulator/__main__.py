# SPDX-License-Identifier: Apache-2.0
"""Ardrone emulator: a simulated AR.Drone, which listens on the ports of a real one.

    python3 -m drone_bridge.ardrone.vehicle.emulator --trajectory flight.csv

Like the original, it accepts commands of any client, sends navdata to the client that has asked last, and starts
without the settings of any client. It prints one line per change, and the drone's position once per second.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from drone_bridge.ar_drone.flight import COLUMNS, STEP_RATE, ArDroneFlight, FlightPhase
from drone_bridge.ar_drone.video_sender import VideoSender
from drone_bridge.ardrone.codec import CONTROL_PORT, DEFAULT_PORT, NAVDATA_PORT, VIDEO_PORT, State
from drone_bridge.ardrone.codec.configuration import FIRMWARE
from drone_bridge.ardrone.vehicle.device import EmulatedArdrone, FirmwareBehaviour
from drone_bridge.ardrone.vehicle.emulator.ftp import VersionServer
from drone_bridge.net.connector import Cancellation, LinkError
from drone_bridge.net.datagram_link import DatagramPort
from drone_bridge.net.tcp import listening_socket
from drone_bridge.programs.emulation import Emulation
from drone_bridge.programs.missing_package import explain_missing
from drone_bridge.programs.options import (
    ProgramParser,
    add_address,
    add_number,
    add_run,
    not_negative,
    port,
)
from drone_bridge.programs.program import LimitedReports, TrajectoryFile, print_event, run_program
from drone_bridge.wire.addresses import address_name, peer_name

#: Ports of version.txt: the drone's own, and the usual one, where some programs look.
FTP_PORT, USUAL_FTP_PORT = 5551, 21
#: Most clients of the control port at a time.
MAX_READERS = 4


class ControlPort:
    """TCP port that sends the drone's settings to its clients, who ask for them by a command."""

    def __init__(self, host: str, number: int) -> None:
        """Listen. Raises LinkError."""
        self._listening = listening_socket(host, number, backlog=MAX_READERS)
        self._listening.setblocking(False)
        self._readers: list[socket.socket] = []

    def accept(self) -> None:
        """Accept a client that waits. The oldest one has to go for it."""
        with contextlib.suppress(OSError):
            self._readers.append(self._listening.accept()[0])
            self._readers[-1].setblocking(False)
        while len(self._readers) > MAX_READERS:
            self._readers.pop(0).close()

    def send(self, text: bytes) -> None:
        """Send a text to all clients. One that does not read is left."""
        for reader in tuple(self._readers):
            try:
                if reader.send(text) == len(text):
                    continue
            except OSError:
                pass
            self._readers.remove(reader)
            reader.close()

    def close(self) -> None:
        """Close all connections."""
        for each in (*self._readers, self._listening):
            each.close()


class DroneProgram(Emulation):
    """Drone on the network: its ports, and a log of its events."""

    step_s = 1 / (2 * STEP_RATE)

    def __init__(self, drone: EmulatedArdrone, options: argparse.Namespace, stack: contextlib.ExitStack) -> None:
        """Open the ports, which the stack closes. Raises LinkError."""
        self.drone = drone
        self.datagrams = 0
        self.links = self.commands, self._navdata = (
            DatagramPort(options.host, options.port),
            DatagramPort(options.host, options.navdata_port),
        )
        stack.callback(self.commands.close)
        stack.callback(self._navdata.close)
        self._control = ControlPort(options.host, options.control_port) if options.control_port else None
        if self._control:
            stack.callback(self._control.close)
        self._video = open_video(options, stack) if options.video_port else None
        for number in (options.ftp_port, USUAL_FTP_PORT) if options.ftp_port else ():
            with contextlib.suppress(LinkError):  # another emulator has it, or it is reserved
                server = VersionServer(options.host, number, drone.settings[FIRMWARE])
                stack.callback(server.close)
        self._reports, self._client, self._printed = LimitedReports(), "", ""
        self._phase, self._was_steered = drone.flight.phase, False

    def receive(self, link: Any, event: Any, now_s: float) -> None:
        drone = self.drone
        if link is self._navdata:
            drone.ask(event.source, now_s)
            if (name := peer_name(event.source)) != self._client:
                self._client = name
                print_event(f"navdata goes to {name}")
        else:
            self.datagrams += 1
            drone.receive(event.data, now_s)
        self._send(now_s)

    @property
    def time_s(self) -> float:
        return self.drone.flight.time

    def step(self, now_s: float) -> None:
        drone = self.drone
        drone.tick(now_s)
        if self._video:
            self._video.show(drone.flight.view(drone.settings["video:video_channel"] == "1", drone.is_emergency))
        if self._control:
            self._control.accept()
        self._send(now_s)

    def row(self) -> Sequence[float | str]:
        return self.drone.flight.row()

    def changes(self) -> Iterator[str]:
        flight, phase, was_steered = self.drone.flight, self._phase, self._was_steered
        self._phase, self._was_steered = flight.phase, flight.is_steered
        if flight.phase is not phase:
            yield f"{phase.value} -> {flight.phase.value}: {flight.describe()}"
        if flight.is_steered is not was_steered:
            x, y, z = flight.position
            yield f"{'moves' if flight.is_steered else 'stands'} at {x:.2f} {y:.2f} {z:.2f} m"

    def describe(self) -> str:
        return self.drone.flight.describe()

    def _send(self, now_s: float) -> None:
        drone = self.drone
        if due := drone.navdata(now_s):
            data, clients = due
            for client in clients:
                with contextlib.suppress(LinkError):
                    self._navdata.send(data, client)
        if drone.texts_due and self._control:
            self._control.send(drone.configuration())
        drone.texts_due = 0
        while drone.events:
            event = drone.events.pop(0)
            if event.startswith("refused"):  # a client may send any number of these
                self._reports.print(event)
            elif event != self._printed:
                self._printed = event
                print_event(event)


def open_video(options: argparse.Namespace, stack: contextlib.ExitStack) -> VideoSender[Any] | None:
    """Start the camera, which the stack stops; return None without OpenCV. Raises LinkError and OSError."""
    try:
        from drone_bridge.ar_drone.drawn_pictures import DrawnPictures
        from drone_bridge.ardrone.vehicle.emulator import video as of  # the flight itself needs no OpenCV
    except ModuleNotFoundError as error:
        print_event(f"video is disabled: {explain_missing('drone_bridge.ardrone.vehicle.emulator', error)}")
        return None
    host, port_number, seed = options.host, options.video_port, options.seed
    if options.drone == 1:
        video = VideoSender[Any](of.DatagramOutlet(host, port_number), partial(DrawnPictures, seed), print_event)
    else:
        captured = of.CapturedFrames(options.video) if options.video else None
        outlet = of.StreamOutlet(host, port_number)
        video = VideoSender(outlet, lambda: captured or of.DrawnFrames(seed), print_event)
    stack.callback(video.close)
    return video


def serve(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Listen and fly until the end. Raises LinkError and OSError."""
    flight = ArDroneFlight(options.gusts, options.seed)
    drone = EmulatedArdrone(flight, FirmwareBehaviour(version=options.drone), is_bootstrapped=options.bootstrapped)
    if options.in_the_air:
        flight.phase, flight.position[2] = FlightPhase.FLYING, 1.0
    trajectory = TrajectoryFile.wanted(options.trajectory, COLUMNS, stack)
    program = DroneProgram(drone, options, stack)
    signal.signal(signal.SIGUSR1, lambda *_: drone.enter_emergency(State.CUTOUT))
    signal.signal(signal.SIGUSR2, lambda *_: drone.land_itself())
    print_event(f"listening on {address_name(options.host, program.commands.port)}")
    program.run(program.links, options, cancellation, trajectory)
    print_event(f"ended: {flight.describe()}; {program.datagrams} datagrams of commands")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    return run_program("ardrone", serve, parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line. Exits with a message when it is wrong."""
    parser = ProgramParser("emulate", "ardrone", "A simulated AR.Drone 1 or 2.", "after --duration")
    link = parser.add_argument_group("link")
    add_address(link, DEFAULT_PORT)
    numbers = (("navdata", NAVDATA_PORT, "navdata"), ("control", CONTROL_PORT, "settings; 0 for none"))
    for name, number, purpose in numbers:
        link.add_argument(f"--{name}-port", type=port, default=number, help=f"port for {purpose} (%(default)s)")
    link.add_argument("--ftp-port", type=port, default=FTP_PORT, help="port for version.txt; 0 for none (%(default)s)")
    link.add_argument("--video-port", type=port, default=VIDEO_PORT, help="port for video; 0 for none (%(default)s)")
    drone = parser.add_argument_group("drone")
    drone.add_argument("--drone", type=int, choices=(1, 2), default=2, help="its version (%(default)s)")
    drone.add_argument("--bootstrapped", action="store_true", help="it was used since it was switched on")
    drone.add_argument("--in-the-air", action="store_true", help="it flies at the start")
    drone.add_argument(
        "--video", type=Path, metavar="FILE", help="captured video of an AR.Drone 2, sent instead of a drawn one"
    )
    add_number(drone, "--gusts", 0.0, "standard deviation, m/s", not_negative)
    add_run(parser, seed_of="gusts", duration="seconds")
    options = parser.parse_args(arguments)
    if options.video and options.drone == 1:
        parser.error("--video needs --drone 2: an AR.Drone 1 sends other video.")
    return options


if __name__ == "__main__":
    sys.exit(main())
