# SPDX-License-Identifier: Apache-2.0
"""A scripted driver of tracked robots: finds one, binds its drive, follows a plan, unbinds it.

    python3 -m drone_bridge.robot.operator --name saber --plan '2s forward 0.4, 1s turn 0.8'

It speaks as the drivers of old do: keep-alives ten times per second, updates when the speeds change, stop before
unbinding. It reports on standard output, a line for what it commands and for what the robot says.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Sequence

from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError, LinkTimeoutError
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.programs.one_stream import OneStream
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.options import port, positive
from drone_bridge.programs.plan import REST, Leg, Plan
from drone_bridge.programs.program import print_event, print_retry, run_program
from drone_bridge.robot import codec
from drone_bridge.robot.discovery import DiscoveredPeer, DiscoveryRoute
from drone_bridge.wire.printable import printable

KEEP_ALIVE_PERIOD_S = 0.1
STEP_S = 0.02  # how late a leg begins at most
BIND_PERIOD_S = 1.0  # between attempts to bind what another driver has
DISCOVERY_TIMEOUT_S = 1.0
DRIVER_NAME = "operator"
ENDED_BY_ROBOT = 1  # the exit code
#: Unit and what one of it is on the wire, by type of sensor.
_UNITS = {
    codec.SensorType.BATTERY: ("V", 1000),
    codec.SensorType.THERMOMETER: ("degrees C", 100),
    codec.SensorType.AMMETER: ("A", 1000),
    codec.SensorType.MOTOR_PWM: ("of full speed", codec.FULL_SPEED),
}


def speeds(leg: Leg, wheel_separation: float, max_wheel_speed: float) -> tuple[int, int]:
    """Return a leg as the speeds of the left and right side on the wire; the right side is faster in a left turn.

    What is too fast is slowed down on both sides alike. What tracks can't do, to the left and up, is left out.
    """
    sides = [leg.forward + sign * leg.turn * wheel_separation / 2 for sign in (-1, 1)]
    unit = codec.FULL_SPEED / max(max_wheel_speed, *map(abs, sides))
    left, right = (round(side * unit) for side in sides)
    return left, right


class ScriptedDriver:
    """The driver's side of a conversation, by a plan. Packets and times are passed in."""

    def __init__(
        self, name: str, plan: Plan, to_speeds: Callable[[Leg], tuple[int, int]], report: Callable[[str], None]
    ) -> None:
        """`report` gets commands and the robot's messages as lines."""
        self._name, self._plan, self._to_speeds, self._report = name, plan, to_speeds, report
        #: What is to be sent.
        self.outbox: list[codec.FromDriver] = [codec.RegisterDriver(name), codec.QuerySubsystems()]
        #: Whether the plan is done.
        self.is_over = False
        self._drive: int | None = None  # the number of the subsystem
        self._sensors = codec.SensorInfo(())
        self._is_bound = False
        self._started_s: float | None = None
        self._leg: Leg | None = None
        self._keep_alive_s = self._bind_s = 0.0  # when they are due

    @property
    def has_begun(self) -> bool:
        """Whether the drive is bound and the plan has begun."""
        return self._started_s is not None

    def tick(self, now_s: float, clock_ms: int) -> None:
        """Do what is due. `clock_ms` is the time of day."""
        if now_s >= self._keep_alive_s:
            self._keep_alive_s = now_s + KEEP_ALIVE_PERIOD_S
            self.outbox.append(codec.KeepAlive(clock_ms))
        if self._drive is None:
            return
        if not self._is_bound:
            if now_s >= self._bind_s:
                self._bind_s = now_s + BIND_PERIOD_S
                self.outbox.append(codec.BindSubsystem(self._drive))
            return
        if self._started_s is None:
            self._started_s = now_s
        leg = self._plan.leg_at(now_s - self._started_s)
        if leg is not self._leg:
            self._leg = leg
            left, right = self._to_speeds(leg)
            self._report(f"driving {left} {right}" + ("" if leg is REST else f" ({leg})"))
            self.outbox.append(codec.SkidSteerUpdate(self._drive, left, right))
        self.is_over = now_s - self._started_s >= self._plan.duration_s

    def farewell(self) -> list[codec.FromDriver]:
        """Return the last packets: stop and unbind."""
        if self._drive is None or not self._is_bound:
            return []
        self._report(f"stopping, and releasing subsystem {self._drive}")
        return [codec.SkidSteerUpdate(self._drive, 0, 0), codec.UnbindSubsystem(self._drive)]

    def handle(self, packet: codec.FromRobot) -> None:
        if sentence := self._described(packet):
            self._report(sentence)
        if isinstance(packet, codec.SubsystemInfo):
            self._choose(packet)
        elif isinstance(packet, codec.SensorInfo):
            self._sensors = packet
        elif isinstance(packet, codec.BindSuccess):
            self._is_bound = self._is_bound or packet.id == self._drive
        elif isinstance(packet, codec.SubsystemBound) and packet.id == self._drive and packet.driver != self._name:
            if self._is_bound:
                self._report(f"lost subsystem {packet.id}")
            self._is_bound = False
            self._leg = None

    def _described(self, packet: codec.FromRobot) -> str | None:
        """Return what a packet tells a person."""
        if isinstance(packet, codec.SensorInfo):
            return f"sensors: {', '.join(printable(sensor.name) for sensor in packet.sensors) or 'none'}"
        if isinstance(packet, codec.SensorUpdate):
            return ", ".join(self._reading(reading.sensor, reading.value) for reading in packet.readings)
        if isinstance(packet, codec.FirmwareInfo):
            return f"firmware: {printable(packet.type)} {printable(packet.version)}"
        if isinstance(packet, codec.LogMessage):
            return f"the robot says: {printable(packet.text)}"
        if isinstance(packet, codec.BindSuccess):
            return f"bound subsystem {packet.id}"
        return f"refused subsystem {packet.id}" if isinstance(packet, codec.BindFailure) else None

    def _choose(self, info: codec.SubsystemInfo) -> None:
        listed = [f"{printable(s.name)}{f' (of {printable(s.driver)})' if s.driver else ''}" for s in info.subsystems]
        self._report(f"subsystems: {', '.join(listed) or 'none'}")
        drives = [number for number, s in enumerate(info.subsystems) if s.type == codec.SubsystemType.SKID_STEER]
        self._drive = drives[0] if drives else None
        self.is_over = not drives

    def _reading(self, number: int, value: int) -> str:
        sensors = self._sensors.sensors
        if number >= len(sensors) or sensors[number].type not in _UNITS:
            return f"sensor {number}: {value}"
        unit, one = _UNITS[codec.SensorType(sensors[number].type)]
        return f"{printable(sensors[number].name)}: {value / one:g} {unit}"


def drive(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Drive until the plan is over; retry while nothing can be bound, as the robot may not be ready yet."""

    def to_speeds(leg: Leg) -> tuple[int, int]:
        return speeds(leg, options.wheel_separation, options.max_wheel_speed)

    link = _link(options, cancellation)
    stack.callback(link.close)
    stream = OneStream(link, cancellation)
    with contextlib.suppress(LinkCancelledError):
        while True:
            stream.open()
            print_event(f"connected to {stream.peer}")
            driver = ScriptedDriver(DRIVER_NAME, options.plan, to_speeds, print_event)
            try:
                _converse(stream, driver)
            except LinkCancelledError:
                raise
            except LinkError as error:
                print_event(str(error))
            if driver.is_over:
                return 0
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


def _converse(stream: OneStream, driver: ScriptedDriver) -> None:
    """Follow the plan to its end. Raises LinkError if the robot ends the conversation."""
    connection = codec.DriverConnection()
    try:
        while not driver.is_over:
            driver.tick(time.monotonic(), time.time_ns() // 1_000_000)
            stream.send(*codec.in_pieces(map(connection.send, driver.outbox)))
            driver.outbox.clear()
            try:
                data = stream.receive(STEP_S)
            except LinkTimeoutError:
                continue
            connection.receive_data(data) if data else connection.receive_eof()
            while (event := connection.next_event()) is not codec.NEED_DATA:
                if isinstance(event, codec.ConnectionClosed):
                    raise LinkError("The robot has closed the connection.")
                driver.handle(event)
    finally:
        with contextlib.suppress(LinkError):  # where the robot has gone, that is what is to be reported
            stream.leave(*codec.in_pieces(map(connection.send, driver.farewell())))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code, 1 if the robot ended the conversation."""
    return run_program("robot", drive, parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line. Exits with a message when it is wrong."""
    parser = OperatorParser("robot", "A scripted driver of tracked robots.", codec.TCP_PORT, "the robot")
    parser.link.add_argument("--name", default="", help="drive the robot of this name, found by discovery, not --host")
    parser.link.add_argument("--discovery-port", type=port, default=codec.DISCOVERY_PORT, help="(%(default)s)")
    parser.link.add_argument(
        "--discovery-interface", default="127.0.0.1", help="its address; 0.0.0.0 for the system's choice (%(default)s)"
    )
    robot = parser.add_argument_group("robot")
    robot.add_argument("--wheel-separation", type=positive, default=0.5, help="m (%(default)s)")
    robot.add_argument("--max-wheel-speed", type=positive, default=1.0, help="at full speed, m/s (%(default)s)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
