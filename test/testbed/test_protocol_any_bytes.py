# SPDX-License-Identifier: Apache-2.0
"""The testbed protocol, both roles: arbitrary bytes in arbitrary pieces, and arbitrary conversations."""

import struct
from functools import partial

import testbed_bytes as wire
from hypothesis import given
from hypothesis import strategies as st

from drone_bridge.testbed.codec import (
    AutopilotConnection,
    ConnectionClosed,
    MotionParameters,
    SensorFrame,
    TestbedConnection,
)


@st.composite
def stream_cases(draw):
    """A testbed's bytes, truncated and with a few other bytes, and their pieces."""
    layout, unit = draw(st.sampled_from(wire.LAYOUTS)), draw(st.sampled_from(wire.UNITS))
    angle = unit.half_turn / 2
    data = wire.constants_bytes(horizontal_angle_of_view=angle, vertical_angle_of_view=angle)
    data += b"".join(wire.frame_bytes(layout, pitch=1.0, time=time) for time in (0.0, 0.125, 0.125, 0.25))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(data)))
        junk = draw(st.one_of(st.binary(max_size=8), st.floats(width=32).map(partial(struct.pack, ">f"))))
        data = data[:at] + junk + data[at + len(junk) :]
    return (
        layout,
        unit,
        data[: draw(st.integers(0, 2 * len(data)))],
        draw(st.lists(st.integers(min_value=0), max_size=8)),
    )


@given(stream_cases())
def test_any_bytes_in_any_split_give_the_same_events_or_an_error(case):
    layout, unit, data, cuts = case
    outcomes = []
    for pieces, feed, reuses_images in (
        ([data], wire.feed_by_copy, False),
        (wire.single_bytes(data), wire.feed_by_copy, False),
        (wire.split(data, cuts), wire.feed_by_copy, False),
        (wire.split(data, cuts), wire.feed_by_buffer, False),
        (wire.single_bytes(data), wire.feed_by_buffer, False),
        ([data], wire.feed_by_buffers, False),
        (wire.split(data, cuts), wire.feed_by_buffers, False),
        (wire.single_bytes(data), wire.feed_by_buffer, True),
        (wire.single_bytes(data), wire.feed_by_buffers, True),
    ):
        connection = AutopilotConnection(layout, unit, wire.SMALL_LIMITS, reuses_images)
        with wire.ImageSupply(wire.SMALL_LIMITS).used() as supply:
            outcomes.append(wire.converse(connection, pieces, feed))
        frames = sum(isinstance(event, SensorFrame) for event in outcomes[-1])
        assert len(supply.sizes) <= (2 if reuses_images else 2 * frames + 2)  # at most the next frame's
    assert all(outcome == outcomes[0] for outcome in outcomes)
    end = outcomes[0][-1]
    assert isinstance(end, str | ConnectionClosed)


def test_a_frame_sent_after_too_many_answers_gets_none_of_them():
    testbed = TestbedConnection()
    wire.send_all(testbed, wire.CONSTANTS, wire.FRAME)
    testbed.receive_data(bytes(3 * wire.REPLY_BYTES))
    reply, error = wire.drain(testbed)
    assert reply == MotionParameters(0, 0, 0, 0)
    testbed.send(wire.FRAME)
    assert wire.drain(testbed) == [error]
