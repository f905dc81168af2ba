# SPDX-License-Identifier: Apache-2.0
"""One conversation of the emulated testbed with an autopilot over a socket, with its pace, faults and end."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum

from drone_bridge.net.connector import Cancellation, LinkError
from drone_bridge.net.tcp import TcpStream
from drone_bridge.net.udp import FixedRate
from drone_bridge.programs.faults import Fault
from drone_bridge.programs.program import TrajectoryFile, say
from drone_bridge.testbed.codec import NEED_DATA, ConnectionClosed
from drone_bridge.testbed.device import conversation as vehicle_side
from drone_bridge.testbed.device.conversation import Dialect
from drone_bridge.testbed.emulator.flight import Flight
from drone_bridge.testbed.emulator.vehicle import Scenario, SimulatedDrone

_NAN_FLOAT32 = b"\x7f\xc0\x00\x00"
_RECEIVE_BYTES = 256


class FaultKind(str, Enum):
    """Faults that can be injected into one frame of the first conversation."""

    TRUNCATE = "truncate"  # half of the frame, then the connection is closed
    STALL = "stall"  # half of the frame, then nothing more
    GARBAGE = "garbage"  # not a number where the frame's floats belong


@dataclass(frozen=True, slots=True)
class Setup:
    """What all conversations have in common."""

    scenario: Scenario
    dialect: Dialect
    steps: float  # after which the flight is over, may be infinite
    realtime: bool
    until_reached: bool
    fault: Fault[FaultKind] | None


class Conversation:
    """One flight with one autopilot."""

    def __init__(
        self, setup: Setup, stream: TcpStream, cancellation: Cancellation, trajectory: TrajectoryFile | None
    ) -> None:
        self._setup = setup
        self._stream = stream
        self._cancellation = cancellation
        self._drone = SimulatedDrone(setup.scenario, trajectory)
        self._conversation = vehicle_side.Conversation(self._drone, setup.dialect)

    @property
    def steps(self) -> int:
        """Steps of all flights."""
        return self._drone.steps

    @property
    def flight(self) -> Flight:
        """The current or last flight."""
        return self._drone.flight

    def run(self, fault: Fault[FaultKind] | None) -> bool:
        """Fly until the flight is over (True), or the autopilot or the drone has left (False).

        Raises ProtocolError and LinkError, LinkCancelledError among them.
        """
        if self._setup.dialect.sends_in_pieces:
            self._stream.wait_for_acknowledgements()
        else:  # for autopilots that send an answer in pieces, with Nagle's algorithm on
            self._stream.acknowledge_at_once()
        self._stream.send_all(self._conversation.opening())
        rate = FixedRate(self._cancellation)
        while not self._is_over():
            self._send_frame(fault)
            if not self._receive_answer():
                say("the autopilot has left")
                return False
            if self.flight.has_left_the_world:
                say("the drone has left the world")
                return False
            if self._setup.realtime:
                rate.wait(self._setup.scenario.step)
        return True

    def _is_over(self) -> bool:
        reached = self._setup.until_reached and self.flight.reached_at is not None
        return reached or self.steps >= self._setup.steps

    def _send_frame(self, fault: Fault[FaultKind] | None) -> None:
        pieces = self._conversation.next_frame(time.monotonic())
        if fault and fault.at == self.steps:
            self._send_faulty(fault.kind, b"".join(pieces))
            return
        for piece in pieces:
            self._stream.send_all(piece)

    def _send_faulty(self, kind: FaultKind, data: bytes) -> None:
        if kind is FaultKind.GARBAGE:
            floats = len(self._setup.dialect.layout.floats)
            self._stream.send_all(data[: -len(_NAN_FLOAT32) * floats] + floats * _NAN_FLOAT32)
            return
        self._stream.send_all(data[: len(data) // 2])
        if kind is FaultKind.TRUNCATE:
            raise LinkError(f"Closing inside frame {self.steps}, as requested.")
        say(f"stalling inside frame {self.steps}, as requested")

    def _receive_answer(self) -> bool:
        """Wait for the autopilot's answer and follow it; return false if it has left."""
        buffer = memoryview(bytearray(_RECEIVE_BYTES))
        while (event := self._conversation.next_event(time.monotonic())) is NEED_DATA:
            if count := self._stream.receive_into(buffer):
                self._conversation.receive_data(buffer[:count])
            else:
                self._conversation.receive_eof()
        return not isinstance(event, ConnectionClosed)
