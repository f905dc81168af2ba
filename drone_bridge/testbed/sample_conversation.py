# SPDX-License-Identifier: Apache-2.0
"""Sample conversation with each message of the protocol, and a reader that finds neutral commands."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from drone_bridge.kind import ProtocolKind, Recorded, Sent, Side
from drone_bridge.testbed.codec import (
    REPLY,
    AngleUnit,
    AttitudeLayout,
    AutopilotConnection,
    Constants,
    MotionParameters,
    SensorFrame,
    SizeLimits,
    TestbedConnection,
)
from drone_bridge.wire import LocalProtocolError

#: Largest yaw rate of a neutral command, degrees/s. A hovering drone uses the other axes to hold its position.
_HOVERING_RATE = 0.5


def conversation() -> tuple[Sent, ...]:
    """Return the constants and two frames with their answers, of 2 x 1 pixels; numbers are exact on the wire."""
    constants = Constants(90.0, 60.0, 2, 1, 0.25, 1.5, 9.75, 0.25, 25.0, 720.0, 360.0, 180.0)
    frames = (
        SensorFrame(bytes(range(6)), bytes(range(6, 12)), time, pitch, yaw=yaw)
        for time, pitch, yaw in ((0.25, 1.5, -2.5), (0.5, -12.0, 90.0))
    )
    answer = MotionParameters(1.5, -2.5, 90.0, 12.25)
    return (
        Sent(Side.VEHICLE, constants),
        *(sent for frame in frames for sent in (Sent(Side.VEHICLE, frame), Sent(Side.OPERATOR, answer))),
    )


def commands() -> Callable[[bytes], Iterator[bool]]:
    """Read replies to frames. Replies without a yaw rate are neutral, as a hovering drone leans against the wind.

    Replies are split by size, because a connection reads no reply to a frame that it has not sent.
    """
    heard = bytearray()

    def read(data: bytes) -> Iterator[bool]:
        heard.extend(data)
        while len(heard) >= REPLY.size:
            _, _, yaw_rate, _ = REPLY.unpack_from(heard)
            del heard[: REPLY.size]
            yield abs(yaw_rate) <= _HOVERING_RATE

    return read


class RecordedTestbed(Recorded):
    """Recorded testbed, whose layout shows where its frames end."""

    def __init__(self, kind: ProtocolKind, parameters: Mapping[str, Any]) -> None:
        layout = parameters.get("attitude_layout", AttitudeLayout.PITCH_YAW.value)
        self._unit = AngleUnit(parameters.get("angle_unit", AngleUnit.DEGREES.value))
        self._limits = SizeLimits(1 << 16, 1 << 16, 1 << 32)
        given = AttitudeLayout(layout) if layout in [known.value for known in AttitudeLayout] else None
        self._autopilot = AutopilotConnection(given, self._unit, self._limits)
        self._constants: Constants | None = None
        self._has_constants = False  # of the testbed's end, which sent them itself
        self._has_answers = False  # received bytes of at least one reply
        self._replace_bed()

    def _replace_bed(self) -> None:
        layout = self._autopilot.layout or AttitudeLayout.PITCH_YAW
        self._bed = TestbedConnection(layout, self._unit, self._limits)
        self._has_constants = False
        self.readers = {Side.VEHICLE: self._autopilot, Side.OPERATOR: self._bed}

    def prepare(self, sender: Side) -> None:
        if sender is Side.OPERATOR:  # a reply, so the previous frame is complete
            self._has_answers = True
            self._autopilot.peer_waits()

    def note_sent(self, sender: Side, event: Any) -> None:
        if isinstance(event, Constants):
            self._constants = event
        elif isinstance(event, SensorFrame):
            try:
                self._send(event)
            except LocalProtocolError:  # the reply to the previous frame is not in the log
                self._replace_bed()
                self._send(event)

    def _send(self, frame: SensorFrame) -> None:
        assert self._constants
        if not self._has_constants:
            if self._autopilot.layout is not None and not self._has_answers:
                self._replace_bed()  # now that the layout is known
            self._bed.send(self._constants)
            self._has_constants = True
        self._bed.send(frame)
