# SPDX-License-Identifier: Apache-2.0
"""The testbed protocol, both roles: recorded bytes, documented bytes, the end, and refused messages."""

import struct
from dataclasses import astuple, replace

import numpy as np
import pytest
import testbed_bytes as wire
from repository import CAPTURES

from drone_bridge.testbed.codec import (
    NEED_DATA,
    AttitudeLayout,
    AutopilotConnection,
    ConnectionClosed,
    Constants,
    MotionParameters,
    SensorFrame,
    TestbedConnection,
)
from drone_bridge.wire.events import LocalProtocolError

TESTBED_TO_AUTOPILOT = (CAPTURES / "testbed_to_autopilot.bin").read_bytes()
AUTOPILOT_TO_TESTBED = (CAPTURES / "autopilot_to_testbed.bin").read_bytes()


# Recordings from another implementation.


def documented_image(frame, eye):
    row, column = np.mgrid[0:48, 0:64]
    red = 7 * frame + 3 * row + 5 * column + 11 * eye
    green = 13 * frame + row + 2 * column + 29 * eye
    blue = row * column + frame + 53 * eye
    return (np.stack([red, green, blue], axis=-1) % 256).astype(np.uint8).tobytes()


RECORDED_CONSTANTS = Constants(
    120, wire.float32(104.8), 64, 48, 0.25, 1.5, wire.float32(9.81), wire.float32(0.2), 25.0, 720.0, 360.0, 180.0
)
RECORDED_FRAMES = [
    SensorFrame(documented_image(f, 0), documented_image(f, 1), time=0.125 * f, pitch=0.5 * f - 3, yaw=2 - 1.25 * f)
    for f in range(3)
]
RECORDED_REPLY = MotionParameters(10.5, -20.25, 30.125, wire.float32(14.715))


@pytest.mark.parametrize("feed", [wire.feed_by_copy, wire.feed_by_buffer, wire.feed_by_buffers])
@pytest.mark.parametrize(
    "pieces",
    [
        [TESTBED_TO_AUTOPILOT],
        wire.single_bytes(TESTBED_TO_AUTOPILOT),
        wire.split(TESTBED_TO_AUTOPILOT, range(47, 60_000, 1448)),
        wire.split(TESTBED_TO_AUTOPILOT, [1, 47, 48, 49, 48 + 9216, 48 + 2 * 9216, 48 + 2 * 9216 + 12, 40_000]),
    ],
    ids=["whole", "bytes", "segments", "edges"],
)
def test_recorded_testbed_decodes_to_the_documented_pixels_and_floats(pieces, feed):
    events = wire.converse(AutopilotConnection(), pieces, feed)
    assert events == [RECORDED_CONSTANTS, *RECORDED_FRAMES, ConnectionClosed()]


def test_recorded_testbed_encodes_to_the_same_bytes():
    events = wire.converse(AutopilotConnection(), [TESTBED_TO_AUTOPILOT])[:-1]
    testbed = TestbedConnection()
    data = testbed.send(events[0])
    for frame in events[1:]:
        data += testbed.send(frame)
        testbed.receive_data(AUTOPILOT_TO_TESTBED[: wire.REPLY_BYTES])
        assert testbed.next_event() == RECORDED_REPLY
    assert data == TESTBED_TO_AUTOPILOT


@pytest.mark.parametrize("size", [1, 5, 16, 48])
def test_recorded_autopilot_decodes_to_the_documented_replies(size):
    testbed = TestbedConnection()
    testbed.send(RECORDED_CONSTANTS)
    events = []
    received = AUTOPILOT_TO_TESTBED
    for frame in RECORDED_FRAMES:
        testbed.send(frame)
        while (event := testbed.next_event()) is NEED_DATA:
            # One reply may come ahead of its frame, so a segment may contain the end of one and the start of the next.
            testbed.receive_data(received[: min(size, 2 * wire.REPLY_BYTES)])
            received = received[min(size, 2 * wire.REPLY_BYTES) :]
        events.append(event)
    assert events == 3 * [RECORDED_REPLY]
    assert not received
    testbed.receive_eof()
    assert testbed.next_event() == ConnectionClosed()


def test_recorded_autopilot_encodes_to_the_same_bytes():
    autopilot = AutopilotConnection()
    autopilot.receive_data(TESTBED_TO_AUTOPILOT)
    assert wire.send_all(autopilot, *3 * [RECORDED_REPLY]) == AUTOPILOT_TO_TESTBED


# Position of each float.


@pytest.mark.parametrize("layout", wire.LAYOUTS)
def test_each_layout_puts_the_floats_where_they_are_documented(layout):
    testbed = TestbedConnection(layout)
    data = wire.send_all(testbed, wire.CONSTANTS, wire.FRAME)
    assert data == wire.constants_bytes() + wire.frame_bytes(layout)
    constants, frame = wire.converse(AutopilotConnection(layout), [data])[:2]
    assert constants == wire.CONSTANTS
    expected = {
        AttitudeLayout.PITCH_YAW: replace(wire.FRAME, roll=None, position=None),
        AttitudeLayout.PITCH_ROLL: replace(wire.FRAME, yaw=None, position=None),
        AttitudeLayout.POSE: wire.FRAME,
    }
    assert frame == expected[layout]


@pytest.mark.parametrize("layout", [*wire.LAYOUTS, None])
@pytest.mark.parametrize("is_reused", [False, True])
def test_frames_share_their_images_only_if_that_was_asked_for(layout, is_reused):
    autopilot = AutopilotConnection(layout, reuses_images=is_reused)
    sent = layout or AttitudeLayout.POSE
    wire.feed_by_buffer(autopilot, wire.constants_bytes() + wire.frame_bytes(sent))
    autopilot.peer_waits()
    autopilot.next_event()
    first = autopilot.next_event()
    assert (bytes(first.left), bytes(first.right)) == (wire.LEFT, wire.RIGHT)
    wire.feed_by_buffer(autopilot, wire.frame_bytes(sent, wire.RIGHT + wire.LEFT, time=1.0))
    second = autopilot.next_event()
    assert (bytes(second.left), bytes(second.right)) == (wire.RIGHT, wire.LEFT)
    assert (second.left is first.left, second.right is first.right) == (is_reused, is_reused)
    assert bytes(first.left) == (wire.RIGHT if is_reused else wire.LEFT)


# The end.


def test_the_peer_owes_us_the_rest_of_what_it_began():
    data = wire.constants_bytes() + wire.frame_bytes() + wire.frame_bytes(time=1)
    autopilot = AutopilotConnection()
    edges = (48, 72, 96)
    for count in range(len(data)):
        assert autopilot.inside_message is (count not in edges), count
        autopilot.get_buffers()  # requesting the buffers changes nothing
        assert autopilot.inside_message is (count not in edges), count
        wire.feed_by_buffer(autopilot, data[count : count + 1])
        assert autopilot.inside_message is (count + 1 not in edges), count


# Messages that we must not send.


def test_constants_come_first_and_once():
    testbed = TestbedConnection()
    with pytest.raises(LocalProtocolError, match="before the first frame"):
        testbed.send(wire.FRAME)
    testbed.send(wire.CONSTANTS)
    with pytest.raises(LocalProtocolError, match="once"):
        testbed.send(wire.CONSTANTS)


def test_a_frame_waits_for_the_answer_to_the_one_before():
    testbed = TestbedConnection()
    wire.send_all(testbed, wire.CONSTANTS, wire.FRAME)
    with pytest.raises(LocalProtocolError, match="unanswered"):
        testbed.send(wire.FRAME)
    testbed.receive_data(struct.pack(">ffff", *astuple(wire.REPLY)))
    assert testbed.next_event() == wire.REPLY
    assert testbed.send(wire.FRAME) == wire.frame_bytes()


@pytest.mark.parametrize(("side", "size"), [("left", 5), ("left", 7), ("right", 0), ("right", 12)])
def test_an_image_has_the_size_that_was_announced(side, size):
    testbed = TestbedConnection()
    testbed.send(wire.CONSTANTS)
    with pytest.raises(LocalProtocolError, match=f"{side} image has {size} bytes, not 6"):
        testbed.send(replace(wire.FRAME, **{side: bytes(size)}))
    assert testbed.send(wire.FRAME) == wire.frame_bytes()  # the refused one has no effect


@pytest.mark.parametrize(
    ("layout", "missing", "name"),
    [
        (AttitudeLayout.PITCH_YAW, "yaw", "yaw"),
        (AttitudeLayout.PITCH_ROLL, "roll", "roll"),
        (AttitudeLayout.POSE, "yaw", "heading"),
        (AttitudeLayout.POSE, "roll", "roll"),
        (AttitudeLayout.POSE, "position", "x"),
    ],
)
def test_a_frame_has_what_its_layout_carries(layout, missing, name):
    testbed = TestbedConnection(layout)
    testbed.send(wire.CONSTANTS)
    with pytest.raises(LocalProtocolError, match=f"{layout.value} needs {name}"):
        testbed.send(replace(wire.FRAME, **{missing: None}))


def test_an_answer_needs_a_frame():
    autopilot = AutopilotConnection()
    for received in (b"", wire.constants_bytes(), wire.frame_bytes()):
        autopilot.receive_data(received)
        if received == wire.frame_bytes():
            autopilot.send(wire.REPLY)
        with pytest.raises(LocalProtocolError, match="no frame is unanswered"):
            autopilot.send(wire.REPLY)
