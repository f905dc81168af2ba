# SPDX-License-Identifier: Apache-2.0
"""Codec of an AR.Drone: bytes of real drones, values that another parser reads from them, and any other bytes."""

import json
import math
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from repository import ROOT

from drone_bridge.ardrone import codec, units
from drone_bridge.ardrone.codec.navdata import demo_option, detections_option, time_option
from drone_bridge.wire import LocalProtocolError, RemoteProtocolError

CAPTURES = ROOT / "test/captures/ardrone"
NAVDATA = sorted(path.name for path in CAPTURES.glob("*.bin") if "pave" not in path.name and "video" not in path.name)
EXPECTED = {each["f"]: each for each in map(json.loads, (CAPTURES / "expected.json").read_text().splitlines())}
#: The other parser's names of the bits of a state, from bit 0 on.
BITS = {
    "flying": codec.State.FLYING,
    "controlCommandAck": codec.State.COMMAND_ACKNOWLEDGED,
    "navdataDemo": codec.State.DEMO_ONLY,
    "navdataBootstrap": codec.State.BOOTSTRAP,
    "startButtonState": codec.State.START_BUTTON,
    "motorProblem": codec.State.MOTOR_FAULT,
    "communicationLost": codec.State.COMMUNICATION_LOST,
    "lowBattery": codec.State.BATTERY_LOW,
    "userEmergencyLanding": codec.State.USER_EMERGENCY,
    "timerElapsed": codec.State.TIMER_ELAPSED,
    "anglesOutOfRange": codec.State.ANGLES_OUT_OF_RANGE,
    "ultrasonicSensorDeaf": codec.State.ULTRASOUND_DEAF,
    "cutoutDetected": codec.State.CUTOUT,
    "comWatchdogProblem": codec.State.WATCHDOG,
    "emergencyLanding": codec.State.EMERGENCY,
}
COMMANDS = (
    codec.Ref(is_flying=True),
    codec.Ref(is_emergency=True),
    codec.Pcmd(),
    codec.Pcmd(codec.PROGRESSIVE, 0.25, -0.5, 1.0, -1.0),
    codec.PcmdMag(codec.PROGRESSIVE, 0.25, -0.5, 1.0, -1.0, 0.5, 0.125),
    codec.FlatTrim(),
    codec.WatchdogReset(),
    codec.Control(5),
    codec.Config("general:navdata_demo", "TRUE"),
    codec.ConfigIds("0a1b2c3d", "00000001", "ffffffff"),
    codec.OtherCommand("LED", ("1", "1073741824", "5")),
    codec.OtherCommand("MISC", ("2", "20", "2000", "3000")),
)


def read(connection, datagram):
    connection.receive_data(datagram)
    return list(connection.events())


def outcomes(connection):
    """Return all events, and the sentences of refusals."""
    found = []
    while True:
        try:
            found.append(connection.next_event())
        except RemoteProtocolError as error:
            found.append(str(error))
        if found[-1] is codec.NEED_DATA:
            return found[:-1]


def navdata_of(name):
    (navdata,) = read(codec.ClientConnection(), (CAPTURES / name).read_bytes())
    return navdata


# Navdata.


@pytest.mark.parametrize("name", NAVDATA)
def test_real_navdata_round_trips_to_the_byte(name):
    assert len(NAVDATA) == 3
    assert codec.DroneConnection().send(navdata_of(name)) == (CAPTURES / name).read_bytes()


@pytest.mark.parametrize("name", ["node_navdata.bin", "arbdrone_bootup.bin"])
def test_states_are_those_that_another_parser_reads(name):
    navdata, expected = navdata_of(name), EXPECTED[name]
    assert navdata.sequence == expected["seq"]
    assert {key: navdata.has(bit) for key, bit in BITS.items()} == {key: bool(expected["state"][key]) for key in BITS}


def test_values_are_those_that_another_parser_reads():
    navdata, expected = navdata_of("node_navdata.bin"), EXPECTED["node_navdata.bin"]
    demo, other = navdata.demo, expected["demo"]
    assert demo.flight_state is codec.FlightState.LANDED
    assert demo.battery == other["batteryPercentage"]
    angles = (demo.theta / 1000, demo.phi / 1000, demo.psi / 1000)
    assert angles == pytest.approx([other["rotation"][key] for key in ("theta", "phi", "psi")])
    assert (demo.vx, demo.vy, demo.vz) == pytest.approx([other["velocity"][key] for key in "xyz"])
    assert demo.altitude == 0
    assert navdata.time_s == pytest.approx(expected["time"] / 1000)
    assert navdata.detections == ()
    assert navdata.link_quality == expected["wifi"]["linkQuality"]
    assert len(navdata.options) == len(expected["keys"]) - 3  # the others are in the head
    measured, (p, q, r) = units.measurement(navdata), map(math.radians, navdata.physical.rates)
    assert (measured.charge, *measured.rates) == pytest.approx((demo.battery / 100, p, -q, -r))


def test_an_accelerometer_at_rest_measures_gravity_upward():
    acceleration = navdata_of("node_navdata.bin").physical.acceleration
    assert acceleration[2] == pytest.approx(-1000, abs=100)  # the axis points down
    assert acceleration[0] > 0  # the nose is raised by 3 degrees


def test_a_magnetic_field_in_los_angeles_points_down():
    x, y, z = units.magnetic_field(navdata_of("node_navdata.bin").magnetometer)
    assert math.degrees(math.atan2(-z, math.hypot(x, y))) == pytest.approx(59, abs=2)


def test_a_barometer_measures_air():
    pressure = navdata_of("node_navdata.bin").pressure
    assert (pressure.pressure, pressure.temperature) == (101586, 435)


def test_shorter_options_of_an_older_drone_are_read():
    navdata = navdata_of("arbdrone_flying.bin")
    assert (navdata.demo.altitude, navdata.demo.battery, navdata.ultrasound) == (261, 38, 261)
    assert navdata.physical.acceleration[2] == pytest.approx(-988.4, abs=0.1)
    assert navdata.detections == ()
    assert navdata.magnetometer is None


def test_takeoff_is_airborne_before_the_flight_state_reports_it():
    navdata = navdata_of("arbdrone_flying.bin")
    assert navdata.demo.flight_state is codec.FlightState.LANDED
    assert navdata.is_airborne


def test_state_bits_are_named_and_no_combination_is_kept():
    state = navdata_of("arbdrone_bootup.bin").state
    named = str(state).split("|")
    assert {"timer_elapsed", "angles_out_of_range", "cutout", "emergency"} <= set(named)
    kept = len(codec.State._value2member_map_)
    for word in range(1, 200):
        head = struct.pack("<IIII", 0x55667788, word << 8, 1, 0)
        (navdata,) = read(codec.ClientConnection(), head + struct.pack("<HHI", 0xFFFF, 8, sum(head)))
        navdata.has(codec.State.WATCHDOG | codec.State.BOOTSTRAP | codec.State.COMMUNICATION_LOST)
    assert len(codec.State._value2member_map_) < kept + 10


def test_no_drone_in_an_emergency_is_airborne():
    demo = demo_option(codec.Demo(codec.FlightState.FLYING << 16, 90, 0.0, 0.0, 0.0, 500, 0.0, 0.0, 0.0))
    assert codec.Navdata(codec.State(0), 1, options=(demo,)).is_airborne
    assert not codec.Navdata(codec.State.FLYING | codec.State.EMERGENCY, 1, options=(demo,)).is_airborne


def test_numbers_that_are_not_finite_are_not_reported():
    sent = codec.Demo(0, 50, None, 1.0, None, 3, math.nan, math.inf, 0.0)
    navdata = codec.Navdata(codec.State(0), 7, options=(demo_option(sent),))
    (received,) = read(codec.ClientConnection(), codec.DroneConnection().send(navdata))
    assert received.demo == codec.Demo(0, 50, None, 1.0, None, 3, None, None, 0.0)


def test_detections_and_time_are_read_as_written():
    found = [codec.Detected(512, 430, 88, 61, 143), codec.Detected(1, 2, 3, 4, 5)]
    for size in (324, 116):
        navdata = codec.Navdata(codec.State(0), 1, options=(detections_option(found, size), time_option(2049.5)))
        (received,) = read(codec.ClientConnection(), codec.DroneConnection().send(navdata))
        assert received.detections == tuple(found)
        assert received.time_s == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data + b"\0", "not its end"),
        (lambda data: data[:-8], "no checksum"),
        (lambda data: data[:20] + b"\xff" + data[21:], "checksum of navdata is wrong"),
        (lambda data: b"\x87" + data[1:], "starts with 0x55667787"),
        (lambda data: data[:18] + b"\3\0" + data[20:], "has 3 of"),
        (lambda data: data + bytes(8192), "16 to 8192"),
    ],
)
def test_damaged_navdata_is_refused_with_a_reason(damage, reason):
    with pytest.raises(RemoteProtocolError, match=reason):
        read(codec.ClientConnection(), damage((CAPTURES / "node_navdata.bin").read_bytes()))


# Commands.


def test_floats_are_sent_as_integers_and_base_bits_always():
    client = codec.ClientConnection()
    assert (
        client.send(codec.Pcmd(codec.PROGRESSIVE, -0.8, -0.0, 1.0))
        == b"AT*PCMD=1,1,-1085485875,-2147483648,1065353216,0\r"
    )
    assert client.send(codec.Ref()) == b"AT*REF=2,290717696\r"
    assert client.send(codec.Ref(True)) == b"AT*REF=3,290718208\r"
    assert client.send(codec.Ref(False, True)) == b"AT*REF=4,290717952\r"
    assert client.send(codec.setting("control:outdoor", False)) == b'AT*CONFIG=5,"control:outdoor","FALSE"\r'
    assert client.send(codec.Control(5), codec.FlatTrim()) == b"AT*CTRL=6,5,0\rAT*FTRIM=7\r"


def test_commands_are_read_as_sent_one_by_one_and_together():
    drone, client = codec.DroneConnection(), codec.ClientConnection()
    assert [event for each in COMMANDS for event in read(drone, client.send(each))] == list(COMMANDS)
    assert read(drone, client.send(*COMMANDS)) == list(COMMANDS)


def test_commands_beyond_the_limit_of_a_line_are_never_split():
    client = codec.ClientConnection()
    with pytest.raises(LocalProtocolError):
        client.send(*[codec.Pcmd()] * 100)
    with pytest.raises(LocalProtocolError):
        client.send(codec.Config("a:b", "x" * codec.MAX_LINE))
    assert client.next_sequence == 1
    assert len(client.send(*COMMANDS)) <= codec.MAX_LINE


def test_a_line_that_is_too_long_is_dropped_alone():
    drone = codec.DroneConnection()
    drone.receive_data(b"AT*LED=1," + b"1" * codec.MAX_LINE + b"\rAT*FTRIM=2\r")
    with pytest.raises(RemoteProtocolError, match="1024"):
        drone.next_event()
    assert drone.next_event() == codec.FlatTrim()


def test_late_commands_are_told_from_a_client_that_starts_over():
    drone, client = codec.DroneConnection(), codec.ClientConnection()
    first, second = client.send(codec.Pcmd()), client.send(codec.FlatTrim())
    assert read(drone, first + second + second) == [codec.Pcmd(), codec.FlatTrim(), codec.LateCommand(2, 2)]
    drone.receive_data(b"AT*FTRIM=1000\r")
    assert drone.next_event() == codec.FlatTrim()
    third = client.send(codec.WatchdogReset(), is_urgent=True)
    assert third == b"AT*COMWDG=1\rAT*COMWDG=3\r"
    assert read(drone, third + second) == [codec.WatchdogReset(), codec.WatchdogReset(), codec.LateCommand(2, 3)]
    drone.restart()
    assert read(drone, second) == [codec.FlatTrim()]


@pytest.mark.parametrize("value", [math.nan, math.inf, 1.001, "1", None, True])
def test_a_share_that_is_none_is_not_sent(value):
    client = codec.ClientConnection()
    with pytest.raises(LocalProtocolError):
        client.send(codec.Pcmd(codec.PROGRESSIVE, value))
    with pytest.raises(LocalProtocolError):
        client.send(codec.Ref(1.0))
    assert client.next_sequence == 1


@pytest.mark.parametrize("value", ['a"b', "a\rb", "\u00e4", 7, "\ud800"])
def test_a_setting_that_would_be_read_as_something_else_is_not_sent(value):
    with pytest.raises(LocalProtocolError):
        codec.ClientConnection().send(codec.Config("video:codec", value))


LINES = st.lists(st.sampled_from([*"AT*REF=1,290718208\r\n", "AT*PCMD=", '"', ",", "-", "9" * 11, "\xff"]), max_size=30)


@given(LINES.map(lambda parts: "".join(parts).encode("latin-1")) | st.binary(max_size=200))
@example(b"AT*PCMD=1,1,2143289344,0,0,0\r")  # NaN
@example(b'AT*CONFIG=1,"a"\r')
@example(b"AT*REF=1\r")
@example(b"AT*REF=99999999999,1\r")
@example(b"AT*PCMD=1,1,99999999999,0,0,0\r")
def test_any_datagram_of_commands_is_commands_or_refused_ones(data):
    drone = codec.DroneConnection()
    drone.receive_data(data)
    found = outcomes(drone)
    assert len(found) <= len(data)
    assert all(each.endswith(".") for each in found if isinstance(each, str))


# Video and configuration.


def frames_of(name, reader=None):
    return list((reader or codec.PaveReader()).receive((CAPTURES / name).read_bytes()))


@pytest.mark.parametrize(
    ("name", "count", "whole"), [("node_pave.bin", 20, 2), ("node_pave-68.bin", 5, 1), ("uavpilot_video.bin", 24, 2)]
)
def test_frames_of_real_drones_are_read(name, count, whole):
    frames = frames_of(name)
    assert len(frames) == count
    assert sum(frame.type == codec.FrameType.IDR for frame in frames) == whole
    assert {(frame.codec, frame.width, frame.height) for frame in frames} == {(codec.VideoCodec.H264, 640, 360)}
    assert all(frame.payload.startswith(b"\0\0\0\1") for frame in frames)
    assert len({frame.stream for frame in frames}) == 1


@pytest.mark.parametrize("size", [1, 63, 64, 4096])
def test_a_stream_is_read_equally_however_it_is_split(size):
    data, reader = (CAPTURES / "node_pave-68.bin").read_bytes(), codec.PaveReader()
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    assert [frame for piece in pieces for frame in reader.receive(piece)] == frames_of("node_pave-68.bin")
    assert reader.skipped == 0


def test_bytes_between_frames_are_skipped_and_counted():
    data, reader = (CAPTURES / "node_pave-68.bin").read_bytes(), codec.PaveReader()
    assert len(list(reader.receive(data[1000:] + b"garbagePaV" + data))) == 9
    assert reader.skipped > 9


@pytest.mark.parametrize("head_bytes", [64, 68])
def test_frames_are_read_as_written(head_bytes):
    frames = frames_of("uavpilot_video.bin")
    written = b"".join(codec.write_frame(frame, head_bytes) for frame in frames)
    assert list(codec.PaveReader().receive(written)) == frames


@given(st.lists(st.binary(max_size=80) | st.sampled_from([b"PaVE", b"PaV", bytes(64)]), max_size=20))
def test_any_stream_of_video_ends_in_frames_or_skipped_bytes(pieces):
    reader = codec.PaveReader()
    taken = sum(len(frame.payload) + 64 for piece in pieces for frame in reader.receive(piece))
    assert taken + reader.skipped <= sum(map(len, pieces))


def test_a_configuration_is_read_when_it_is_complete():
    settings = {"general:num_version_soft": "2.4.8", "control:altitude_max": "3000"}
    data, reader = codec.write_settings(settings), codec.ConfigurationReader()
    assert reader.receive(data[:-1]) is None
    assert reader.receive(data[-1:]) == settings
    assert reader.receive(b"[sessions]\r00000000, all\r\0") == {}


def test_a_configuration_without_an_end_is_refused():
    reader = codec.ConfigurationReader()
    with pytest.raises(RemoteProtocolError, match="65536"):
        reader.receive(b"x" * 70_000)
    assert reader.receive(b"a:b = 1\n\0") == {"a:b": "1"}
