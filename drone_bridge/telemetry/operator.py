# SPDX-License-Identifier: Apache-2.0
"""Telemetry operator: replies to a drone's telemetry with commands, following a plan.

    drone-bridge operate telemetry --plan '2s up 0.3, 4s forward 0.5'

It waits for telemetry on its port, and sends each command to the sender. With `--role connect` it sends first, to a
waiting drone.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from collections.abc import Sequence
from typing import Any

from drone_bridge.net.blocking import receive
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError, LinkRefusedError
from drone_bridge.net.datagram_link import DatagramCaller, DatagramPort
from drone_bridge.programs.operator import LAST_PACKET_COPIES, Operator
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.options import positive
from drone_bridge.programs.plan import Leg
from drone_bridge.programs.program import print_event, print_retry, run_program
from drone_bridge.telemetry.codec import (
    DEFAULT_PORT,
    ControllerConnection,
    DroneCommand,
    DroneTelemetry,
    RoverTelemetry,
)
from drone_bridge.telemetry.device import call_gaps
from drone_bridge.telemetry.units import Units
from drone_bridge.wire.addresses import address_name, peer_name, same_host
from drone_bridge.wire.events import RemoteProtocolError

HOVER = DroneCommand()


def command_for(leg: Leg, options: argparse.Namespace) -> DroneCommand:
    """Convert a leg to a command."""
    return Units().command(leg.shares(options.full_speed, options.full_climb, options.full_turn))


def telemetry_text(telemetry: DroneTelemetry) -> str:
    """Return telemetry as text, in m, m/s and degrees."""
    x, y, z = telemetry.velocity
    pad = telemetry.landing_pad
    parts = [
        f"height {telemetry.altimeter.altitude:.2f} m",
        f"velocity {x:.2f} {y:.2f} {z:.2f} m/s",
        f"heading {math.degrees(telemetry.imu.orientation.yaw):.0f} degrees",
        f"pad {pad.relative_x:.2f} {pad.relative_y:.2f} m away" if pad else "no pad in sight",
    ]
    return ", ".join([*parts, "landed"] if telemetry.landed else parts)


class PlanClock:
    """Seconds since the first telemetry, by the drone's timestamps if available, else by the wall clock."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0
        self._last: tuple[float, float | None] | None = None  # times of the wall clock and of the drone

    def update(self, wall_s: float, timestamp_s: float | None) -> None:
        """Record telemetry. The wall clock is used if a timestamp decreases, or was missing before."""
        if self._last:
            before_s, before_stamp_s = self._last
            has_stamps = timestamp_s is not None and before_stamp_s is not None
            passed_s = timestamp_s - before_stamp_s if has_stamps else -1.0  # type: ignore[operator]
            self.elapsed_s += passed_s if passed_s >= 0 else wall_s - before_s
        self._last = wall_s, timestamp_s


class LandingPilot(Operator):
    """Replies to each telemetry document with a command, from the first one on."""

    def __init__(
        self, link: DatagramPort | DatagramCaller, options: argparse.Namespace, cancellation: Cancellation
    ) -> None:
        super().__init__(options.plan, cancellation)
        self._link, self._options = link, options
        self._protocol = ControllerConnection()
        # Destination of commands: the called drone, else the last sender of telemetry.
        self._called: Any = link.address if isinstance(link, DatagramCaller) else None
        self._drone: Any = self._called
        self._clock = PlanClock()
        self._documents = self._images = 0

    @property
    def elapsed_s(self) -> float:
        return self._clock.elapsed_s

    def prepare(self) -> None:
        """Wait for the first telemetry, after calling a waiting drone if necessary."""
        if self._called:
            print_event(f"calls {peer_name(self._called)}")
            self._send(HOVER)
        self.next_turn()

    def next_turn(self) -> None:
        """Wait for telemetry, and call a waiting drone."""
        answered, gaps = self._documents, call_gaps()
        while not self.wait(next(gaps) if self._called else math.inf, lambda: self._documents > answered):
            self._send(HOVER)

    def steer(self, leg: Leg) -> str:
        command = command_for(leg, self._options)
        self._send(command)
        return f"thrust {command.thrust:g}, pitch {command.pitch:g}, roll {command.roll:g}, yaw {command.yaw:g}"

    def leave(self) -> None:
        print_event(f"leaving the drone in hover: {self._documents} documents, {self._images} images")
        with contextlib.suppress(LinkError):
            for _ in range(LAST_PACKET_COPIES if self._drone else 0):
                self._send(HOVER)

    def listen(self, timeout_s: float) -> None:
        try:
            datagram = receive(self._link, self.cancellation, timeout_s)
        except LinkRefusedError as error:
            self.refused(error)
            return
        if self._called and not same_host(datagram.source, self._called):
            return
        self._protocol.receive_data(datagram.data)
        try:
            event = self._protocol.next_event()
        except RemoteProtocolError as error:
            print_event(f"refused a document: {error}")
            return
        if isinstance(event, DroneTelemetry):
            self._handle(event, datagram.source)
        elif isinstance(event, RoverTelemetry) and not self._documents % 25:
            print_event(f"rover at {event.position.x:.2f} {event.position.y:.2f} m")

    def _handle(self, telemetry: DroneTelemetry, source: Any) -> None:
        if not self._documents:
            print_event(f"receiving telemetry from {peer_name(source)}")
            if telemetry.timestamp is not None:
                print_event("the plan's clock is the drone's timestamp")
        self._clock.update(self.now_s(), telemetry.timestamp)
        self._drone = self._called or source
        self._documents += 1
        self._images += telemetry.camera.jpeg is not None
        if self.is_report_due():
            print_event(f"receives {telemetry_text(telemetry)}")

    def _send(self, command: DroneCommand) -> None:
        """Send to the drone. Raises LinkError."""
        try:
            self._link.send(self._protocol.send(command), self._drone)
        except LinkRefusedError as error:  # refers to an earlier datagram
            self.refused(error)


def operate(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Fly until the plan is complete, and always leave the drone in hover. Raises LinkError."""
    link: DatagramPort | DatagramCaller
    if options.role == "connect":
        link = DatagramCaller(options.host, options.port, print_retry, cancellation=cancellation)
    else:
        link = DatagramPort(options.host, options.port)
        print_event(f"waiting for telemetry on {address_name(options.host, link.port)}")
    stack.callback(link.close)
    try:
        link.open()
    except LinkCancelledError:
        return 0
    LandingPilot(link, options, cancellation).run()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = OperatorParser(
        "telemetry",
        "A program that replies to a drone's telemetry with commands, following a plan.",
        DEFAULT_PORT,
        "this end; with --role connect, of the drone",
    )
    parser.link.add_argument(
        "--role",
        choices=("listen", "connect"),
        default="listen",
        help="listen: wait for telemetry; connect: send first, to a waiting drone (%(default)s)",
    )
    drone = parser.add_argument_group("drone: scale of its commands")
    drone.add_argument("--full-speed", type=positive, default=1.0, help="speed at full tilt, m/s (%(default)s)")
    drone.add_argument("--full-climb", type=positive, default=1.0, help="climb rate at full thrust, m/s (%(default)s)")
    drone.add_argument("--full-turn", type=positive, default=1.0, help="turn rate at full yaw, rad/s (%(default)s)")
    return run_program("telemetry operator", operate, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
