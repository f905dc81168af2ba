# SPDX-License-Identifier: Apache-2.0
"""Serves the emulated robot's drivers over TCP, and advances its simulation."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from enum import Enum
from typing import Final

from drone_bridge.emulators.faults import Fault
from drone_bridge.emulators.robot.control import MAX_DRIVERS, Control, Driver, HangUpError
from drone_bridge.programs.program import TrajectoryFile, say
from drone_bridge.protocols.errors import RemoteProtocolError
from drone_bridge.protocols.robot import NEED_DATA, ConnectionClosed, FromRobot, KeepAlive, RobotConnection

MAX_UNREAD_BYTES: Final = 256 * 1024  # of what a driver does not take; one that lets more pile up is given up
SEND_BUFFER_BYTES: Final = 64 * 1024
MAX_STEP_S: Final = 0.1  # of the physics, when the machine was busy with something else for long
COLUMNS: Final = ("time", "x", "y", "heading", "left", "right", "voltage", "light")
_RECEIVE_BYTES: Final = 4096
# A list of one sensor that ends inside its name, in any layout.
_GARBAGE: Final = b"\x00\x08\x07\x00\x01\x00\x01\xff\xff\x00\x00"


class FaultKind(str, Enum):
    """Faults that can replace the answer to one keep-alive of the first driver."""

    TRUNCATE = "truncate"  # half of a packet, then the connection is closed
    GARBAGE = "garbage"  # a list of sensors that is none
    SILENCE = "silence"  # nothing is said any more


class Server:
    """Serves drivers, and advances the simulation."""

    def __init__(self, control: Control, fault: Fault[FaultKind] | None, silence_s: float) -> None:
        """`silence_s`: how long a driver may say nothing before it is dropped."""
        self._control = control
        self._fault = fault
        self._silence_s = silence_s
        self._conversations: set[asyncio.Task[None]] = set()

    # Drivers.

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one driver until either side ends the connection."""
        peer = "{}:{}".format(*writer.get_extra_info("peername")[:2])
        task = asyncio.current_task()
        assert task
        self._conversations.add(task)
        connected = writer.get_extra_info("socket")
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # News that nobody reads pile up here, where they are counted, and not in the system.
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        try:
            if len(self._control.drivers) >= MAX_DRIVERS:
                say(f"refused {peer}: {MAX_DRIVERS} drivers are enough")
                return
            say(f"connected to {peer}")
            fault, self._fault = self._fault, None
            with contextlib.suppress(asyncio.CancelledError):  # by hang_up
                await self._converse(peer, reader, writer, fault)
        finally:
            self._conversations.discard(task)
            writer.close()

    async def _converse(
        self, peer: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fault: Fault[FaultKind] | None
    ) -> None:
        connection = RobotConnection(self._control.subsystem_types)
        fault_plan = _FaultPlan(fault, writer)

        def send(packet: FromRobot) -> None:
            if writer.transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
                writer.transport.abort()
            elif not writer.is_closing() and not fault_plan.takes_over(packet):
                writer.write(connection.send(packet))

        driver = Driver(peer, send, writer.transport.abort, time.monotonic())
        self._control.drivers.append(driver)
        reason = "it has closed the connection"
        try:
            while data := await reader.read(_RECEIVE_BYTES):
                connection.receive_data(data)
                self._handle(driver, connection)
            connection.receive_eof()
            self._handle(driver, connection)
        except (RemoteProtocolError, HangUpError) as error:
            reason = str(error)
        except asyncio.CancelledError:
            reason = "the robot has closed the connection"
            raise
        except OSError as error:
            reason = f"the connection was lost: {error.strerror or error}"
        finally:
            self._control.leave(driver)
            say(f"{driver} is gone: {driver.dropped_because or reason}")

    def _handle(self, driver: Driver, connection: RobotConnection) -> None:
        while (event := connection.next_event()) is not NEED_DATA:
            if isinstance(event, ConnectionClosed):
                return
            self._control.handle(driver, event, time.monotonic(), time.time_ns() // 1_000_000)

    async def hang_up(self) -> None:
        """End all conversations."""
        conversations = tuple(self._conversations)
        for task in conversations:
            task.cancel()
        await asyncio.gather(*conversations, return_exceptions=True)

    # Time.

    async def move(self, step_s: float, trajectory: TrajectoryFile | None) -> None:
        """Advance the robot in real time."""
        vehicle = self._control.vehicle
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
            self._control.look_for_silence(now_s, self._silence_s)

    async def measure(self, period_s: float) -> None:
        """Send readings periodically."""
        while True:
            await asyncio.sleep(period_s)
            self._control.update_sensors()


class _FaultPlan:
    """Injects the requested fault."""

    def __init__(self, fault: Fault[FaultKind] | None, writer: asyncio.StreamWriter) -> None:
        self._fault = fault
        self._writer = writer
        self._keep_alives = 0
        self._is_silent = False

    def takes_over(self, packet: FromRobot) -> bool:
        """Return whether the packet must not be sent."""
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
            self._writer.write(_GARBAGE)
        else:
            self._writer.write(_GARBAGE[: len(_GARBAGE) // 2])
            self._writer.close()
        return True
