# SPDX-License-Identifier: Apache-2.0
"""Bytes of the testbed protocol, and ways to pass them to a connection."""

import contextlib
import itertools
import math
import struct
from array import array
from dataclasses import astuple, replace

import pytest

from drone_bridge.testbed import codec
from drone_bridge.testbed.codec import (
    NEED_DATA,
    AngleUnit,
    AttitudeLayout,
    Constants,
    MotionParameters,
    SensorFrame,
    SizeLimits,
)
from drone_bridge.wire.events import RemoteProtocolError

CONSTANTS = Constants(120, 90, 2, 1, 0.25, 1, 9.8125, 0.25, 25, 720, 720, 720)
LEFT, RIGHT = b"left..", b"right."
FRAME = SensorFrame(LEFT, RIGHT, time=0.5, pitch=-3, roll=4, yaw=5, position=(1, 2, 3))
REPLY = MotionParameters(1, -2, 3.5, 9.8125)
CONSTANTS_BYTES = 48
REPLY_BYTES = 16

LAYOUTS = list(AttitudeLayout)
UNITS = list(AngleUnit)
FLOATS = {
    AttitudeLayout.PITCH_YAW: ("pitch", "yaw", "time"),
    AttitudeLayout.PITCH_ROLL: ("pitch", "roll", "time"),
    AttitudeLayout.POSE: ("x", "y", "z", "heading", "pitch", "roll", "time"),
}
NON_FINITE = (math.nan, math.inf, -math.inf)
SMALL_LIMITS = SizeLimits(width=40, height=30, frame_bytes=2000)


class ImageSupply:
    """Supplies an AutopilotConnection with images, and asserts that it requests no more than the limits allow."""

    def __init__(self, limits):
        self._limits = limits
        self.sizes = []

    @contextlib.contextmanager
    def used(self):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(codec, "_new_image", self)
            yield self

    def __call__(self, size):
        assert 0 < size <= self._limits.frame_bytes / 2
        self.sizes.append(size)
        return array("B", bytes(size))


def float32(value):
    return struct.unpack(">f", struct.pack(">f", value))[0]


def constants_bytes(**changes):
    values = {**dict(zip(Constants.__slots__, astuple(CONSTANTS), strict=True)), **changes}.values()
    return struct.pack(">ffiiffffffff", *values)


def frame_bytes(layout=AttitudeLayout.PITCH_YAW, images=LEFT + RIGHT, **changes):
    values = {"x": 1, "y": 2, "z": 3, "heading": 5, "yaw": 5, "pitch": -3, "roll": 4, "time": 0.5, **changes}
    names = FLOATS[layout]
    return images + struct.pack(f">{len(names)}f", *(values[name] for name in names))


def plain(event):
    """Event with comparable values, as the memory of images may be reused."""
    if isinstance(event, SensorFrame):
        return replace(event, left=bytes(event.left), right=bytes(event.right))
    return event


def drain(connection):
    """All events; a protocol error is the last one."""
    events = []
    try:
        while (event := connection.next_event()) is not NEED_DATA:
            events.append(plain(event))
            assert len(events) < 1000, "draining does not end"
    except RemoteProtocolError as error:
        events.append(str(error))
    return events


def feed_by_buffer(connection, data):
    """Write data to the connection's buffers, like a link."""
    while data:
        try:
            buffer = connection.get_buffer()
        except RemoteProtocolError:
            return
        assert len(buffer) > 0
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        connection.buffer_updated(count)
        data = data[count:]


def feed_by_buffers(connection, data):
    """Write data over all buffers of the connection, like a link that reads a frame in one call."""
    while data:
        try:
            buffers = connection.get_buffers()
        except RemoteProtocolError:
            return
        count = 0
        for buffer in buffers:
            part = data[count : count + len(buffer)]
            buffer[: len(part)] = part
            count += len(part)
        assert count > 0
        connection.buffer_updated(count)
        data = data[count:]


def feed_by_copy(connection, data):
    connection.receive_data(data)


def converse(connection, pieces, feed=feed_by_copy):
    """Feed the pieces and the end; return all events. Only the same error may follow an error."""
    events = []
    for piece in [*pieces, None]:
        if piece is None:
            connection.receive_eof()
        else:
            feed(connection, piece)
        new_events = drain(connection)
        if events and isinstance(events[-1], str):
            assert new_events == [events[-1]]
        else:
            events += new_events
    return events


def split(data, cuts):
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def single_bytes(data):
    return [data[index : index + 1] for index in range(len(data))]


def send_all(connection, *events):
    return b"".join(connection.send(event) for event in events)
