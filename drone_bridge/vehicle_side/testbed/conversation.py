# SPDX-License-Identifier: Apache-2.0
"""The testbed's side of a conversation with an autopilot, whoever flies: constants, then frames and answers in turns.

    conversation = Conversation(drone, Dialect())
    send(conversation.opening())
    while ...:
        for piece in conversation.next_frame(now_s):
            send(piece)
        conversation.receive_data(received)
        conversation.next_event(now_s)  # the drone flies by the answer

Nothing is sent while an answer is awaited: in a testbed, simulated time stands still meanwhile.
"""

import math
from dataclasses import dataclass, replace
from typing import Protocol

from drone_bridge.protocols.events import NeedData
from drone_bridge.protocols.testbed import (
    AngleUnit,
    AttitudeLayout,
    ConnectionClosed,
    Constants,
    Limits,
    MotionParameters,
    SensorFrame,
    TestbedConnection,
)


class Vehicle(Protocol):
    """A drone with two cameras. All values are in the units of the wire; see `messages`."""

    @property
    def constants(self) -> Constants:
        """What holds for the whole conversation, gravity counted downwards."""

    def sense(self) -> SensorFrame | None:
        """Return what is sensed now, for an autopilot to answer; None: there is nothing new."""

    def fly(self, motion: MotionParameters) -> None:
        """Follow the answer to what was sensed last."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs from testbed to testbed."""

    layout: AttitudeLayout = AttitudeLayout.PITCH_YAW
    angle_unit: AngleUnit = AngleUnit.DEGREES
    has_negative_gravity: bool = False  # some count it upwards
    sends_in_pieces: bool = False  # an image after the other, as programs do that write field by field

    def constants_of(self, vehicle: Vehicle) -> Constants:
        """Return what a testbed of this dialect announces."""
        constants = vehicle.constants
        return replace(constants, gravity=-abs(constants.gravity)) if self.has_negative_gravity else constants


class Conversation:
    """One autopilot, from the constants on. Without sockets and clocks: bytes and times (s) are handed over.

    Every method raises LocalProtocolError for what the vehicle senses and the wire can't carry.
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
        #: An answer that takes longer is not flown by. Testbeds wait forever.
        self.answer_timeout_s = answer_timeout_s
        self._protocol = TestbedConnection(dialect.layout, dialect.angle_unit, limits)
        self._asked_s: float | None = None  # when the frame went out whose answer is awaited
        #: How many frames were answered, and how many of the answers came too late.
        self.answers = 0
        self.late_answers = 0

    def opening(self) -> bytes:
        """Return what a testbed says first, once the vehicle has constants."""
        return self._protocol.send(self._dialect.constants_of(self._vehicle))

    @property
    def awaits_answer(self) -> bool:
        """Whether a frame is out and its answer is not in."""
        return self._asked_s is not None

    def next_frame(self, now_s: float) -> list[memoryview]:
        """Return the pieces that the next frame is sent in; none while an answer is awaited or nothing was sensed."""
        if self.awaits_answer or (frame := self._vehicle.sense()) is None:
            return []
        whole = memoryview(self._protocol.send(frame))
        self._asked_s = now_s
        if not self._dialect.sends_in_pieces:
            return [whole]
        size = self._vehicle.constants.image_bytes
        return [whole[:size], whole[size : 2 * size], whole[2 * size :]]

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Take bytes of the autopilot."""
        self._protocol.receive_data(data)

    def receive_eof(self) -> None:
        """Say that the autopilot has closed its side."""
        self._protocol.receive_eof()

    def next_event(self, now_s: float) -> MotionParameters | ConnectionClosed | NeedData:
        """Return the answer to the frame, ConnectionClosed when the autopilot has left, or NEED_DATA.

        The vehicle flies by an answer that came in time. Raises RemoteProtocolError.
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
