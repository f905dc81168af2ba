# SPDX-License-Identifier: Apache-2.0
"""The testbed protocol, both roles: recorded bytes, documented bytes, and any bytes at all."""

import itertools
import math
import struct
from array import array
from dataclasses import astuple, fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drone_bridge.protocols.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from drone_bridge.protocols.testbed import (
    NEED_DATA,
    AngleUnit,
    AttitudeLayout,
    AutopilotConnection,
    ConnectionClosed,
    Constants,
    Limits,
    MotionParameters,
    SensorFrame,
    TestbedConnection,
)

CAPTURES = Path(__file__).parent / "captures"
TESTBED_TO_AUTOPILOT = (CAPTURES / "testbed_to_autopilot.bin").read_bytes()
AUTOPILOT_TO_TESTBED = (CAPTURES / "autopilot_to_testbed.bin").read_bytes()

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


def pack_constants(values):
    return struct.pack(">ffiiffffffff", *values)


def constants_bytes(**changes):
    return pack_constants({**dict(zip(Constants.__slots__, astuple(CONSTANTS), strict=True)), **changes}.values())


def frame_bytes(layout=AttitudeLayout.PITCH_YAW, images=LEFT + RIGHT, **changes):
    values = {"x": 1, "y": 2, "z": 3, "heading": 5, "yaw": 5, "pitch": -3, "roll": 4, "time": 0.5, **changes}
    names = FLOATS[layout]
    return images + struct.pack(f">{len(names)}f", *(values[name] for name in names))


def plain(event):
    """An event in values that compare, as the memory of images may be used again later."""
    if isinstance(event, SensorFrame):
        return replace(event, left=bytes(event.left), right=bytes(event.right))
    return event


def drain(connection):
    """All the events there are; a broken protocol counts as the last one."""
    events = []
    try:
        while (event := connection.next_event()) is not NEED_DATA:
            events.append(plain(event))
            assert len(events) < 1000, "draining does not end"
    except RemoteProtocolError as error:
        events.append(str(error))
    return events


def feed_by_buffer(connection, data):
    """Write data where the connection asks for it, as a link does."""
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
    """Write data over all the memory that the connection offers, as a link does that reads a frame with one call."""
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
    """Feed the pieces and the end; return every event. Nothing but the same error may follow an error."""
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


# What was recorded from another implementation.


def documented_image(frame, eye):
    row, column = np.mgrid[0:48, 0:64]
    red = 7 * frame + 3 * row + 5 * column + 11 * eye
    green = 13 * frame + row + 2 * column + 29 * eye
    blue = row * column + frame + 53 * eye
    return (np.stack([red, green, blue], axis=-1) % 256).astype(np.uint8).tobytes()


def float32(value):
    return struct.unpack(">f", struct.pack(">f", value))[0]


RECORDED_CONSTANTS = Constants(
    120, float32(104.8), 64, 48, 0.25, 1.5, float32(9.81), float32(0.2), 25.0, 720.0, 360.0, 180.0
)
RECORDED_FRAMES = [
    SensorFrame(documented_image(f, 0), documented_image(f, 1), time=0.125 * f, pitch=0.5 * f - 3, yaw=2 - 1.25 * f)
    for f in range(3)
]
RECORDED_REPLY = MotionParameters(10.5, -20.25, 30.125, float32(14.715))


@pytest.mark.parametrize("feed", [feed_by_copy, feed_by_buffer, feed_by_buffers])
@pytest.mark.parametrize(
    "pieces",
    [
        [TESTBED_TO_AUTOPILOT],
        single_bytes(TESTBED_TO_AUTOPILOT),
        split(TESTBED_TO_AUTOPILOT, range(47, 60_000, 1448)),
        split(TESTBED_TO_AUTOPILOT, [1, 47, 48, 49, 48 + 9216, 48 + 2 * 9216, 48 + 2 * 9216 + 12, 40_000]),
    ],
    ids=["whole", "bytes", "segments", "edges"],
)
def test_recorded_testbed_decodes_to_the_documented_pixels_and_floats(pieces, feed):
    events = converse(AutopilotConnection(), pieces, feed)
    assert events == [RECORDED_CONSTANTS, *RECORDED_FRAMES, ConnectionClosed()]


@settings(max_examples=20)
@given(
    st.lists(st.integers(min_value=0), max_size=40), st.sampled_from([feed_by_copy, feed_by_buffer, feed_by_buffers])
)
def test_recorded_testbed_decodes_the_same_in_any_split(cuts, feed):
    events = converse(AutopilotConnection(), split(TESTBED_TO_AUTOPILOT, cuts), feed)
    assert events == [RECORDED_CONSTANTS, *RECORDED_FRAMES, ConnectionClosed()]


def test_recorded_testbed_encodes_to_the_same_bytes():
    events = converse(AutopilotConnection(), [TESTBED_TO_AUTOPILOT])[:-1]
    testbed = TestbedConnection()
    data = testbed.send(events[0])
    for frame in events[1:]:
        data += testbed.send(frame)
        testbed.receive_data(AUTOPILOT_TO_TESTBED[:REPLY_BYTES])
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
            # One answer may come ahead of its frame, so a segment may bring the end of one and the start of the next.
            testbed.receive_data(received[: min(size, 2 * REPLY_BYTES)])
            received = received[min(size, 2 * REPLY_BYTES) :]
        events.append(event)
    assert events == 3 * [RECORDED_REPLY]
    assert not received
    testbed.receive_eof()
    assert testbed.next_event() == ConnectionClosed()


def test_recorded_autopilot_encodes_to_the_same_bytes():
    autopilot = AutopilotConnection()
    autopilot.receive_data(TESTBED_TO_AUTOPILOT)
    assert send_all(autopilot, *3 * [RECORDED_REPLY]) == AUTOPILOT_TO_TESTBED


# Every float in its place.


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_puts_the_floats_where_they_are_documented(layout):
    testbed = TestbedConnection(layout)
    data = send_all(testbed, CONSTANTS, FRAME)
    assert data == constants_bytes() + frame_bytes(layout)
    constants, frame = converse(AutopilotConnection(layout), [data])[:2]
    assert constants == CONSTANTS
    expected = {
        AttitudeLayout.PITCH_YAW: replace(FRAME, roll=None, position=None),
        AttitudeLayout.PITCH_ROLL: replace(FRAME, yaw=None, position=None),
        AttitudeLayout.POSE: FRAME,
    }
    assert frame == expected[layout]


def test_the_reply_has_pitch_roll_yaw_thrust():
    autopilot = AutopilotConnection()
    autopilot.receive_data(constants_bytes() + frame_bytes())
    assert autopilot.send(REPLY) == struct.pack(">ffff", 1, -2, 3.5, 9.8125)


def test_the_images_are_the_very_arrays_that_were_supplied():
    arrays = []

    def new_image(size):
        arrays.append(array("B", bytes(size)))
        return arrays[-1]

    autopilot = AutopilotConnection(new_image=new_image)
    feed_by_buffer(autopilot, constants_bytes() + frame_bytes())
    _, frame = autopilot.next_event(), autopilot.next_event()
    assert frame.left is arrays[0]
    assert frame.right is arrays[1]


# Any bytes in any split.


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


SMALL_LIMITS = Limits(width=40, height=30, frame_bytes=2000)


class ImageSupply:
    """Supplies images, and holds that nobody asks for more than the limits allow."""

    def __init__(self, limits):
        self._limits = limits
        self.sizes = []

    def __call__(self, size):
        assert 0 < size <= self._limits.frame_bytes / 2
        self.sizes.append(size)
        return array("B", bytes(size))


@settings(max_examples=150)
@given(stream_cases())
def test_any_bytes_in_any_split_give_the_autopilot_the_same_events_or_an_error(case):
    layout, unit, data, cuts = case
    outcomes = []
    for pieces, feed in (
        ([data], feed_by_copy),
        (single_bytes(data), feed_by_copy),
        (split(data, cuts), feed_by_copy),
        (split(data, cuts), feed_by_buffer),
        (single_bytes(data), feed_by_buffer),
        ([data], feed_by_buffers),
        (split(data, cuts), feed_by_buffers),
    ):
        supply = ImageSupply(SMALL_LIMITS)
        connection = AutopilotConnection(layout, unit, SMALL_LIMITS, supply)
        outcomes.append(converse(connection, pieces, feed))
        frames = sum(isinstance(event, SensorFrame) for event in outcomes[-1])
        assert len(supply.sizes) <= 2 * frames + 2  # the next frame's at most
    assert all(outcome == outcomes[0] for outcome in outcomes)
    end = outcomes[0][-1]
    assert isinstance(end, str | ConnectionClosed)


@settings(max_examples=150)
@given(
    st.one_of(st.binary(max_size=80), st.lists(any_float, max_size=12).map(lambda f: struct.pack(f">{len(f)}f", *f))),
    st.lists(st.integers(min_value=0), max_size=6),
    st.sampled_from(["constants", "frame", "nothing"]),
)
def test_any_bytes_in_any_split_give_the_testbed_the_same_events_or_an_error(data, cuts, sent):
    outcomes = []
    for pieces in ([data], single_bytes(data), split(data, cuts)):
        testbed = TestbedConnection()
        send_all(testbed, *{"nothing": [], "constants": [CONSTANTS], "frame": [CONSTANTS, FRAME]}[sent])
        outcomes.append(converse(testbed, pieces))
        assert len(testbed._buffer) <= 2 * REPLY_BYTES + 1
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert isinstance(outcomes[0][-1], str | ConnectionClosed)


@settings(max_examples=60)
@given(st.lists(any_float, max_size=24), st.lists(st.integers(min_value=0), max_size=10))
def test_a_testbed_in_lockstep_survives_any_answers(floats, cuts):
    testbed = TestbedConnection()
    send_all(testbed, CONSTANTS, FRAME)
    answers = []
    for piece in split(struct.pack(f">{len(floats)}f", *floats), cuts):
        testbed.receive_data(piece)
        for event in drain(testbed):
            answers.append(event)
            if isinstance(event, MotionParameters):
                testbed.send(FRAME)
    replies = [answer for answer in answers if isinstance(answer, MotionParameters)]
    assert [value for reply in replies for value in astuple(reply)] == floats[: 4 * len(replies)]
    errors = answers[len(replies) :]  # so no reply came behind an error
    assert all(isinstance(error, str) and error == errors[0] for error in errors)


def test_a_frame_sent_after_too_many_answers_gets_none_of_them():
    testbed = TestbedConnection()
    send_all(testbed, CONSTANTS, FRAME)
    testbed.receive_data(bytes(3 * REPLY_BYTES))
    reply, error = drain(testbed)
    assert reply == MotionParameters(0, 0, 0, 0)
    testbed.send(FRAME)
    assert drain(testbed) == [error]


def image_pairs(width, height):
    return st.tuples(*2 * [st.binary(min_size=3 * width * height, max_size=3 * width * height)])


@st.composite
def conversations(draw):
    layout, unit = draw(st.sampled_from(LAYOUTS)), draw(st.sampled_from(UNITS))
    half_turn = 180.0 if unit is AngleUnit.DEGREES else 3.125
    angle_of_view = float32s(0.125, half_turn - 0.0625)
    width, height = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    constants = Constants(
        draw(angle_of_view),
        draw(angle_of_view),
        width,
        height,
        *(draw(float32s(0)) for _ in range(2)),
        draw(float32s()),  # gravity, which some send negative
        *(draw(float32s(0)) for _ in range(5)),
    )
    times = sorted(draw(st.lists(float32s(), max_size=3)))
    names = {"x", "y", "z", "heading", "yaw", "roll"} & set(FLOATS[layout])
    frames = []
    for time in times:
        left, right = draw(image_pairs(width, height))
        values = {name: draw(float32s()) for name in sorted(names)}
        position = (values["x"], values["y"], values["z"]) if "x" in values else None
        yaw = values.get("heading", values.get("yaw"))
        pitch = draw(float32s(-half_turn, half_turn))
        frames.append(SensorFrame(left, right, time, pitch, values.get("roll"), yaw, position))
    replies = [MotionParameters(*(draw(float32s()) for _ in range(4))) for _ in times]
    return layout, unit, constants, frames, replies


@settings(max_examples=80)
@given(conversations())
def test_any_valid_conversation_arrives_as_it_was_sent(conversation):
    layout, unit, constants, frames, replies = conversation
    testbed = TestbedConnection(layout, unit)
    autopilot = AutopilotConnection(layout, unit)
    autopilot.receive_data(testbed.send(constants))
    assert autopilot.next_event() == constants
    for frame, reply in zip(frames, replies, strict=True):
        assert not autopilot.must_answer
        autopilot.receive_data(testbed.send(frame))
        assert plain(autopilot.next_event()) == frame
        assert autopilot.must_answer
        testbed.receive_data(autopilot.send(reply))
        assert testbed.next_event() == reply
    for connection in (testbed, autopilot):
        connection.receive_eof()
        assert drain(connection) == [ConnectionClosed()]


def near(edge):
    return st.one_of(st.floats(edge * 0.9999999, edge * 1.0002), st.floats(0, 1e-40), st.floats())


@settings(max_examples=100)
@given(st.sampled_from(UNITS).flatmap(lambda unit: st.tuples(st.just(unit), *2 * [near(unit.half_turn)])), st.floats())
@example((AngleUnit.DEGREES, math.nextafter(180, 0), math.nextafter(180 * 1.0001, 0)), 0)
@example((AngleUnit.RADIANS, math.nextafter(math.pi, 0), math.nextafter(math.pi * 1.0001, 0)), 0)
@example((AngleUnit.DEGREES, 1e-60, 0), 0)
def test_what_a_testbed_agrees_to_send_no_autopilot_refuses(unit_and_angles, time):
    """Rounding to float32 must not turn what was allowed into what is not."""
    unit, angle_of_view, pitch = unit_and_angles
    testbed, autopilot = TestbedConnection(angle_unit=unit), AutopilotConnection(angle_unit=unit)
    usual = replace(CONSTANTS, horizontal_angle_of_view=2, vertical_angle_of_view=2)
    try:
        autopilot.receive_data(testbed.send(replace(usual, vertical_angle_of_view=angle_of_view)))
    except LocalProtocolError:
        autopilot.receive_data(testbed.send(usual))
    assert isinstance(autopilot.next_event(), Constants)
    try:
        autopilot.receive_data(testbed.send(replace(FRAME, pitch=pitch, time=time)))
    except LocalProtocolError:
        return
    assert isinstance(autopilot.next_event(), SensorFrame)


# Nothing is allocated because a peer says so.


@pytest.mark.parametrize(
    ("width", "height", "complaint"),
    [
        (2**31 - 1, 2**31 - 1, "width is 2147483647, and has to be from 1 to 4096 pixels"),
        (1, 2**31 - 1, "height is 2147483647, and has to be from 1 to 4096 pixels"),
        (4097, 1, "width is 4097"),
        (1, 4097, "height is 4097"),
        (0, 1, "width is 0"),
        (1, 0, "height is 0"),
        (-1, 1, "width is -1"),
        (-(2**31), -(2**31), "width is -2147483648"),
        (-64, -48, "width is -64"),
        (4096, 4096, "a frame of 4096 x 4096 has 100663308 bytes, and 67108864 are allowed"),
        (4096, 2731, "a frame of 4096 x 2731 has 67117068 bytes"),
    ],
)
def test_sizes_beyond_the_limits_are_refused_before_memory_is_taken(width, height, complaint):
    supply = ImageSupply(Limits(frame_bytes=0))
    autopilot = AutopilotConnection(new_image=supply)
    autopilot.receive_data(constants_bytes(width=width, height=height) + bytes(1000))
    with pytest.raises(RemoteProtocolError, match=complaint):
        autopilot.next_event()
    assert not supply.sizes


def test_the_largest_frame_that_is_allowed_is_allowed():
    sizes = []
    autopilot = AutopilotConnection(new_image=lambda size: sizes.append(size) or array("B", [0]))
    feed_by_buffer(autopilot, constants_bytes(width=4096, height=2730))
    assert autopilot.next_event().image_bytes == 3 * 4096 * 2730
    autopilot.get_buffer()
    assert sizes == 2 * [3 * 4096 * 2730]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_limit_of_a_frame_counts_the_floats_of_its_layout(layout):
    exact = 12 + 4 * len(FLOATS[layout])
    for limit, is_allowed in ((exact, True), (exact - 1, False)):
        autopilot = AutopilotConnection(layout, limits=Limits(frame_bytes=limit))
        autopilot.receive_data(constants_bytes())
        events = drain(autopilot)
        assert (events == [CONSTANTS]) is is_allowed
        assert is_allowed or f"has {exact} bytes, and {limit} are allowed" in events[0]


def test_the_limits_hold_for_what_we_send():
    with pytest.raises(LocalProtocolError, match="width is 41, and has to be from 1 to 40 pixels"):
        TestbedConnection(limits=SMALL_LIMITS).send(replace(CONSTANTS, width=41))


def test_a_testbed_keeps_no_more_than_it_may_get():
    testbed = TestbedConnection()
    testbed.receive_data(bytes(10_000_000))
    assert len(testbed._buffer) < 64


# What can't be meant.


def refusal(layout, unit, data):
    events = converse(AutopilotConnection(layout, unit), [data])
    assert isinstance(events[-1], str), events
    return events[-1]


@pytest.mark.parametrize("value", NON_FINITE)
@pytest.mark.parametrize("name", [field.name for field in fields(Constants) if field.name not in ("width", "height")])
def test_a_non_finite_constant_is_refused_by_name(name, value):
    text = refusal(AttitudeLayout.PITCH_YAW, AngleUnit.DEGREES, constants_bytes(**{name: value}))
    assert text == f"In the testbed's constants, {name} is {value}, and has to be a finite number."


@pytest.mark.parametrize("value", NON_FINITE)
@pytest.mark.parametrize(("layout", "name"), [(layout, name) for layout in LAYOUTS for name in FLOATS[layout]])
def test_a_non_finite_float_of_a_frame_is_refused_by_name(layout, name, value):
    good = frame_bytes(layout)
    text = refusal(layout, AngleUnit.DEGREES, constants_bytes() + good + frame_bytes(layout, **{name: value}))
    assert text == f"In the testbed's frame 1, {name} is {value}, and has to be a finite number."


@pytest.mark.parametrize("value", NON_FINITE)
@pytest.mark.parametrize("index", range(4))
def test_a_non_finite_answer_is_refused_by_name(index, value):
    testbed = TestbedConnection()
    send_all(testbed, CONSTANTS, FRAME)
    floats = [1.0, 2.0, 3.0, 4.0]
    floats[index] = value
    testbed.receive_data(struct.pack(">ffff", *floats))
    name = ("pitch_rate", "roll_rate", "yaw_rate", "thrust")[index]
    with pytest.raises(RemoteProtocolError, match=f"In the autopilot's answer, {name} is {value}"):
        testbed.next_event()


@pytest.mark.parametrize(
    ("unit", "change", "complaint"),
    [
        (AngleUnit.DEGREES, {"horizontal_angle_of_view": 180}, "between 0 and 180 degrees"),
        (AngleUnit.DEGREES, {"vertical_angle_of_view": 0}, "vertical_angle_of_view is 0"),
        (AngleUnit.DEGREES, {"vertical_angle_of_view": -90}, "vertical_angle_of_view is -90"),
        (AngleUnit.RADIANS, {"horizontal_angle_of_view": 3.1415927}, "between 0 and 3.14159 radians"),
        (AngleUnit.RADIANS, {}, "horizontal_angle_of_view is 120"),
        (AngleUnit.DEGREES, {"weight": -1}, "weight is -1, and can't be negative"),
        (AngleUnit.DEGREES, {"camera_separation": -0.25}, "camera_separation is -0.25"),
        (AngleUnit.DEGREES, {"max_yaw_rate": -720}, "max_yaw_rate is -720"),
    ],
)
def test_constants_that_no_testbed_can_mean_are_refused(unit, change, complaint):
    assert complaint in refusal(AttitudeLayout.PITCH_YAW, unit, constants_bytes(**change))


def test_negative_gravity_is_accepted():
    assert converse(AutopilotConnection(), [constants_bytes(gravity=-9.8125)])[0].gravity == -9.8125


@pytest.mark.parametrize(
    ("unit", "allowed", "refused"), [(AngleUnit.DEGREES, 180.0, 180.1), (AngleUnit.RADIANS, float32(math.pi), 3.15)]
)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sign", [1, -1])
def test_pitch_is_at_most_half_a_turn(layout, unit, allowed, refused, sign):
    angles = {"horizontal_angle_of_view": 2, "vertical_angle_of_view": 2}
    start = constants_bytes(**angles) + frame_bytes(layout, pitch=sign * allowed)
    assert converse(AutopilotConnection(layout, unit), [start])[1].pitch == sign * allowed
    text = refusal(layout, unit, start + frame_bytes(layout, pitch=sign * refused))
    assert f"In the testbed's frame 1, pitch is {sign * refused:g}, and has to be within {unit.half_turn:g}" in text


@pytest.mark.parametrize("layout", LAYOUTS)
def test_time_may_stand_still_but_not_run_back(layout):
    start = constants_bytes() + b"".join(frame_bytes(layout, time=time) for time in (0.5, 0.5, 1000.25))
    assert len(converse(AutopilotConnection(layout), [start])) == 5
    text = refusal(layout, AngleUnit.DEGREES, start + frame_bytes(layout, time=1000.125))
    assert text == "In the testbed's frame 3, time runs back from 1000.25 s to 1000.125 s."


@pytest.mark.parametrize("feed", [feed_by_copy, feed_by_buffer, feed_by_buffers])
def test_a_failed_autopilot_connection_stays_failed(feed):
    autopilot = AutopilotConnection()
    feed(autopilot, constants_bytes() + frame_bytes() + frame_bytes(time=0))
    constants, frame, error = drain(autopilot)
    assert (constants, frame.time) == (CONSTANTS, 0.5)
    feed(autopilot, frame_bytes(time=9))
    autopilot.receive_eof()
    assert [drain(autopilot) for _ in range(3)] == 3 * [[error]]
    for get in (autopilot.get_buffer, autopilot.get_buffers):
        with pytest.raises(RemoteProtocolError, match="runs back"):
            get()


def test_a_failed_testbed_connection_stays_failed():
    testbed = TestbedConnection()
    send_all(testbed, CONSTANTS, FRAME)
    testbed.receive_data(struct.pack(">8f", math.nan, 2, 3, 4, 5, 6, 7, 8))  # a good answer behind a bad one
    (error,) = drain(testbed)
    testbed.receive_data(struct.pack(">4f", 1, 2, 3, 4))
    testbed.receive_eof()
    assert [drain(testbed) for _ in range(3)] == 3 * [[error]]


# The end.


def test_the_autopilot_tells_a_clean_end_from_a_truncated_one_at_every_byte():
    data = constants_bytes() + frame_bytes() + frame_bytes(time=1)
    frame_size = 12 + 12
    for count in range(len(data) + 1):
        events = converse(AutopilotConnection(), [data[:count]])
        inside, frame = (count - CONSTANTS_BYTES) % frame_size, (count - CONSTANTS_BYTES) // frame_size
        if count < CONSTANTS_BYTES:
            expected = f"The testbed closed inside its constants, after {count} of 48 bytes."
        elif inside:
            expected = f"The testbed closed inside frame {frame}, after {inside} of 24 bytes."
        else:
            expected = ConnectionClosed()
        assert events[-1] == expected, count


def test_the_testbed_tells_a_clean_end_from_a_truncated_one_at_every_byte():
    data = struct.pack(">ffff", *astuple(REPLY))
    for is_waiting in (True, False):
        for count in range(len(data) + 1):
            testbed = TestbedConnection()
            send_all(testbed, CONSTANTS, *[FRAME] * is_waiting)
            events = converse(testbed, [data[:count]])
            is_clean = count in (0, 16)
            expected = (
                ConnectionClosed() if is_clean else f"The autopilot closed inside an answer, after {count} of 16 bytes."
            )
            assert events[-1] == expected
            assert events[:-1] == ([REPLY] if is_waiting and count == 16 else [])


@pytest.mark.parametrize("connection", [AutopilotConnection(), TestbedConnection()])
def test_the_end_is_told_once_so_that_draining_ends(connection):
    if isinstance(connection, AutopilotConnection):
        connection.receive_data(constants_bytes())
        connection.next_event()
    connection.receive_eof()
    connection.receive_eof()
    assert [connection.next_event() for _ in range(3)] == [ConnectionClosed(), NEED_DATA, NEED_DATA]


def test_the_peer_owes_us_the_rest_of_what_it_began():
    data = constants_bytes() + frame_bytes() + frame_bytes(time=1)
    autopilot = AutopilotConnection()
    edges = (48, 72, 96)
    for count in range(len(data)):
        assert autopilot.inside_message is (count not in edges), count
        autopilot.get_buffers()  # to ask where the next bytes belong changes nothing
        assert autopilot.inside_message is (count not in edges), count
        feed_by_buffer(autopilot, data[count : count + 1])
        assert autopilot.inside_message is (count + 1 not in edges), count


# What we must not send.


def test_constants_come_first_and_once():
    testbed = TestbedConnection()
    with pytest.raises(LocalProtocolError, match="The constants have to be sent before the first frame"):
        testbed.send(FRAME)
    testbed.send(CONSTANTS)
    with pytest.raises(LocalProtocolError, match="The constants are sent once"):
        testbed.send(CONSTANTS)


def test_a_frame_waits_for_the_answer_to_the_one_before():
    testbed = TestbedConnection()
    send_all(testbed, CONSTANTS, FRAME)
    with pytest.raises(LocalProtocolError, match="only when the one before has been answered"):
        testbed.send(FRAME)
    testbed.receive_data(struct.pack(">ffff", *astuple(REPLY)))
    assert testbed.next_event() == REPLY
    assert testbed.send(FRAME) == frame_bytes()


@pytest.mark.parametrize(("side", "size"), [("left", 5), ("left", 7), ("right", 0), ("right", 12)])
def test_an_image_has_the_size_that_was_announced(side, size):
    testbed = TestbedConnection()
    testbed.send(CONSTANTS)
    with pytest.raises(LocalProtocolError, match=f"The {side} image has {size} bytes, and 2 x 1 pixels are 6"):
        testbed.send(replace(FRAME, **{side: bytes(size)}))
    assert testbed.send(FRAME) == frame_bytes()  # nothing of the refused one counts


def test_images_can_be_arrays_of_several_dimensions():
    pixels = np.frombuffer(LEFT, np.uint8).reshape(1, 2, 3)
    testbed = TestbedConnection()
    testbed.send(CONSTANTS)
    assert testbed.send(replace(FRAME, left=pixels.data, right=array("B", RIGHT))) == frame_bytes()


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
    testbed.send(CONSTANTS)
    with pytest.raises(LocalProtocolError, match=f"The layout {layout.value} carries {name}, and the frame has none"):
        testbed.send(replace(FRAME, **{missing: None}))


@pytest.mark.parametrize("value", [*NON_FINITE, 1e39, -1e39])
def test_only_numbers_that_fit_the_wire_are_sent(value):
    complaint = "has to be a finite number" if value in NON_FINITE or math.isnan(value) else "does not fit the wire"
    testbed = TestbedConnection(AttitudeLayout.POSE)
    with pytest.raises(LocalProtocolError, match=f"drag.*{complaint}|drag.*negative"):
        testbed.send(replace(CONSTANTS, drag=value))
    testbed.send(CONSTANTS)
    for change in ({"yaw": value}, {"time": value}, {"position": (0, value, 0)}, {"pitch": value}, {"roll": value}):
        with pytest.raises(LocalProtocolError, match=complaint):
            testbed.send(replace(FRAME, **change))
    autopilot = AutopilotConnection()
    autopilot.receive_data(constants_bytes() + frame_bytes())
    for name in MotionParameters.__slots__:
        for send in (autopilot.send, autopilot.finish):
            with pytest.raises(LocalProtocolError, match=f"{name}.*{complaint}"):
                send(replace(REPLY, **{name: value}))
    assert autopilot.must_answer
    assert autopilot.send(REPLY) == struct.pack(">ffff", *astuple(REPLY))


@pytest.mark.parametrize("change", [{"pitch": 181}, {"pitch": -200}, {"time": 0.25}])
def test_a_frame_that_an_autopilot_would_refuse_is_not_sent(change):
    testbed = TestbedConnection()
    send_all(testbed, CONSTANTS, FRAME)
    testbed.receive_data(bytes(REPLY_BYTES))
    testbed.next_event()
    with pytest.raises(LocalProtocolError, match=r"pitch is|time runs back from 0\.5 s to 0\.25 s"):
        testbed.send(replace(FRAME, **change))
    assert testbed.send(FRAME) == frame_bytes()


def test_an_answer_needs_a_frame():
    autopilot = AutopilotConnection()
    with pytest.raises(LocalProtocolError, match="no frame is waiting"):
        autopilot.send(REPLY)
    autopilot.receive_data(constants_bytes())
    with pytest.raises(LocalProtocolError, match="no frame is waiting"):
        autopilot.send(REPLY)
    autopilot.receive_data(frame_bytes())
    autopilot.send(REPLY)
    with pytest.raises(LocalProtocolError, match="no frame is waiting"):
        autopilot.send(REPLY)


@pytest.mark.parametrize("frames", [0, 1, 2])
def test_a_last_answer_can_be_left_behind_at_any_moment_but_once(frames):
    autopilot = AutopilotConnection()
    with pytest.raises(LocalProtocolError, match="after the constants have come"):
        autopilot.finish(REPLY)
    autopilot.receive_data(constants_bytes())
    for _ in range(frames):
        assert not autopilot.must_answer
        autopilot.receive_data(frame_bytes())
        if _ < 1:
            autopilot.send(REPLY)
    assert autopilot.finish(REPLY) == struct.pack(">ffff", *astuple(REPLY))
    assert not autopilot.must_answer
    for send in (autopilot.finish, autopilot.send):
        with pytest.raises(LocalProtocolError):
            send(REPLY)


def test_an_answer_may_come_ahead_of_its_frame():
    testbed = TestbedConnection()
    testbed.send(CONSTANTS)
    testbed.receive_data(struct.pack(">ffff", *astuple(REPLY)))
    assert testbed.next_event() is NEED_DATA
    testbed.send(FRAME)
    assert testbed.next_event() == REPLY
    assert testbed.next_event() is NEED_DATA


def test_only_one_answer_may_come_ahead_of_its_frame():
    testbed = TestbedConnection()
    send_all(testbed, CONSTANTS, FRAME)
    testbed.receive_data(bytes(2 * REPLY_BYTES))
    assert testbed.next_event() == MotionParameters(0, 0, 0, 0)
    assert testbed.next_event() is NEED_DATA
    testbed.receive_data(b"\0")
    with pytest.raises(RemoteProtocolError, match="more than the one answer of 16 bytes"):
        testbed.next_event()


def test_both_errors_are_protocol_errors():
    assert issubclass(LocalProtocolError, ProtocolError)
    assert issubclass(RemoteProtocolError, ProtocolError)
    assert repr(NEED_DATA) == "NEED_DATA"
