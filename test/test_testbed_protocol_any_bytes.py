# SPDX-License-Identifier: Apache-2.0
"""The testbed protocol, both roles: any bytes in any split, and any conversation."""

import struct

from hypothesis import given, settings
from hypothesis import strategies as st
from testbed_bytes import (
    CONSTANTS,
    FLOATS,
    FRAME,
    LAYOUTS,
    REPLY_BYTES,
    SMALL_LIMITS,
    UNITS,
    ImageSupply,
    converse,
    drain,
    feed_by_buffer,
    feed_by_buffers,
    feed_by_copy,
    frame_bytes,
    pack_constants,
    send_all,
    single_bytes,
    split,
)

from drone_bridge.testbed.codec import (
    AngleUnit,
    AutopilotConnection,
    ConnectionClosed,
    MotionParameters,
    SensorFrame,
    TestbedConnection,
)


def float32s(low=None, high=None):
    return st.floats(low, high, width=32, allow_nan=False, allow_infinity=False)


any_float = st.one_of(st.floats(width=32), st.sampled_from([0.0, 1.0, 90.0, -1.0, 720.0]))
any_int = st.one_of(
    st.integers(-(2**31), 2**31 - 1), st.sampled_from([0, 1, 2, 3, 4096, 4097, -1, 2**31 - 1, -(2**31), 2**16])
)
positive = float32s(0, 1000)


@st.composite
def announcements(draw, unit):
    """Constants that are fine, or nearly: one field may be anything."""
    angle = float32s(0.125, 3.125 if unit is AngleUnit.RADIANS else 179.875)
    values = [draw(angle), draw(angle), draw(st.integers(1, 4)), draw(st.integers(1, 3))]
    values += [draw(positive) for _ in range(8)]
    if draw(st.booleans()):
        index = draw(st.integers(0, 11))
        values[index] = draw(any_int if index in (2, 3) else any_float)
    return values


@st.composite
def streams(draw, layout, unit):
    """What a testbed could send, with a good chance that something is wrong with it."""
    values = draw(announcements(unit))
    data = pack_constants(values)
    width, height = values[2:4]
    if 1 <= width <= 4 and 1 <= height <= 4:
        time = 0.0
        for _ in range(draw(st.integers(0, 4))):
            time += draw(st.sampled_from([0.0, 0.125, 0.125, 0.125, -0.125]))
            floats = {name: draw(float32s(-3, 3)) for name in ("x", "y", "z", "heading", "yaw", "pitch", "roll")}
            if draw(st.integers(0, 5)) == 0:
                floats[draw(st.sampled_from(sorted(floats)))] = draw(any_float)
            data += frame_bytes(layout, draw(st.binary(min_size=6 * width * height, max_size=6 * width * height)))[
                : 6 * width * height
            ] + struct.pack(f">{len(FLOATS[layout])}f", *({**floats, "time": time}[name] for name in FLOATS[layout]))
    cut = draw(st.integers(0, 8))
    return (data[: len(data) // 2] if cut == 0 else data) + draw(st.sampled_from([b"", b"", b"", b"\0", b"abcde"]))


@st.composite
def stream_cases(draw):
    layout, unit = draw(st.sampled_from(LAYOUTS)), draw(st.sampled_from(UNITS))
    data = draw(st.one_of(streams(layout, unit), st.binary(max_size=200)))
    return layout, unit, data, draw(st.lists(st.integers(min_value=0), max_size=8))


@settings(max_examples=150)
@given(stream_cases())
def test_any_bytes_in_any_split_give_the_autopilot_the_same_events_or_an_error(case):
    layout, unit, data, cuts = case
    outcomes = []
    for pieces, feed, reuses_images in (
        ([data], feed_by_copy, False),
        (single_bytes(data), feed_by_copy, False),
        (split(data, cuts), feed_by_copy, False),
        (split(data, cuts), feed_by_buffer, False),
        (single_bytes(data), feed_by_buffer, False),
        ([data], feed_by_buffers, False),
        (split(data, cuts), feed_by_buffers, False),
        (single_bytes(data), feed_by_buffer, True),
        (single_bytes(data), feed_by_buffers, True),
    ):
        connection = AutopilotConnection(layout, unit, SMALL_LIMITS, reuses_images)
        with ImageSupply(SMALL_LIMITS).used() as supply:
            outcomes.append(converse(connection, pieces, feed))
        frames = sum(isinstance(event, SensorFrame) for event in outcomes[-1])
        assert len(supply.sizes) <= (2 if reuses_images else 2 * frames + 2)  # the next frame's at most
    assert all(outcome == outcomes[0] for outcome in outcomes)
    end = outcomes[0][-1]
    assert isinstance(end, str | ConnectionClosed)


def test_a_frame_sent_after_too_many_answers_gets_none_of_them():
    testbed = TestbedConnection()
    send_all(testbed, CONSTANTS, FRAME)
    testbed.receive_data(bytes(3 * REPLY_BYTES))
    reply, error = drain(testbed)
    assert reply == MotionParameters(0, 0, 0, 0)
    testbed.send(FRAME)
    assert drain(testbed) == [error]
