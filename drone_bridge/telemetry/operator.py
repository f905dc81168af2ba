# SPDX-License-Identifier: Apache-2.0
"""A program that answers a drone's telemetry with commands, following a plan.

    drone-bridge operate telemetry --plan '2s up 0.3, 4s forward 0.5'

It waits for telemetry on its port, and sends each command to where that comes from. With `--role connect` it sends
first, to a drone that waits to be called.
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
from drone_bridge.programs.operator import FAREWELLS, Operator
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.options import positive
from drone_bridge.programs.plan import Leg
from drone_bridge.programs.program import print_event, print_retry, run_program
from drone_bridge.telemetry.codec import (
    DEFAULT_PORT,
    MAX_THRUST,
    MAX_TILT,
    ControllerConnection,
    DroneCommand,
    DroneTelemetry,
    RoverTelemetry,
)
from drone_bridge.telemetry.device import call_gaps
from drone_bridge.wire.addresses import address_name, peer_name, same_host
from drone_bridge.wire.events import RemoteProtocolError

HOVER = DroneCommand()


def command_for(leg: Leg, options: argparse.Namespace) -> DroneCommand:
    """Return a leg as a command."""

    def share(value: float, full: float, most: float) -> float:
        return most * max(-1.0, min(1.0, value / full))

    return DroneCommand(
        thrust=share(leg.up, options.full_climb, MAX_THRUST),
        pitch=share(leg.forward, options.full_speed, MAX_TILT),
        roll=share(0.0 - leg.left, options.full_speed, MAX_TILT),
        yaw=share(leg.turn, options.full_turn, MAX_TILT),
    )


def described(telemetry: DroneTelemetry) -> str:
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
    """Seconds since the first telemetry: the drone's own, where it sends a timestamp, else those of the wall clock."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0
        self._last: tuple[float, float | None] | None = None  # of the wall, and of the drone

    def update(self, wall_s: float, timestamp_s: float | None) -> None:
        """Note telemetry. A timestamp that runs back, or was missing before, gives no time; the wall clock does."""
        if self._last:
            before_s, before_stamp_s = self._last
            has_stamps = timestamp_s is not None and before_stamp_s is not None
            passed_s = timestamp_s - before_stamp_s if has_stamps else -1.0  # type: ignore[operator]
            self.elapsed_s += passed_s if passed_s >= 0 else wall_s - before_s
        self._last = wall_s, timestamp_s


class Pilot(Operator):
    """Answers each telemetry by a command, from the first one on."""

    def __init__(
        self, link: DatagramPort | DatagramCaller, options: argparse.Namespace, cancellation: Cancellation
    ) -> None:
        super().__init__(options.plan, cancellation)
        self._link, self._options = link, options
        self._protocol = ControllerConnection()
        # Where commands go: to the drone that is called, else where telemetry has come from last.
        self._called: Any = link.address if isinstance(link, DatagramCaller) else None
        self._drone: Any = self._called
        self._clock = PlanClock()
        self._documents = self._images = 0

    @property
    def elapsed_s(self) -> float:
        return self._clock.elapsed_s

    def prepare(self) -> None:
        """Wait for the first telemetry, if need be of a drone that is called."""
        if self._called:
            print_event(f"calls {peer_name(self._called)}")
            self._send(HOVER)
        self.next_turn()

    def next_turn(self) -> None:
        """Wait for telemetry, calling a drone that waits to be called."""
        answered, gaps = self._documents, call_gaps()
        while not self.wait(next(gaps) if self._called else math.inf, lambda: self._documents > answered):
            self._send(HOVER)

    def steer(self, leg: Leg) -> str:
        command = command_for(leg, self._options)
        self._send(command)
        return f"thrust {command.thrust:g}, pitch {command.pitch:g}, roll {command.roll:g}, yaw {command.yaw:g}"

    def leave(self) -> None:
        print_event(f"leaves, hovering: {self._documents} documents, {self._images} images")
        with contextlib.suppress(LinkError):
            for _ in range(FAREWELLS if self._drone else 0):
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
            print_event(f"received something invalid: {error}")
            return
        if isinstance(event, DroneTelemetry):
            self._take(event, datagram.source)
        elif isinstance(event, RoverTelemetry) and not self._documents % 25:
            print_event(f"rover at {event.position.x:.2f} {event.position.y:.2f} m")

    def _take(self, telemetry: DroneTelemetry, source: Any) -> None:
        if not self._documents:
            print_event(f"receives a drone at {peer_name(source)}")
            if telemetry.timestamp is not None:
                print_event("the plan's seconds are those of the drone's timestamps")
        self._clock.update(self.now_s(), telemetry.timestamp)
        self._drone = self._called or source
        self._documents += 1
        self._images += telemetry.camera.jpeg is not None
        if self.is_report_due():
            print_event(f"receives {described(telemetry)}")

    def _send(self, command: DroneCommand) -> None:
        """Send to the drone. Raises LinkError."""
        try:
            self._link.send(self._protocol.send(command), self._drone)
        except LinkRefusedError as error:  # about an earlier one
            self.refused(error)


def operate(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Fly until the plan is over, and leave the drone hovering in any case. Raises LinkError."""
    link: DatagramPort | DatagramCaller
    if options.role == "connect":
        link = DatagramCaller(options.host, options.port, print_retry, cancellation=cancellation)
    else:
        link = DatagramPort(options.host, options.port)
        print_event(f"waits for telemetry on {address_name(options.host, link.port)}")
    stack.callback(link.close)
    try:
        link.open()
    except LinkCancelledError:
        return 0
    Pilot(link, options, cancellation).run()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = OperatorParser(
        "telemetry",
        "A program that answers a drone's telemetry with commands, and follows a plan.",
        DEFAULT_PORT,
        "our own side, where telemetry comes; with --role connect, the drone",
    )
    parser.link.add_argument(
        "--role",
        choices=("listen", "connect"),
        default="listen",
        help="listen: wait for telemetry; connect: send first, to a drone that waits (%(default)s)",
    )
    drone = parser.add_argument_group("drone: what its commands mean")
    drone.add_argument("--full-speed", type=positive, default=1.0, help="at full pitch or roll, m/s (%(default)s)")
    drone.add_argument("--full-climb", type=positive, default=1.0, help="at full thrust, m/s (%(default)s)")
    drone.add_argument("--full-turn", type=positive, default=1.0, help="at full yaw, rad/s (%(default)s)")
    return run_program("telemetry operator", operate, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
