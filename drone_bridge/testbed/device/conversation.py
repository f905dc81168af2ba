# SPDX-License-Identifier: Apache-2.0
"""The testbed's side of a conversation with an autopilot: constants, then frames and answers in turns.

    conversation = Conversation(drone, Dialect())
    send(conversation.opening())
    while ...:
        for piece in conversation.next_frame(now_s):
            send(piece)
        conversation.receive_data(received)
        conversation.next_event(now_s)  # the drone flies by the answer

Nothing is sent while an answer is pending, as simulated time stands still meanwhile.
"""

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


class Vehicle(Protocol):
    """A drone with two cameras. All values are in the units of the wire; see `messages`."""

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

    def constants_of(self, vehicle: Vehicle) -> Constants:
        """Return the constants as this dialect announces them."""
        constants = vehicle.constants
        return replace(constants, gravity=-abs(constants.gravity)) if self.has_negative_gravity else constants


class Conversation:
    """The conversation with one autopilot. Bytes and times (s) are passed in.

    Every method raises LocalProtocolError for frames that can't be encoded.
    """

    def __init__(
        self,
        vehicle: Vehicle,
        dialect: Dialect,
        answer_timeout_s: float = math.inf,
        limits: Limits | None = None,
    ) -> None:
        self._vehicle = vehicle
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
        return self._protocol.send(self._dialect.constants_of(self._vehicle))

    @property
    def awaits_answer(self) -> bool:
        return self._asked_s is not None

    def next_frame(self, now_s: float) -> list[memoryview]:
        """Return the next frame in the pieces to send; none while an answer is pending or there is no frame."""
        if self.awaits_answer or (frame := self._vehicle.sense()) is None:
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

        The vehicle follows an answer that is not late. Raises RemoteProtocolError.
        """
        event = self._protocol.next_event()
        if isinstance(event, MotionParameters):
            assert self._asked_s is not None
            took_s, self._asked_s = now_s - self._asked_s, None
            self.answers += 1
            if took_s <= self.answer_timeout_s:
                self._vehicle.fly(event)
            else:
                self.late_answers += 1
        return event
