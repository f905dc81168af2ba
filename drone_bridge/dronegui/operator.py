# SPDX-License-Identifier: Apache-2.0
"""Dronegui operator: a client of the control GUI that follows a plan. It takes off, flies, lands, and reports navdata.

    drone-bridge operate dronegui --plan '4s forward 0.5, 3s turn 0.5'

Like other clients, it holds a button for half a second, and sends the complete state every 50 ms. It waits for navdata
before it presses a button: without navdata the drone may be flying, and reset, which makes the GUI request navdata,
would stop its motors. With --landed, the user confirms that the drone is on the ground.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from drone_bridge.dronegui import units
from drone_bridge.dronegui.codec import (
    AXES,
    DEFAULT_NAVDATA_PORT,
    DEFAULT_PORT,
    DEFAULT_VIDEO_PORT,
    ControllerConnection,
    Controls,
    Demo,
    FlightState,
    VisionDetect,
)
from drone_bridge.net.blocking import receive
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError, LinkRefusedError
from drone_bridge.net.datagram_link import DatagramPeer, DatagramPort
from drone_bridge.programs.operator import LAST_PACKET_COPIES, Operator
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.options import not_negative, port, positive
from drone_bridge.programs.plan import Leg
from drone_bridge.programs.program import LimitedReports, print_event, print_retry, run_program
from drone_bridge.vision.uvlc import decode
from drone_bridge.wire.events import RemoteProtocolError

SEND_PERIOD_S = 0.05
PRESS_S = 0.5
#: Timeout of a state in navdata.
NAVDATA_PATIENCE_S = 3.0
ATTEMPTS = 6
TAKE_OFF_PATIENCE_S = 8.0
LANDING_PATIENCE_S = 15.0

HOVER = Controls()
IN_THE_AIR = frozenset({FlightState.FLYING, FlightState.HOVERING})


class DroneGuiClient(Operator):
    """Sends states and receives navdata."""

    period_s = SEND_PERIOD_S

    def __init__(
        self,
        gui: DatagramPeer,
        navdata: DatagramPort | None,
        video: DatagramPort | None,
        options: argparse.Namespace,
        cancellation: Cancellation,
    ) -> None:
        super().__init__(options.plan, cancellation)
        self._video = video
        self._has_picture = False
        self._rejected_video = LimitedReports()
        self.demo: Demo | None = None  # newest navdata
        self._gui, self._navdata, self._options = gui, navdata, options
        self._protocol = ControllerConnection()
        self._is_heard = True

    @property
    def state(self) -> FlightState | None:
        """Last flight state in navdata."""
        return self.demo.flight_state if self.demo else None

    def prepare(self) -> None:
        """Wait for the GUI, and take off once navdata arrives, unless the drone flies by the options.

        Raises ValueError if the drone may be flying, so that a press might stop or land it.
        """
        self._wait_for_gui()
        if self._options.in_the_air:
            return
        for _ in range(ATTEMPTS):  # the drone behind the GUI may be starting, too
            if self._hover(NAVDATA_PATIENCE_S, until=lambda: self.demo is not None):
                break
            if self._options.landed:
                self._press("reset")
        else:
            if not self._options.landed:
                raise ValueError(
                    "No navdata arrives, so the drone may be flying, and reset or take_off could bring it down. Choose "
                    '"Stream Navdata" in the GUI. Or, if you see the drone on the ground, start again with --landed.'
                )
            print_event("no navdata received")
        if self.state is not None and self.state.is_airborne:
            raise ValueError("The drone is already flying: take_off would land it. Use --in-the-air.")
        self._press("take_off")
        self._hover(TAKE_OFF_PATIENCE_S, until=lambda: self.state in IN_THE_AIR)

    def steer(self, leg: Leg) -> str:
        controls = controls_for(leg, self._options)
        self._send(controls)
        return ", ".join(f"{axis} {value:g}" for axis in AXES if (value := getattr(controls, axis))) or "hover"

    def finish(self) -> None:
        self._hover(self._options.pause)
        if not self._options.in_the_air and self.state is not FlightState.LANDED:
            self._press("take_off")  # which lands
            self._hover(LANDING_PATIENCE_S, until=lambda: self.state is FlightState.LANDED)

    def leave(self) -> None:
        for _ in range(LAST_PACKET_COPIES):
            self._send(HOVER)
        print_event("leaving the drone in hover" if self.state is not FlightState.LANDED else "the drone has landed")

    def listen(self, timeout_s: float) -> None:
        self._report_video()
        if self._navdata is None:
            if self.cancellation.wait(timeout_s):
                raise LinkCancelledError("Waiting was cancelled.")
            return
        self._protocol.receive_data(receive(self._navdata, self.cancellation, timeout_s).data)
        try:
            block = self._protocol.next_event()
        except RemoteProtocolError as error:
            print_event(f"refused a datagram: {error}")
            return
        if isinstance(block, VisionDetect) and block.features:
            print_event(f"{len(block.features)} features detected")
        if isinstance(block, Demo):
            is_news = self.demo is None or block.flight_state is not self.state
            self.demo = block
            if self.is_report_due() or is_news:
                print_event(f"received {navdata_text(block)}")

    def _report_video(self) -> None:
        """Report the first picture of the video, and read no later ones."""
        if self._has_picture or not self._video or not (received := self._video.receive()):
            return
        try:
            picture = decode(received.data)
        except RemoteProtocolError as error:
            self._rejected_video.print(f"received invalid video: {error}")
            return
        self._has_picture = True
        print_event(f"receiving video of {picture.width} x {picture.height} pixels")

    def _send(self, controls: Controls) -> None:
        """Send a state, and record whether the port is open."""
        try:
            self._gui.send(self._protocol.send(controls), None)
        except LinkRefusedError as error:
            self.refused(error)
            self._is_heard = False

    def _hover(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        return self.hold(lambda: self._send(HOVER), seconds, until)

    def _wait_for_gui(self) -> None:
        """Send hover until the GUI's port is open."""
        self._send(HOVER)
        self._hover(SEND_PERIOD_S)
        while not self._is_heard:
            self._is_heard = True
            self._hover(4 * SEND_PERIOD_S)

    def _press(self, button: str) -> None:
        """Press and release a button, held as long as by other clients."""
        print_event(f"pressing {button}")
        pressed: dict[str, Any] = {button: True}
        self.hold(lambda: self._send(replace(HOVER, **pressed)), PRESS_S)
        self._send(HOVER)


def navdata_text(demo: Demo) -> str:
    """Return navdata as text, in m, m/s, degrees and percent, without missing values."""
    state = demo.flight_state
    parts = [state.name.lower().replace("_", " ") if state is not None else "no state"]
    for name, value, scale, unit in (
        ("height", demo.altitude, 1e-3, " m"),
        ("forward", demo.vx, 1e-3, " m/s"),
        ("right", demo.vy, 1e-3, " m/s"),
        ("heading", demo.psi, 1e-3, " degrees"),
        ("battery", demo.vbat_flying_percentage, 1.0, " %"),
    ):
        if value is not None:
            parts.append(f"{name} {value * scale:.2f}{unit}")
    return ", ".join(parts)


def controls_for(leg: Leg, options: argparse.Namespace) -> Controls:
    """Convert a leg to controls; hover at rest."""
    if not (leg.forward or leg.left or leg.up or leg.turn):
        return HOVER
    return units.controls(leg.shares(options.full_speed, options.full_climb, options.full_turn))


def open_video(host: str, port: int, stack: contextlib.ExitStack) -> DatagramPort | None:
    """Return the port for video, closed by the stack; None for port 0, or if another program uses it."""
    try:
        video = DatagramPort(host, port) if port else None
    except LinkError as error:
        print_event(f"{error} Video is not received.")
        return None
    if video:
        stack.callback(video.close)
    return video


def operate(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Fly until the plan is complete, and always leave the drone hovering. Raises LinkError and ValueError."""
    gui = DatagramPeer(options.host, options.port, print_retry, cancellation=cancellation)
    stack.callback(gui.close)
    with contextlib.suppress(LinkCancelledError):
        gui.open()
        navdata = None
        if options.navdata_port:
            navdata = DatagramPort(gui.own_host, options.navdata_port)
            stack.callback(navdata.close)
        video = open_video(gui.own_host, options.video_port, stack)
        print_event(f"sending to {gui.peer}")
        DroneGuiClient(gui, navdata, video, options, cancellation).run()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = OperatorParser(
        "dronegui", "A client of an AR.Drone's control GUI that follows a plan.", DEFAULT_PORT, "the GUI"
    )
    parser.link.add_argument(
        "--navdata-port",
        type=port,
        default=DEFAULT_NAVDATA_PORT,
        help="local port for navdata, 0 to disable (%(default)s)",
    )
    parser.link.add_argument(
        "--video-port", type=port, default=DEFAULT_VIDEO_PORT, help="local port for video, 0 to disable (%(default)s)"
    )
    drone = parser.add_argument_group("drone: its configuration")
    drone.add_argument("--full-speed", type=positive, default=5.0, help="speed at full tilt, m/s (%(default)s)")
    drone.add_argument("--full-climb", type=positive, default=0.7, help="climb rate at full gas, m/s (%(default)s)")
    drone.add_argument("--full-turn", type=positive, default=1.745, help="turn rate at full yaw, rad/s (%(default)s)")
    drone.add_argument(
        "--landed", action="store_true", help="the drone is on the ground: press reset if no navdata arrives"
    )
    drone.add_argument("--in-the-air", action="store_true", help="do not press any button: no take-off, no landing")
    drone.add_argument("--pause", type=not_negative, default=2.0, help="hover time before landing, s (%(default)s)")
    return run_program("dronegui operator", operate, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
