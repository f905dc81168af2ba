# SPDX-License-Identifier: Apache-2.0
"""Refusals of both roles of the testbed protocol: excessive sizes, and implausible values."""

import math
import struct
from dataclasses import fields

import pytest
import testbed_bytes as wire

from drone_bridge.testbed.codec import (
    AngleUnit,
    AttitudeLayout,
    AutopilotConnection,
    Constants,
    SizeLimits,
    TestbedConnection,
)
from drone_bridge.wire.events import RemoteProtocolError

# Sizes do not allocate memory.


@pytest.mark.parametrize(
    ("width", "height", "error"),
    [
        (2**31 - 1, 2**31 - 1, "width is 2147483647, not from 1 to 4096"),
        (1, 2**31 - 1, "height is 2147483647, not from 1 to 4096"),
        (4097, 1, "width is 4097"),
        (1, 4097, "height is 4097"),
        (0, 1, "width is 0"),
        (1, 0, "height is 0"),
        (-1, 1, "width is -1"),
        (-(2**31), -(2**31), "width is -2147483648"),
        (-64, -48, "width is -64"),
        (4096, 4096, "a frame of 4096 x 4096 has 100663308 bytes .*67108864"),
        (4096, 2731, "a frame of 4096 x 2731 has 67117068 bytes"),
    ],
)
def test_sizes_beyond_the_limits_are_refused_before_memory_is_taken(width, height, error):
    autopilot = AutopilotConnection()
    with wire.ImageSupply(SizeLimits(frame_bytes=0)).used() as supply:
        autopilot.receive_data(wire.constants_bytes(width=width, height=height) + bytes(1000))
    with pytest.raises(RemoteProtocolError, match=error):
        autopilot.next_event()
    assert not supply.sizes


def test_a_testbed_keeps_no_more_than_it_may_get():
    testbed = TestbedConnection()
    testbed.receive_data(bytes(10_000_000))
    assert len(testbed._buffer) < 64


# Implausible values.


def refusal(layout, unit, data):
    events = wire.converse(AutopilotConnection(layout, unit), [data])
    assert isinstance(events[-1], str), events
    return events[-1]


@pytest.mark.parametrize("value", wire.NON_FINITE)
@pytest.mark.parametrize("name", [field.name for field in fields(Constants) if field.name not in ("width", "height")])
def test_a_non_finite_constant_is_refused_by_name(name, value):
    text = refusal(AttitudeLayout.PITCH_YAW, AngleUnit.DEGREES, wire.constants_bytes(**{name: value}))
    assert f"{name} is {value}, not a finite number" in text


@pytest.mark.parametrize("value", wire.NON_FINITE)
@pytest.mark.parametrize(
    ("layout", "name"), [(layout, name) for layout in wire.LAYOUTS for name in wire.FLOATS[layout]]
)
def test_a_non_finite_float_of_a_frame_is_refused_by_name(layout, name, value):
    good = wire.frame_bytes(layout)
    text = refusal(layout, AngleUnit.DEGREES, wire.constants_bytes() + good + wire.frame_bytes(layout, **{name: value}))
    assert f"frame 1, {name} is {value}, not a finite number" in text


@pytest.mark.parametrize("value", wire.NON_FINITE)
@pytest.mark.parametrize("index", range(4))
def test_a_non_finite_answer_is_refused_by_name(index, value):
    testbed = TestbedConnection()
    wire.send_all(testbed, wire.CONSTANTS, wire.FRAME)
    floats = [1.0, 2.0, 3.0, 4.0]
    floats[index] = value
    testbed.receive_data(struct.pack(">ffff", *floats))
    name = ("pitch_rate", "roll_rate", "yaw_rate", "thrust")[index]
    with pytest.raises(RemoteProtocolError, match=f"{name} is {value}"):
        testbed.next_event()


@pytest.mark.parametrize(
    ("unit", "change", "error"),
    [
        (AngleUnit.DEGREES, {"horizontal_angle_of_view": 180}, "between 0 and 180 degrees"),
        (AngleUnit.DEGREES, {"vertical_angle_of_view": 0}, "vertical_angle_of_view is 0"),
        (AngleUnit.DEGREES, {"vertical_angle_of_view": -90}, "vertical_angle_of_view is -90"),
        (AngleUnit.RADIANS, {"horizontal_angle_of_view": 3.1415927}, "between 0 and 3.14159 radians"),
        (AngleUnit.RADIANS, {}, "horizontal_angle_of_view is 120"),
        (AngleUnit.DEGREES, {"weight": -1}, "weight is -1"),
        (AngleUnit.DEGREES, {"camera_separation": -0.25}, "camera_separation is -0.25"),
        (AngleUnit.DEGREES, {"max_yaw_rate": -720}, "max_yaw_rate is -720"),
    ],
)
def test_implausible_constants_are_refused(unit, change, error):
    assert error in refusal(AttitudeLayout.PITCH_YAW, unit, wire.constants_bytes(**change))


@pytest.mark.parametrize("layout", wire.LAYOUTS)
def test_time_may_stall_but_not_go_back(layout):
    start = wire.constants_bytes() + b"".join(wire.frame_bytes(layout, time=time) for time in (0.5, 0.5, 1000.25))
    assert len(wire.converse(AutopilotConnection(layout), [start])) == 5
    text = refusal(layout, AngleUnit.DEGREES, start + wire.frame_bytes(layout, time=1000.125))
    assert "frame 3" in text
    assert "1000.25 s to 1000.125 s" in text


def test_a_failed_testbed_connection_stays_failed():
    testbed = TestbedConnection()
    wire.send_all(testbed, wire.CONSTANTS, wire.FRAME)
    testbed.receive_data(struct.pack(">8f", math.nan, 2, 3, 4, 5, 6, 7, 8))  # a valid reply after an invalid one
    (error,) = wire.drain(testbed)
    testbed.receive_data(struct.pack(">4f", 1, 2, 3, 4))
    testbed.receive_eof()
    assert [wire.drain(testbed) for _ in range(3)] == 3 * [[error]]
