# SPDX-License-Identifier: Apache-2.0
"""LockstepExchange: the testbed's side of a conversation: constants, then frames and answers in turns.

    exchange = LockstepExchange(drone, Dialect())
    send(exchange.opening())
    while ...:
        for piece in exchange.next_frame(now_s):
            send(piece)
        exchange.receive_data(received)
        exchange.next_event(now_s)  # the drone flies by the answer

Nothing is sent while an answer is pending, as simulated time stands still meanwhile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

from drone_bridge.testbed.codec import (
    AngleUnit,
    AttitudeLayout,
    ConnectionClosed,
    Constants,
    Limits,
    MotionParameters,
    SensorFrame,
    TestbedConnection,
)
from drone_bridge.wire.events import NeedData


class TestbedDrone(Protocol):
    """A drone with two cameras. All values are in the units of the wire; see `codec`."""

    @property
    def constants(self) -> Constants:
        """The constants of the conversation, with gravity positive downwards."""

    def sense(self) -> SensorFrame | None:
        """Return the next frame for the autopilot to answer, None if there is nothing new."""

    def fly(self, motion: MotionParameters) -> None:
        """Follow the answer to the last frame."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Differences between testbeds."""

    layout: AttitudeLayout = AttitudeLayout.PITCH_YAW
    angle_unit: AngleUnit = AngleUnit.DEGREES
    has_negative_gravity: bool = False  # as announced by some testbeds
    sends_in_pieces: bool = False  # field by field


class LockstepExchange:
    """Frames to one autopilot and its answers, in turns. Bytes and times (s) are passed in.

    Every method raises LocalProtocolError for frames that can't be encoded.
    """

    def __init__(
        self,
        drone: TestbedDrone,
        dialect: Dialect,
        answer_timeout_s: float = math.inf,
        limits: Limits | None = None,
    ) -> None:
        self._drone = drone
        self._dialect = dialect
        #: Answers that take longer are not followed. Testbeds wait forever.
        self.answer_timeout_s = answer_timeout_s
        self._protocol = TestbedConnection(dialect.layout, dialect.angle_unit, limits)
        self._asked_s: float | None = None  # when the frame was sent whose answer is pending
        #: How many frames were answered, and how many of the answers were too late.
        self.answers = 0
        self.late_answers = 0

    def opening(self) -> bytes:
        """Return the encoded constants, which are sent first."""
        constants = self._drone.constants
        if self._dialect.has_negative_gravity:
            constants = replace(constants, gravity=-abs(constants.gravity))
        return self._protocol.send(constants)

    @property
    def awaits_answer(self) -> bool:
        return self._asked_s is not None

    def next_frame(self, now_s: float) -> list[memoryview]:
        """Return the next frame in the pieces to send; none while an answer is pending or there is no frame."""
        if self.awaits_answer or (frame := self._drone.sense()) is None:
            return []
        pieces = self._protocol.send_in_pieces(frame)
        self._asked_s = now_s
        return pieces if self._dialect.sends_in_pieces else [memoryview(b"".join(pieces))]

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        self._protocol.receive_data(data)

    def receive_eof(self) -> None:
        """Handle the end of the autopilot's stream."""
        self._protocol.receive_eof()

    def next_event(self, now_s: float) -> MotionParameters | ConnectionClosed | NeedData:
        """Return the answer to the frame, ConnectionClosed when the autopilot has left, or NEED_DATA.

        The drone follows an answer that is not late. Raises RemoteProtocolError.
        """
        event = self._protocol.next_event()
        if isinstance(event, MotionParameters):
            assert self._asked_s is not None
            took_s, self._asked_s = now_s - self._asked_s, None
            self.answers += 1
            if took_s <= self.answer_timeout_s:
                self._drone.fly(event)
            else:
                self.late_answers += 1
        return event
