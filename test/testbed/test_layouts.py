# SPDX-License-Identifier: Apache-2.0
"""Detection of a testbed's layout from its first frame, and hints if it is not the expected one."""

import itertools
import struct

import pytest
import testbed_bytes as wire
from hypothesis import given
from hypothesis import strategies as st
from repository import CAPTURES

from drone_bridge.testbed import codec
from drone_bridge.wire.events import RemoteProtocolError

CAPTURE = CAPTURES / "testbed_to_autopilot.bin"
FEEDS = [wire.feed_by_copy, wire.feed_by_buffer, wire.feed_by_buffers]
SIZES = {codec.AttitudeLayout.PITCH_YAW: 12, codec.AttitudeLayout.PITCH_ROLL: 12, codec.AttitudeLayout.POSE: 28}
#: Possible results for each layout: a frame can't distinguish yaw from roll, and the documented layout is assumed.
DECIDED = {
    layout: codec.AttitudeLayout.POSE if size == 28 else codec.AttitudeLayout.PITCH_YAW
    for layout, size in SIZES.items()
}


def undecided(unit=codec.AngleUnit.DEGREES):
    connection = codec.AutopilotConnection(layout=None, angle_unit=unit)
    connection.receive_data(wire.constants_bytes() if unit is codec.AngleUnit.DEGREES else constants_bytes_in_radians())
    connection.next_event()
    return connection


def constants_bytes_in_radians():
    return wire.constants_bytes(horizontal_angle_of_view=2.0, vertical_angle_of_view=1.5)


def floats(low, high):
    return st.floats(low, high, width=32, allow_subnormal=False)


@st.composite
def first_floats(draw, layout, unit):
    """Any attitude, position and time."""
    half_turn = struct.unpack(">f", struct.pack(">f", unit.half_turn))[0]
    ranges = {"pitch": half_turn, "roll": half_turn, "yaw": half_turn, "heading": half_turn}
    named = {}
    for name in wire.FLOATS[layout]:
        if name == "time":
            named[name] = draw(st.one_of(st.just(0.0), floats(0.0, 1e6)))
        else:
            limit = ranges.get(name, 1000.0)
            named[name] = draw(st.one_of(st.just(0.0), floats(-limit, limit)))
    return named


@pytest.mark.parametrize("unit", list(codec.AngleUnit))
@pytest.mark.parametrize("layout", wire.LAYOUTS)
@given(data=st.data(), feed=st.sampled_from(FEEDS), images=st.binary(min_size=12, max_size=12))
def test_a_waiting_testbed_is_never_mistaken_for_another(layout, unit, data, feed, images):
    named = data.draw(first_floats(layout, unit))
    connection = undecided(unit)
    sent = wire.frame_bytes(layout, images=images, **named)
    cut = data.draw(st.integers(0, len(sent)))
    for piece in (sent[:cut], sent[cut:]):
        feed(connection, piece)
    assert connection.silence_decides or connection.layout is DECIDED[layout]
    connection.peer_waits()
    assert connection.layout is DECIDED[layout]
    frame = connection.next_event()
    assert bytes(frame.left) + bytes(frame.right) == images
    assert (frame.time, frame.pitch) == (named["time"], named["pitch"])
    assert (frame.position is not None) == (layout is codec.AttitudeLayout.POSE)
    assert connection.next_event() is codec.NEED_DATA
    # The next frames arrive as before.
    following = {**named, "time": 2.0**20}
    feed(connection, wire.frame_bytes(layout, images=images, **following))
    assert connection.next_event().time == following["time"]


@given(chunks=st.lists(st.integers(1, 20000), max_size=8))
def test_the_captured_testbed_is_never_mistaken_for_another(chunks):
    data = CAPTURE.read_bytes()
    width, height = struct.unpack_from(">ii", data, 8)
    first = 48 + 2 * 3 * width * height + SIZES[codec.AttitudeLayout.PITCH_YAW]
    connection = codec.AutopilotConnection(layout=None)
    for sent in (data[:first], data[first:]):
        ends = [*itertools.accumulate(chunks), len(sent)]
        for begin, end in itertools.pairwise([0, *ends]):
            connection.receive_data(sent[begin:end])
        connection.peer_waits()
    connection.receive_eof()
    constants, *frames, end = wire.drain(connection)
    assert isinstance(constants, codec.Constants)
    assert isinstance(end, codec.ConnectionClosed)
    assert connection.layout is codec.AttitudeLayout.PITCH_YAW
    told = [(frame.pitch, frame.yaw, frame.time) for frame in frames]
    assert told == [(0.5 * f - 3, 2 - 1.25 * f, 0.125 * f) for f in range(3)]
    assert (constants.width, constants.height) == (width, height)
    for f, frame in enumerate(frames):
        for e, image in enumerate((frame.left, frame.right)):
            row, column = height - 1, width - 1
            assert image[:3] == bytes(((7 * f + 11 * e) % 256, (13 * f + 29 * e) % 256, (f + 53 * e) % 256))
            assert image[-1] == (row * column + f + 53 * e) % 256


def test_a_peer_that_does_not_wait_for_its_reply_is_refused():
    connection = undecided()
    connection.receive_data(wire.frame_bytes(codec.AttitudeLayout.PITCH_YAW) + b"\xff" * 40)
    with pytest.raises(RemoteProtocolError, match="heading is nan"):
        connection.next_event()


def test_a_frame_that_fits_none_is_refused():
    connection = undecided()
    connection.receive_data(wire.frame_bytes(codec.AttitudeLayout.PITCH_YAW, pitch=1e17))
    connection.peer_waits()
    with pytest.raises(RemoteProtocolError, match=r"pitch is 1e\+17"):
        connection.next_event()


def test_silence_in_the_middle_of_a_frame_decides_nothing():
    connection = undecided()
    frame = wire.frame_bytes(codec.AttitudeLayout.POSE)
    connection.receive_data(frame[:-1])
    connection.peer_waits()
    assert connection.next_event() is codec.NEED_DATA
    assert connection.layout is None
    connection.receive_data(frame[-1:])
    connection.peer_waits()
    assert isinstance(connection.next_event(), codec.SensorFrame)
