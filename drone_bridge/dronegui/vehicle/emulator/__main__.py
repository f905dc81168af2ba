# SPDX-License-Identifier: Apache-2.0
"""Dronegui emulator: a simulated drone behind its control GUI, which receives control packets over UDP.

    python3 -m drone_bridge.dronegui.vehicle.emulator --trajectory flight.csv

Like the original, it does not acknowledge packets, accepts any sender, and keeps the last command in force forever.
After a press of reset, the drone's navdata goes to all senders of packets. The GUI's user has more actions: "Stream
Navdata" (SIGUSR1), "Land" (SIGUSR2), switching the drone's cameras (SIGIO), and restarting the GUI while the drone
flies (SIGURG). "Start Video" is chosen from the start unless it is disabled. It prints one line per change, and the
drone's position once per second.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from drone_bridge.ar_drone.cameras import CAMERAS, DOWN, FRONT
from drone_bridge.ar_drone.flight import COLUMNS, STEP_RATE, ArDroneFlight
from drone_bridge.ar_drone.video_sender import VideoSender
from drone_bridge.dronegui.codec import (
    AXES,
    BUTTONS,
    DEFAULT_NAVDATA_PORT,
    DEFAULT_NAVDATA_SOURCE_PORT,
    DEFAULT_PORT,
    DEFAULT_VIDEO_PORT,
    DEFAULT_VIDEO_SOURCE_PORT,
    ControlPacket,
    Controls,
)
from drone_bridge.dronegui.ports import PortWithOutlet, open_outlet
from drone_bridge.dronegui.vehicle.device import Gui, GuiDialect
from drone_bridge.dronegui.vehicle.emulator.navdata import blocks
from drone_bridge.dronegui.vehicle.emulator.video import ControllersOutlet
from drone_bridge.net.connector import Cancellation, LinkError
from drone_bridge.programs.emulation import Emulation
from drone_bridge.programs.missing_package import explain_missing
from drone_bridge.programs.options import (
    ProgramParser,
    add_address,
    add_flag,
    add_number,
    add_run,
    add_word,
    not_negative,
    port,
)
from drone_bridge.programs.program import LimitedReports, TrajectoryFile, print_event, run_program
from drone_bridge.wire.addresses import address_name, peer_name
from drone_bridge.wire.events import RemoteProtocolError


class GuiProgram(Emulation):
    """GUI without a window: it counts packets, and reports its controllers."""

    step_s = 1 / STEP_RATE

    def __init__(
        self,
        flight: ArDroneFlight,
        dialect: GuiDialect,
        link: PortWithOutlet,
        options: argparse.Namespace,
        video: VideoSender[ControllersOutlet] | None,
    ) -> None:
        self.packets = self.late = self.refused = 0
        self._flight = flight
        self._dialect = dialect
        self._link = link
        self._video = video
        #: Whether the video is that of the downward camera.
        self.is_down = options.camera == DOWN.name
        self._gui = self._started()
        self._navdata_number = 0
        self._sender, self._phase = "", flight.phase
        self._reports = LimitedReports()
        self._was_reset = False

    def _started(self) -> Gui:
        return Gui(self._flight, self._dialect, self._link.loopback_host)

    def restart(self, *_: object) -> None:
        """Restart the GUI, as its user can do: all its state is lost."""
        print_event("the GUI was restarted")
        self._flight.steer(Controls())  # as a drone does without commands
        self._dialect = replace(self._dialect, is_bootstrapped=False)
        self._gui, self._was_reset = self._started(), False

    def receive(self, link: Any, event: Any, now_s: float) -> None:
        sender = peer_name(event.source)
        try:
            packet = self._gui.receive(event.data, event.source, self._flight.time)
        except RemoteProtocolError as error:
            self.refused += 1
            self._reports.print(f"refused a packet of {sender}: {error}")
            return
        if not isinstance(packet, ControlPacket):
            self.late += 1
            return
        if sender != self._sender:
            self._reports.print(f"controlled by {sender}")
            self._sender = sender
        self.packets += 1
        if packet.controls.reset and not self._was_reset:
            print_event("reset: the GUI requests navdata from the drone")
        self._was_reset = packet.controls.reset

    def start_navdata(self, *_: object) -> None:
        """Request navdata, by the user's action "Stream Navdata"."""
        self._gui.start_navdata(self._flight.time)
        print_event("Stream Navdata: the GUI requests navdata from the drone")

    def land(self, *_: object) -> None:
        """Land, by the user's action "Land"."""
        print_event("Land: the GUI commands the drone to land")
        self._flight.land()

    def switch_camera(self, *_: object) -> None:
        """Send the pictures of the drone's other camera from now on."""
        if self._video:
            self.is_down = not self.is_down
            print_event(f"video of the {(DOWN if self.is_down else FRONT).name} camera")

    @property
    def time_s(self) -> float:
        return self._flight.time

    def step(self, now_s: float) -> None:
        self._flight.advance(self.step_s)
        self._send_navdata()
        if self._video:
            self._video.outlet.receivers = self._gui.receivers(self._flight.time)
            self._video.show(self._flight.view(self.is_down))

    def row(self) -> Sequence[float | str]:
        return [*self._flight.row(), *(float(getattr(self._gui.controls, key)) for key in (*BUTTONS, *AXES))]

    def changes(self) -> Iterator[str]:
        phase, self._phase = self._phase, self._flight.phase
        if self._phase is not phase:
            yield f"{phase.value} -> {self._phase.value}: {self.describe()}"

    def describe(self) -> str:
        return self._flight.describe()

    def _send_navdata(self) -> None:
        if not self._gui.navdata_is_due(self._flight.time):
            return
        datagrams = [self._gui.navdata(block) for block in blocks(self._flight, self._navdata_number)]
        self._navdata_number += 1
        for datagram in datagrams:
            for address in self._gui.receivers(self._flight.time):
                with contextlib.suppress(LinkError):  # it may be reachable for the next one
                    self._link.send(datagram, address)


# The program.

CSV_COLUMNS = (*COLUMNS, *(f"control_{key}" for key in (*BUTTONS, *AXES)))
SOURCE_PORT = "source port, if it is free; 0 for any"


def open_video(options: argparse.Namespace, stack: contextlib.ExitStack) -> VideoSender[ControllersOutlet] | None:
    """Start the camera, which the stack stops; return None without OpenCV. Raises LinkError."""
    try:
        from drone_bridge.ar_drone.drawn_pictures import DrawnPictures  # the flight itself needs no OpenCV
    except ModuleNotFoundError as error:
        print_event(f"video is disabled: {explain_missing('drone_bridge.dronegui.vehicle.emulator', error)}")
        return None
    outlet, problem = open_outlet(options.host, options.video_source_port, "Video")
    if problem:
        print_event(problem)
    to_controllers = ControllersOutlet(outlet, options.video_port)
    video = VideoSender(to_controllers, partial(DrawnPictures, options.seed), lambda line: None)
    stack.callback(video.close)
    return video


def serve(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Listen and fly until the end. Raises LinkError and OSError."""
    flight = ArDroneFlight(options.gusts, options.seed)
    dialect = GuiDialect(is_bootstrapped=options.bootstrapped, navdata_port=options.navdata_port)
    trajectory = TrajectoryFile.wanted(options.trajectory, CSV_COLUMNS, stack)
    link = PortWithOutlet(options.host, options.port, options.navdata_source_port)
    stack.callback(link.close)
    if link.problem:
        print_event(link.problem)
    video = open_video(options, stack) if options.video and options.video_port else None
    gui = GuiProgram(flight, dialect, link, options, video)
    signal.signal(signal.SIGUSR1, gui.start_navdata)
    signal.signal(signal.SIGUSR2, gui.land)
    signal.signal(signal.SIGIO, gui.switch_camera)
    signal.signal(signal.SIGURG, gui.restart)
    print_event(f"listening on {address_name(options.host, link.port)}")
    gui.run([link], options, cancellation, trajectory)
    print_event(f"ended: {flight.describe()}; {gui.packets} packets, {gui.late} late, {gui.refused} refused")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    return run_program("dronegui", serve, parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line. Exits with a message when it is wrong."""
    parser = ProgramParser("emulate", "dronegui", "A simulated drone behind its control GUI.", "after --duration")
    link = parser.add_argument_group("link")
    add_address(link, DEFAULT_PORT)
    navdata = parser.add_argument_group("navdata: from the GUI to its controllers")
    add_number(navdata, "--navdata-port", DEFAULT_NAVDATA_PORT, "port of the controllers' hosts", port)
    add_number(navdata, "--navdata-source-port", DEFAULT_NAVDATA_SOURCE_PORT, SOURCE_PORT, port)
    add_flag(navdata, "--bootstrapped", "request navdata from the drone at the start")
    video = parser.add_argument_group("video: from the drone's camera, forwarded by the GUI")
    video.add_argument("--no-video", dest="video", action="store_false", help='do not choose "Start Video"')
    add_word(video, "--camera", [each.name for each in CAMERAS], "source of pictures")
    add_number(video, "--video-port", DEFAULT_VIDEO_PORT, "port of the controllers' hosts; 0 disables video", port)
    add_number(video, "--video-source-port", DEFAULT_VIDEO_SOURCE_PORT, SOURCE_PORT, port)
    drone = parser.add_argument_group("drone")
    add_number(drone, "--gusts", 0.0, "standard deviation, m/s", not_negative)
    add_run(parser, seed_of="gusts and ground", duration="seconds")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
