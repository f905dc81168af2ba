# SPDX-License-Identifier: Apache-2.0
"""ScriptedDriver: operator that finds a tracked robot, binds its skid steer, follows a plan, and unbinds it.

    python3 -m drone_bridge.robot.operator --name saber --plan '2s forward 0.4, 1s turn 0.8'

It behaves like the original drivers: ten keep-alives per second, updates when the speeds change, a stop before it
unbinds. It prints a line for each command and for each message of the robot.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from collections.abc import Callable, Sequence

from drone_bridge.net.clock import elapsed_s, time_of_day_ms
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.programs.one_stream import OneStream
from drone_bridge.programs.operator import Operator
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.options import port, positive
from drone_bridge.programs.plan import Leg, Plan
from drone_bridge.programs.program import print_event, print_retry, run_program
from drone_bridge.robot import codec
from drone_bridge.robot.discovery import DiscoveredPeer, DiscoveryRoute
from drone_bridge.wire.printable import printable

KEEP_ALIVE_PERIOD_S = 0.1
BIND_PERIOD_S = 1.0  # between attempts to bind a subsystem of another driver
DISCOVERY_TIMEOUT_S = 1.0
DRIVER_NAME = "operator"
ENDED_BY_ROBOT = 1  # exit status
#: Unit, and the wire's value of one unit, by type of sensor.
_UNITS = {
    codec.SensorType.BATTERY: ("V", 1000),
    codec.SensorType.THERMOMETER: ("degrees C", 100),
    codec.SensorType.AMMETER: ("A", 1000),
    codec.SensorType.MOTOR_PWM: ("of full speed", codec.FULL_SPEED),
}


def speeds(leg: Leg, wheel_separation: float, max_wheel_speed: float) -> tuple[int, int]:
    """Return a leg as the speeds of the left and right side on the wire. The right side is faster in a left turn.

    Excess speed is reduced on both sides alike. Motion to the left or up, which tracks can't follow, is omitted.
    """
    sides = [leg.forward + sign * leg.turn * wheel_separation / 2 for sign in (-1, 1)]
    unit = codec.FULL_SPEED / max(max_wheel_speed, *map(abs, sides))
    left, right = (round(side * unit) for side in sides)
    return left, right


class ScriptedDriver(Operator):
    """Driver on one connection."""

    period_s = KEEP_ALIVE_PERIOD_S

    def __init__(
        self,
        stream: OneStream,
        plan: Plan,
        to_speeds: Callable[[Leg], tuple[int, int]],
        cancellation: Cancellation,
        clock: Callable[[], float] = elapsed_s,
    ) -> None:
        super().__init__(plan, cancellation, clock)
        self._stream, self._to_speeds = stream, to_speeds
        self._connection = codec.DriverConnection()
        self._drive: int | None = None  # number of the bound subsystem
        self._lacks_drive = False
        self._sensors = codec.SensorInfo(())
        self._is_bound = False
        self._speeds: tuple[int, int] | None = None  # sent last
        self._bind_s = -math.inf  # time of the next attempt to bind

    def prepare(self) -> None:
        """Register, and bind the first skid steer. Raises LinkError."""
        self._send(codec.RegisterDriver(DRIVER_NAME), codec.QuerySubsystems())
        self.hold(self._bind, math.inf, until=lambda: self._is_bound or self._lacks_drive)

    def follow(self) -> None:
        if not self._lacks_drive:
            super().follow()

    def steer(self, leg: Leg) -> str:
        """Send a keep-alive, and the speeds if they have changed. Bind again after a loss."""
        left, right = speeds = self._to_speeds(leg)
        self._bind()
        if self._drive is not None and self._is_bound and speeds != self._speeds:
            self._speeds = speeds
            self._send(codec.SkidSteerUpdate(self._drive, left, right))
        return f"driving {left} {right}"

    def _bind(self) -> None:
        """Send a keep-alive, and a bind request if one is due."""
        self._send(codec.KeepAlive(time_of_day_ms()))
        if self._drive is not None and not self._is_bound and (now_s := self.now_s()) >= self._bind_s:
            self._bind_s = now_s + BIND_PERIOD_S
            self._send(codec.BindSubsystem(self._drive))

    def leave(self) -> None:
        """Stop and unbind."""
        packets: list[codec.FromDriver] = []
        if self._drive is not None and self._is_bound:
            print_event(f"stopping, unbinding subsystem {self._drive}")
            packets = [codec.SkidSteerUpdate(self._drive, 0, 0), codec.UnbindSubsystem(self._drive)]
        with contextlib.suppress(LinkError):  # a lost connection is reported by its own error
            self._stream.leave(*codec.in_pieces(map(self._connection.send, packets)))

    def listen(self, timeout_s: float) -> None:
        data = self._stream.receive(timeout_s)
        self._connection.receive_data(data) if data else self._connection.receive_eof()
        while (event := self._connection.next_event()) is not codec.NEED_DATA:
            if isinstance(event, codec.ConnectionClosed):
                raise LinkError("The robot closed the connection.")
            self._handle(event)

    def _send(self, *packets: codec.FromDriver) -> None:
        self._stream.send(*codec.in_pieces(map(self._connection.send, packets)))

    def _handle(self, packet: codec.FromRobot) -> None:
        if sentence := self._description(packet):
            print_event(sentence)
        if isinstance(packet, codec.SubsystemInfo):
            self._choose(packet)
        elif isinstance(packet, codec.SensorInfo):
            self._sensors = packet
        elif isinstance(packet, codec.BindSuccess):
            self._is_bound = self._is_bound or packet.id == self._drive
        elif isinstance(packet, codec.SubsystemBound) and packet.id == self._drive and packet.driver != DRIVER_NAME:
            if self._is_bound:
                print_event(f"lost subsystem {packet.id}")
            self._is_bound, self._speeds = False, None

    def _description(self, packet: codec.FromRobot) -> str | None:
        """Return a packet as text for people."""
        if isinstance(packet, codec.SensorInfo):
            return f"sensors: {', '.join(printable(sensor.name) for sensor in packet.sensors) or 'none'}"
        if isinstance(packet, codec.SensorUpdate):
            return ", ".join(self._reading(reading.sensor, reading.value) for reading in packet.readings)
        if isinstance(packet, codec.FirmwareInfo):
            return f"firmware: {printable(packet.type)} {printable(packet.version)}"
        if isinstance(packet, codec.LogMessage):
            return f"robot log: {printable(packet.text)}"
        if isinstance(packet, codec.BindSuccess):
            return f"bound subsystem {packet.id}"
        return f"refused subsystem {packet.id}" if isinstance(packet, codec.BindFailure) else None

    def _choose(self, info: codec.SubsystemInfo) -> None:
        listed = [f"{printable(s.name)}{f' (of {printable(s.driver)})' if s.driver else ''}" for s in info.subsystems]
        print_event(f"subsystems: {', '.join(listed) or 'none'}")
        drives = [number for number, s in enumerate(info.subsystems) if s.type == codec.SubsystemType.SKID_STEER]
        self._drive, self._lacks_drive = drives[0] if drives else None, not drives

    def _reading(self, number: int, value: int) -> str:
        sensors = self._sensors.sensors
        if number >= len(sensors) or sensors[number].type not in _UNITS:
            return f"sensor {number}: {value}"
        unit, one = _UNITS[codec.SensorType(sensors[number].type)]
        return f"{printable(sensors[number].name)}: {value / one:g} {unit}"


def drive(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Drive until the plan ends. Retry while nothing can be bound, since the robot may not be ready."""

    def to_speeds(leg: Leg) -> tuple[int, int]:
        return speeds(leg, options.wheel_separation, options.max_wheel_speed)

    link = _link(options, cancellation)
    stack.callback(link.close)
    stream = OneStream(link, cancellation)
    with contextlib.suppress(LinkCancelledError):
        while True:
            stream.open()
            print_event(f"connected to {stream.peer}")
            driver = ScriptedDriver(stream, options.plan, to_speeds, cancellation)
            try:
                driver.run()
                return 0
            except LinkError as error:
                print_event(str(error))
            if driver.has_begun:
                return ENDED_BY_ROBOT
    return 0


def _link(options: argparse.Namespace, cancellation: Cancellation) -> TcpPeer:
    if not options.name:
        return TcpPeer(options.host, options.port, print_retry, cancellation=cancellation)
    route = DiscoveryRoute(codec.DISCOVERY_GROUP, options.discovery_port, options.discovery_interface)
    return DiscoveredPeer(
        options.name,
        options.port,
        print_retry,
        route=route,
        timeout_s=DISCOVERY_TIMEOUT_S,
        cancellation=cancellation,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Return its exit status: 1 if the robot closed the connection."""
    return run_program("robot", drive, parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line. Exits with a message on errors."""
    parser = OperatorParser("robot", "A scripted driver of tracked robots.", codec.TCP_PORT, "the robot")
    parser.link.add_argument("--name", default="", help="find the robot of this name by discovery, instead of --host")
    parser.link.add_argument("--discovery-port", type=port, default=codec.DISCOVERY_PORT, help="(%(default)s)")
    parser.link.add_argument(
        "--discovery-interface", default="127.0.0.1", help="its address; 0.0.0.0: chosen by the system (%(default)s)"
    )
    robot = parser.add_argument_group("robot")
    robot.add_argument("--wheel-separation", type=positive, default=0.5, help="m (%(default)s)")
    robot.add_argument("--max-wheel-speed", type=positive, default=1.0, help="speed at 2048, m/s (%(default)s)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
