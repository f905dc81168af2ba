# SPDX-License-Identifier: Apache-2.0
"""Codec of the robot protocol: recorded and specified bytes, other programs' layouts, refusals."""

import struct
import unicodedata

import pytest
from drained import drain
from hypothesis import given
from hypothesis import strategies as st
from repository import CAPTURES

from drone_bridge.robot import codec
from drone_bridge.wire.events import LocalProtocolError

DRIVER_TO_ROBOT = (CAPTURES / "driver_to_robot.bin").read_bytes()
ROBOT_TO_DRIVER = (CAPTURES / "robot_to_driver.bin").read_bytes()
DRIVER_TO_NXT = (CAPTURES / "driver_to_nxt_adapter.bin").read_bytes()
NXT_TO_DRIVER = (CAPTURES / "nxt_adapter_to_driver.bin").read_bytes()
TYPES = (codec.SubsystemType.SKID_STEER, codec.SubsystemType.LIGHTS, 9)
DRIVE = codec.Subsystem(
    codec.SubsystemType.SKID_STEER,
    "drive",
    "alice",
    codec.MotorSensors(0, 1, 2, 3),
    codec.MotorSensors(0x1234, 0xFFFF, 6, 7),
)
LAMP = codec.Subsystem(codec.SubsystemType.LIGHTS, "lamp")
BATTERY = codec.Sensor(codec.SensorType.BATTERY, "pack", value=11_900, full_voltage_mv=12_600)
SENSORS = (
    BATTERY,
    codec.Sensor(codec.SensorType.THERMOMETER, "left", value=-1250),
    codec.Sensor(codec.SensorType.NULL, "nothing"),
    codec.Sensor(codec.SensorType.AMMETER, "left", value=1500),
    codec.Sensor(codec.SensorType.MOTOR_PWM, "left", value=-2048),
)


def packet(kind, payload):
    return struct.pack(">HB", len(payload), kind) + payload


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack(">H", len(raw)) + raw


def driver_reads(data, eof=False):
    connection = codec.DriverConnection()
    connection.receive_data(data)
    if eof:
        connection.receive_eof()
    return drain(connection)


def robot_reads(data, types=TYPES):
    connection = codec.RobotConnection(types)
    connection.receive_data(data)
    return drain(connection)


def violation(events):
    assert isinstance(events[-1], str), events
    return events[-1]


# Captures of real programs.


def test_the_recorded_driver_is_read_and_written_byte_for_byte():
    events = robot_reads(DRIVER_TO_ROBOT, [codec.SubsystemType.SKID_STEER])
    assert events == [
        codec.QuerySubsystems(),
        codec.RegisterDriver("alice"),
        codec.KeepAlive(0x01A1F7B88899),
        codec.BindSubsystem(0),
        codec.SkidSteerUpdate(0, 2048, -2048),
        codec.SkidSteerUpdate(0, 1024, -512),
    ]
    connection = codec.DriverConnection()
    assert b"".join(map(connection.send, events)) == DRIVER_TO_ROBOT


def test_the_recorded_robotd_is_read_and_written_byte_for_byte():
    events = driver_reads(ROBOT_TO_DRIVER)
    sensors = [
        codec.Sensor(
            kind, f"sabertooth M{motor} {name}", full_voltage_mv=24_000 if kind == codec.SensorType.BATTERY else None
        )
        for motor in (1, 2)
        for kind, name in enumerate(("battery", "thermometer", "ammeter", "pwm"), start=1)
    ]
    drive = codec.Subsystem(1, "Main Drive", "", codec.MotorSensors(4, 5, 6, 7), codec.MotorSensors(0, 1, 2, 3))
    assert events == [
        codec.SensorInfo(tuple(sensors), codec.SensorLayout.ROBOTD_1_2),
        codec.SubsystemInfo((drive,)),
        codec.FirmwareInfo("robotd", "1.2", 2),
        codec.KeepAlive(0x01A1F7B88899),
        codec.SubsystemBound(0, "alice"),
        codec.LogMessage("[Nov 20 2026 06:50:28 AM] [alice] bound subsystem 0"),
        codec.BindSuccess(0),
    ]
    assert b"".join(map(codec.RobotConnection([1]).send, events)) == ROBOT_TO_DRIVER


def test_the_recorded_nxt_adapter_is_read_and_written_byte_for_byte():
    """Protocol 1: lists of other layouts, the subsystems first, no firmware, readings without ids."""
    driven = [
        codec.QuerySubsystems(),
        codec.RegisterDriver("capture"),
        codec.KeepAlive(0x01A20308B453),
        codec.BindSubsystem(0),
    ]
    driven += [codec.SkidSteerUpdate(0, 512, -512), codec.SkidSteerUpdate(0, 0, 0)]
    assert b"".join(map(codec.DriverConnection().send, driven[1:])) == DRIVER_TO_NXT[3:]
    robot = codec.RobotConnection([])
    robot.send(
        codec.SubsystemInfo((codec.Subsystem(1, "a"), codec.Subsystem(1, "b")))
    )  # which determines the payload of updates
    robot.receive_data(DRIVER_TO_NXT)
    assert drain(robot) == driven
    events = driver_reads(NXT_TO_DRIVER)
    names = ["BRICK001653000000", "BRICK001653000001"]
    readings = codec.SensorUpdate((codec.SensorReading(0, 7654), codec.SensorReading(1, 7654)), has_ids=False)
    assert [event for event in events if event != readings] == [
        codec.SubsystemInfo(tuple(codec.Subsystem(codec.SubsystemType.SKID_STEER, name) for name in names)),
        codec.SensorInfo(
            tuple(codec.Sensor(codec.SensorType.BATTERY, name, value=7654, full_voltage_mv=10_000) for name in names),
            codec.SensorLayout.PROTOCOL_1,
        ),
        codec.LogMessage("Hello, capture"),
        codec.KeepAlive(0x01A20308B453),
        codec.BindSuccess(0),
        codec.LogMessage("capture attempted to bind BRICK001653000000"),
    ]
    assert events.count(readings) == 17
    assert b"".join(map(codec.RobotConnection([]).send, events)) == NXT_TO_DRIVER


# The specification, byte by byte.

FROM_DRIVER = [
    (codec.KeepAlive(-2), "0008 01 fffffffffffffffe"),
    (codec.QuerySubsystems(), "0000 02"),
    (codec.RegisterDriver("é"), "0004 03 0002 c3a9"),
    (codec.BindSubsystem(258), "0002 04 0102"),
    (codec.SkidSteerUpdate(0, -2048, 2048), "0006 05 0000 f800 0800"),
    (codec.LightUpdate(1, True), "0003 05 0001 01"),
    (codec.LightUpdate(1, False), "0003 05 0001 00"),
    (codec.OpaqueUpdate(2, b"\x07"), "0003 05 0002 07"),
    (codec.OpaqueUpdate(99, b""), "0002 05 0063"),
    (codec.UnbindSubsystem(1), "0002 06 0001"),
    (codec.UnknownPacket(0x42, b"ab"), "0002 42 6162"),
]
FROM_ROBOT = [
    (codec.KeepAlive(1), "0008 01 0000000000000001"),
    (codec.SubsystemInfo(()), "0002 02 0000"),
    (codec.SubsystemInfo((LAMP,)), "000b 02 0001 02 0004 6c616d70 0000"),
    (
        codec.SubsystemInfo((DRIVE, LAMP)),
        "002a 02 0002 01 0005 6472697665 0005 616c696365 0000000100020003 1234ffff00060007 02 0004 6c616d70 0000",
    ),
    (codec.BindFailure(7), "0002 03 0007"),
    (codec.BindSuccess(0), "0002 04 0000"),
    (
        codec.SensorUpdate((codec.SensorReading(3, -1), codec.SensorReading(0, 12000))),
        "000e 05 0002 0003 ffffffff 0000 00002ee0",
    ),
    (codec.SubsystemBound(1, ""), "0004 06 0001 0000"),
    (codec.SensorInfo((BATTERY,)), "0012 07 0001 0001 0004 7061636b 00003138 00002e7c"),
    (codec.SensorInfo((SENSORS[1],)), "000e 07 0001 0002 0004 6c656674 fffffb1e"),
    (codec.SensorInfo((SENSORS[2],)), "000d 07 0001 0000 0007 6e6f7468696e67"),
    (codec.LogMessage("hi"), "0004 08 0002 6869"),
    (codec.FirmwareInfo("android", "1", 2), "000e 09 0007 616e64726f6964 0001 31 0002"),
    (codec.UnknownPacket(0x0A, b""), "0000 0a"),
]


@pytest.mark.parametrize(("event", "expected"), FROM_DRIVER)
def test_every_packet_of_a_driver_is_laid_out_as_documented(event, expected):
    connection = codec.DriverConnection()
    connection.send(codec.RegisterDriver("me"))
    assert connection.send(event).hex() == expected.replace(" ", "")
    assert robot_reads(bytes.fromhex(expected)) == [event]


@pytest.mark.parametrize(("event", "expected"), FROM_ROBOT)
def test_every_packet_of_a_robot_is_laid_out_as_documented(event, expected):
    assert codec.RobotConnection(TYPES).send(event).hex() == expected.replace(" ", "")
    assert driver_reads(bytes.fromhex(expected)) == [event]


# Layouts of other programs.


def test_short_list_that_fits_both_layouts_is_read_as_text():
    """One motor with a name of two letters in robotd's layout is a null sensor with control characters by the other."""
    info = codec.SensorInfo((codec.Sensor(codec.SensorType.MOTOR_PWM, "ab"),), codec.SensorLayout.ROBOTD_1_2)
    assert driver_reads(codec.RobotConnection(()).send(info)) == [info]


@pytest.mark.parametrize(
    "payload",
    [
        struct.pack(">HH", 1, 1) + text("pack") + struct.pack(">i", 12_000),  # half a battery
        codec.SensorInfo(SENSORS).encode() + b"\0",
        codec.SensorInfo((codec.Sensor(1, "pack", full_voltage_mv=12_000),), codec.SensorLayout.ROBOTD_1_2).encode()
        + b"\0",
        struct.pack(">HH", 2, 2) + text("one of two") + struct.pack(">i", 1),
        struct.pack(">HHH", 1, 2, 0xFFFF) + b"short",
        struct.pack(">HH", 1, 77) + text("\x01\x02"),  # an unknown type, whose name is not text
        struct.pack(">HH", 3, 77) + text("sonar") + b"1234567",  # too short for two more
        b"\0",
        b"",
    ],
)
def test_sensors_in_no_known_layout_are_unreadable(payload):
    left_aside, after = driver_reads(packet(0x07, payload) + packet(0x04, b"\0\1"))
    assert (type(left_aside), left_aside.type, after) == (codec.UnreadableList, 0x07, codec.BindSuccess(1))


# Unknown types.


def test_a_sensor_of_an_unknown_type_leaves_the_rest_opaque():
    rest = b"value of unknown size" + codec.SensorInfo(SENSORS).encode()[2:]
    info = codec.SensorInfo((BATTERY, codec.Sensor(77, "sonar")), opaque=rest, missing=len(SENSORS))
    data = packet(0x07, codec.SensorInfo((BATTERY, codec.Sensor(77, "sonar"))).encode() + rest)
    data = data[:3] + struct.pack(">H", 2 + len(SENSORS)) + data[5:]
    assert driver_reads(data) == [info]
    assert codec.RobotConnection(()).send(info) == data


def test_a_subsystem_of_an_unknown_type_leaves_the_rest_opaque():
    arm = codec.Subsystem(9, "arm", "bob")
    info = codec.SubsystemInfo((DRIVE, arm), opaque=b"joints" + codec.SubsystemInfo((LAMP,)).encode()[2:], missing=1)
    assert driver_reads(codec.RobotConnection(()).send(info)) == [info]


@pytest.mark.parametrize(
    "payload",
    [
        codec.SubsystemInfo((DRIVE, LAMP)).encode()[:-1],
        codec.SubsystemInfo((DRIVE, LAMP)).encode() + b"\0",
        struct.pack(">HB", 1, 9) + text("\0\1") + text("") + b"joints",
        struct.pack(">HB", 3, 9) + text("arm") + text("") + b"joints",
        struct.pack(">HB", 1, 1) + text("drive") + b"\xff\xff",
    ],
)
def test_subsystems_in_no_known_layout_are_unreadable(payload):
    left_aside, after = driver_reads(packet(0x02, payload) + packet(0x04, b"\0\1"))
    assert (type(left_aside), left_aside.type, after) == (codec.UnreadableList, 0x02, codec.BindSuccess(1))


# Strings.


def test_invalid_utf_8_is_replaced():
    data = packet(0x08, text(b"caf\xe9")) + packet(0x06, struct.pack(">H", 1) + text(b"\xff"))
    assert driver_reads(data) == [codec.LogMessage("caf\ufffd"), codec.SubsystemBound(1, "\ufffd")]
    (info,) = driver_reads(packet(0x02, struct.pack(">HB", 1, 2) + text(b"l\xe4mp") + text("")))
    assert info.subsystems[0].name == "l\ufffdmp"
    assert robot_reads(packet(0x03, text(b"\x80"))) == [codec.RegisterDriver("\ufffd")]


@pytest.mark.parametrize("name", ["José", "\U0001f697 Ünal"])
def test_a_java_driver_s_name_whose_length_counts_characters_is_read(name):
    """Java: putShort(name.length()), put(name.getBytes())."""
    counted = struct.pack(">H", len(name.encode("utf-16-be")) // 2) + name.encode()
    assert robot_reads(packet(0x03, counted) + packet(0x02, b"")) == [
        codec.RegisterDriver(name),
        codec.QuerySubsystems(),
    ]
    (sentence,) = robot_reads(packet(0x03, counted + b"!"))
    assert "more follow" in sentence


def test_the_largest_packet_is_sent_and_a_larger_one_refused():
    largest = codec.LogMessage("x" * (codec.MAX_PAYLOAD_BYTES - 2))
    data = codec.RobotConnection(()).send(largest)
    assert len(data) == 3 + 65535
    assert driver_reads(data) == [largest]
    with pytest.raises(LocalProtocolError, match="65536 bytes"):
        codec.RobotConnection(()).send(codec.LogMessage(largest.text + "x"))
    with pytest.raises(LocalProtocolError, match="65536 bytes"):
        codec.RobotConnection(()).send(codec.LogMessage("x" * 65536))


# Refusals.


@pytest.mark.parametrize(
    ("kind", "payload"),
    [(0x01, b"1234567"), (0x03, b""), (0x08, b"\0\5four"), (0x09, text("robotd") + text("1.2") + b"\0\2\0")],
)
def test_a_robot_s_packet_of_the_wrong_size_breaks_the_protocol(kind, payload):
    events = driver_reads(packet(0x04, b"\0\1") + packet(kind, payload) + packet(0x04, b"\0\2"))
    assert events[0] == codec.BindSuccess(1)
    assert f"The robot sent a packet of type 0x{kind:02x} that is malformed: " in violation(events)
    assert len(events) == 2


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (0x02, b"\0"),
        (0x03, b"\0\3ab"),
        (0x05, b"\0"),
        (0x05, b"\0\0" + b"123"),  # a skid steer
        (0x05, b"\0\1"),  # a light
        (0x05, b"\0\1\2"),
    ],
)
def test_a_driver_s_packet_of_the_wrong_size_breaks_the_protocol(kind, payload):
    assert f"The driver sent a packet of type 0x{kind:02x} that is malformed: " in violation(
        robot_reads(packet(kind, payload))
    )


def test_a_driver_registers_before_it_binds():
    with pytest.raises(LocalProtocolError, match="register before"):
        codec.DriverConnection().send(codec.BindSubsystem(0))


# Lists with arbitrary content and counts.

names = st.text(st.characters().filter(lambda sign: unicodedata.category(sign)[0] not in "CZ"), max_size=8)
int32 = st.integers(-(2**31), 2**31 - 1)
sensors = st.one_of(
    st.builds(codec.Sensor, st.just(1), names, int32, int32),
    st.builds(codec.Sensor, st.just(0), names),
    st.builds(codec.Sensor, st.sampled_from([2, 3, 4]), names, int32),
)
robotd_sensors = st.one_of(
    st.builds(
        codec.Sensor, st.just(1), names, st.none(), st.integers(-(2**31), 2**31 - 1).map(lambda volts: 1000 * volts)
    ),
    st.builds(codec.Sensor, st.integers(0, 0x7FFF).filter(lambda kind: kind != 1), names),
)


@given(st.lists(sensors, max_size=5).map(tuple))
def test_specified_sensors_with_readable_names_never_match_robotd_s_layout(listed):
    info = codec.SensorInfo(listed)
    assert driver_reads(codec.RobotConnection(()).send(info)) == [info]


@given(st.lists(st.builds(codec.Sensor, st.just(1), names, int32, st.integers(1000, 100_000)), min_size=1, max_size=5))
def test_batteries_of_protocol_1_match_no_other_layout(listed):
    info = codec.SensorInfo(tuple(listed), codec.SensorLayout.PROTOCOL_1)
    assert driver_reads(codec.RobotConnection(()).send(info)) == [info]


@given(st.lists(robotd_sensors, min_size=1, max_size=5).map(tuple))
def test_robotd_sensors_with_readable_names_never_match_the_specification(listed):
    info = codec.SensorInfo(listed, codec.SensorLayout.ROBOTD_1_2)
    assert driver_reads(codec.RobotConnection(()).send(info)) == [info]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (codec.QuerySubsystems(), "QuerySubsystems"),
        (
            codec.SubsystemInfo((codec.Subsystem(1, "drive", left=codec.MotorSensors(0, 1, 2, 3)),)),
            "would decode SubsystemInfo",
        ),
        (codec.SubsystemInfo((codec.Subsystem(2, "lamp", "", DRIVE.left, DRIVE.right),)), "would decode SubsystemInfo"),
        (codec.SubsystemInfo((codec.Subsystem(256, "lamp"),)), "256, which does not fit"),
        (codec.SubsystemInfo((), missing=65536), "number of subsystems is 65536"),
        (codec.SensorInfo((codec.Sensor(1, "pack", value=3),)), "full voltage of 'pack' is None"),
        (codec.SensorInfo((codec.Sensor(2, "left"),)), "value of 'left' is None"),
        (codec.SensorInfo((BATTERY,), codec.SensorLayout.ROBOTD_1_2), "whole volts"),
        (codec.SensorInfo(SENSORS, codec.SensorLayout.PROTOCOL_1), "'nothing' is None"),
        (codec.SensorInfo((codec.Sensor(2, "left", value=2**31),)), "does not fit"),
        (codec.SensorUpdate((codec.SensorReading(-1, 0),)), "-1, which does not fit"),
    ],
)
def test_a_robot_refuses_to_send_invalid_packets(event, reason):
    with pytest.raises(LocalProtocolError, match=reason):
        codec.RobotConnection(TYPES).send(event)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [(0x07, b"\xff" * 65535), (0x07, bytes(65535)), (0x02, bytes(65535)), (0x05, b"\xff\xff" + bytes(60000))],
)
def test_a_list_may_claim_any_number_of_entries(kind, payload):
    (read,) = driver_reads(packet(kind, payload))
    assert isinstance(read, codec.UnreadableList | codec.SensorInfo | codec.SubsystemInfo | codec.SensorUpdate)
