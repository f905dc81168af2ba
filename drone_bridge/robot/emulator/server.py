# SPDX-License-Identifier: Apache-2.0
"""Serves drivers over TCP and advances the simulation."""

from __future__ import annotations

import asyncio
import time
from enum import Enum
from typing import Final

from drone_bridge.net.tcp_clients import Connection, TcpClients
from drone_bridge.programs.faults import Fault
from drone_bridge.programs.program import TrajectoryFile, say
from drone_bridge.robot.codec import FromRobot, KeepAlive
from drone_bridge.robot.device.control import MAX_DRIVERS, Control
from drone_bridge.robot.device.conversation import Conversation
from drone_bridge.robot.device.drivers import HangUpError, Instant
from drone_bridge.robot.emulator.simulated import SimulatedRobot
from drone_bridge.wire.events import RemoteProtocolError

MAX_STEP_S: Final = 0.1  # of the physics, when the machine was busy with something else for long
COLUMNS: Final = ("time", "x", "y", "heading", "left", "right", "voltage", "light")
# The name of a program that ends inside its length.
_GARBAGE: Final = b"\x00\x03\x09\xff\xff\x00"


class FaultKind(str, Enum):
    """Faults that can replace the answer to one keep-alive of the first driver."""

    TRUNCATE = "truncate"  # half of a packet, then the connection is closed
    GARBAGE = "garbage"  # a packet that is none
    SILENCE = "silence"  # nothing is sent any more


class Server:
    """Serves drivers and advances the simulation."""

    def __init__(
        self,
        robot: SimulatedRobot,
        control: Control,
        host: str,
        port: int,
        *,
        fault: Fault[FaultKind] | None = None,
        silence_s: float,
        reads_one_packet: bool = False,
    ) -> None:
        """Listen. Raises LinkError.

        `silence_s` is the silence after which a driver is dropped; `reads_one_packet`: of those in each socket read.
        """
        self._robot = robot
        self._control = control
        self._fault = fault
        self._silence_s = silence_s
        self._reads_one_packet = reads_one_packet
        self.clients = TcpClients(
            host,
            port,
            self._begin,
            most=MAX_DRIVERS,
            ends=(RemoteProtocolError, HangUpError),
            on_refused=lambda peer: say(f"refused {peer}: {MAX_DRIVERS} drivers are connected already"),
        )

    def _begin(self, connection: Connection) -> Conversation:
        say(f"connected to {connection.peer}")
        fault, self._fault = self._fault, None
        plan = _FaultPlan(fault, connection)
        return Conversation(
            self._control,
            connection.peer,
            connection.send,
            connection.abort,
            now,
            is_suppressed=plan.takes_over,
            reads_one_packet=self._reads_one_packet,
        )

    async def hang_up(self) -> None:
        self.clients.hang_up("the robot has closed the connection")
        self.clients.close()

    # Time.

    async def move(self, step_s: float, trajectory: TrajectoryFile | None) -> None:
        """Advance the robot in real time."""
        vehicle = self._robot.physics
        before_s = time.monotonic()
        while True:
            if trajectory:
                speeds = vehicle.left.setting, vehicle.right.setting
                state = (vehicle.time, vehicle.x, vehicle.y, vehicle.heading)
                trajectory.write((*state, *speeds, vehicle.voltage, float(vehicle.is_light_on)))
            await asyncio.sleep(step_s)
            now_s = time.monotonic()
            left_s, before_s = now_s - before_s, now_s
            while left_s > 0:
                vehicle.advance(min(left_s, MAX_STEP_S))
                left_s -= MAX_STEP_S
            self._control.drop_silent(now(), self._silence_s)

    async def measure(self, period_s: float) -> None:
        """Send readings periodically."""
        while True:
            await asyncio.sleep(period_s)
            self._control.send_readings(self._robot.readings())


def now() -> Instant:
    """Return the time."""
    return Instant(time.monotonic(), time.time_ns() // 1_000_000)


class _FaultPlan:
    """Injects the requested fault."""

    def __init__(self, fault: Fault[FaultKind] | None, connection: Connection) -> None:
        self._fault = fault
        self._connection = connection
        self._keep_alives = 0
        self._is_silent = False

    def takes_over(self, packet: FromRobot) -> bool:
        """Return whether the packet must be suppressed."""
        if self._fault is None or self._is_silent:
            return self._is_silent
        self._keep_alives += isinstance(packet, KeepAlive)
        if self._keep_alives <= self._fault.at:
            return False
        kind, self._fault = self._fault.kind, None
        say(f"fault: {kind.value}")
        if kind is FaultKind.SILENCE:
            self._is_silent = True
        elif kind is FaultKind.GARBAGE:
            self._connection.send(_GARBAGE)
        else:
            self._connection.send(_GARBAGE[: len(_GARBAGE) // 2])
            self._connection.close("half a packet was sent")
        return True
