# SPDX-License-Identifier: Apache-2.0
"""Whatever a connection agrees to send, the connection on the other side reads back equal.

Fields get values of the right type and wrong ones, so what is sent in spite of them is what the checks let through.
"""

import math
import struct
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal

import pytest
from examples import examples
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from drone_bridge.dronegui import codec as dronegui
from drone_bridge.robot import codec as robot
from drone_bridge.simulator import codec as sim
from drone_bridge.telemetry import codec as telemetry
from drone_bridge.testbed import codec as testbed
from drone_bridge.wire.events import NEED_DATA, LocalProtocolError

EDGES = [edge + step for bits in (7, 8, 15, 16, 31, 32, 63, 64) for edge in (2**bits, -(2**bits)) for step in (-1, 0)]
INTS = st.integers(0, 5) | st.sampled_from([*EDGES, -1, 10**400, True])
FLOATS = st.floats() | st.floats(-1, 1) | st.sampled_from([1e39, 3.5e38, 0.1, 10**400, -0.0])
TEXTS = st.text(max_size=5) | st.text(st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF), max_size=3)
SURROGATES_OF_A_LETTER = b"\xc3\xa9".decode("ascii", "surrogateescape")
STRINGS = TEXTS | st.sampled_from([SURROGATES_OF_A_LETTER, "\ud800", "x" * 256, "x" * 65536, "\x00", "a\nb"])
BYTES = st.binary(max_size=9) | st.sampled_from([bytes(70_000), bytearray(b"ab"), memoryview(b"abc")])
WRONG = st.sampled_from([None, "7", b"7", 1.5, (), (1,), [1, 2, 3], math.nan, Decimal(2), object(), 5, {}])


def tuples(of, *widths):
    return st.one_of([st.tuples(*[of] * width) for width in widths])


ANY = st.one_of(
    INTS, FLOATS, STRINGS, BYTES, WRONG, tuples(FLOATS, 2, 3, 4), tuples(INTS, 0, 1, 3), tuples(STRINGS, 1, 2)
)


def of(kind, **known):
    """Instances whose fields have known values, often, and any others."""
    return st.builds(
        kind, **{field.name: known[field.name] | ANY if field.name in known else ANY for field in fields(kind)}
    )


def mostly(kind, **known):
    """Instances whose fields have known values."""
    return st.builds(kind, **known) | of(kind, **known)


def float32(value):
    return struct.unpack(">f", struct.pack(">f", value))[0]


def is_same(sent, read, precision=float):
    """Equal, as far as types that mean the same and the precision of the wire let tell."""
    if is_dataclass(sent) and type(sent) is type(read):
        compared = [field.name for field in fields(sent) if field.compare]
        return all(is_same(getattr(sent, name), getattr(read, name), precision) for name in compared)
    if isinstance(sent, tuple | list) and isinstance(read, tuple | list):
        return len(sent) == len(read) and all(map(is_same, sent, read, [precision] * len(sent)))
    if isinstance(read, float) and not isinstance(sent, str | bytes):
        return precision(sent) == read or (math.isnan(sent) and math.isnan(read))
    return sent == read


def check(send, event, receiving, precision=float):
    """Send, if that is agreed to, and hold that the event comes out on the other side."""
    try:
        data = send(event)
    except LocalProtocolError:
        return
    receiving.receive_data(data)
    read = receiving.next_event()
    assert is_same(event, read, precision), f"sent {event!r}, read {read!r}"
    assert receiving.next_event() is NEED_DATA


def many(count):
    return settings(examples(count), suppress_health_check=list(HealthCheck), phases=[Phase.generate])


# The simulator.

VECTORS, QUATERNIONS = tuples(FLOATS, 3), tuples(FLOATS, 4)
EXTENDED = mostly(sim.ExtendedAttribute, key=STRINGS, data=BYTES)
VALUES = VECTORS | QUATERNIONS | st.booleans() | BYTES | FLOATS
KNOWN = {
    "id": INTS,
    "type": INTS,
    "attribute": INTS,
    "attributes": st.lists(EXTENDED, max_size=2).map(tuple),
    "value": VALUES,
    "values": st.lists(VALUES, max_size=3).map(tuple),
    "key": STRINGS,
    "keys": tuples(STRINGS, 0, 1, 2),
    "names": tuples(STRINGS, 0, 1, 2),
    "ids": tuples(INTS, 0, 1, 2) | INTS.map(lambda each: (each,) * 300),
    "data": BYTES,
    "message": STRINGS,
    "class_name": STRINGS,
    "orientation": QUATERNIONS,
    "body_to_model": QUATERNIONS,
    "position": VECTORS,
    "inertia": VECTORS,
    "trigger": st.one_of(
        mostly(sim.CollisionTrigger, a=INTS, b=INTS, distance=FLOATS),
        mostly(sim.BytecodeTrigger, code=BYTES),
        mostly(sim.PathTrigger, entity=INTS, start=VECTORS, end=VECTORS, distance=FLOATS),
        mostly(sim.UnknownTrigger, type=INTS, configuration=BYTES),
    ),
}
NUMBERS = ("mass", "radius", "x", "y", "depth", "focal_length", "frequency", "speed")
KNOWN |= dict.fromkeys(NUMBERS, FLOATS)
KNOWN |= dict.fromkeys(("code", "period", "target", "entity", "steps", "id_bytes"), INTS)
KNOWN |= dict.fromkeys(("corporeal", "enabled", "is_added", "non_real_time", "use_desired_thrusters"), st.booleans())
STREAMED = tuples(st.sampled_from([*range(7), True, 1.0]), 0, 1, 2, 3)


def simulator_messages(kind):
    known = {field.name: KNOWN[field.name] for field in fields(kind)}
    if kind in (sim.EntityData, sim.StreamEntity):
        known["attributes"] = STREAMED
    return mostly(kind, **known)


@pytest.mark.parametrize("kind", sim.REQUESTS.values(), ids=lambda kind: kind.__name__)
@many(40)
@given(data=st.data())
def test_a_simulator_reads_what_a_client_sends(kind, data):
    check(sim.ClientConnection().send, data.draw(simulator_messages(kind)), sim.ServerConnection())


@pytest.mark.parametrize("kind", sim.RESPONSES.values(), ids=lambda kind: kind.__name__)
@many(40)
@given(data=st.data())
def test_a_client_reads_what_a_simulator_sends(kind, data):
    response = data.draw(simulator_messages(kind))
    client, server = sim.ClientConnection(), sim.ServerConnection()
    asking = [each for each in _questions(response) if kind is sim.Error or each.ANSWER is kind]
    if asking and response.is_in_band:
        server.receive_data(client.send(data.draw(st.sampled_from(asking))))
        server.next_event()
    try:
        sent = server.send(response)
    except LocalProtocolError:
        return
    client.receive_data(sent)
    read = client.next_event()
    read = read.response if isinstance(read, sim.Answer) else read
    precision = float32 if kind in (sim.CameraData, sim.CameraGot) else float
    assert is_same(response, read, precision), f"sent {response!r}, read {read!r}"


def _questions(response):
    """A request of each kind, for the very attribute that the response is about."""
    attribute = getattr(response, "attribute", 0)
    attribute = attribute if type(attribute) is int and 0 <= attribute < 256 else 0
    yield from (sim.GetEntity(1, attribute), sim.GetObject(1, attribute), sim.ViewCamera(1, 2), sim.ListCameras())
    yield from (sim.ListEntities(), sim.ListObjects(), sim.ListObjectClasses(), sim.GetConfig(), sim.Run())
    key = getattr(response, "key", "")
    yield sim.GetExtended(1, key if isinstance(key, str) and key.isascii() and len(key) < 256 else "")
    yield from (sim.StreamEntity(1, 1, (0,)), sim.Spy())


def test_a_message_that_is_larger_than_a_client_takes_is_not_sent():
    client, server = sim.ClientConnection(), sim.ServerConnection()
    server.receive_data(client.send(sim.GetExtended(1, "x")))
    server.next_event()
    with pytest.raises(LocalProtocolError, match="16777216 are allowed"):
        server.send(sim.ExtendedGot("x", bytes(sim.MAX_BODY_BYTES)))


# The robot.

NAMES = STRINGS | st.sampled_from(["drive", "lamp", "caf\ufffd"])
MOTORS = st.none() | st.builds(robot.MotorSensors, *[st.integers(0, 4)] * 4)
SUBSYSTEMS = st.builds(robot.Subsystem, st.integers(0, 4), NAMES, NAMES, MOTORS, MOTORS) | st.builds(
    robot.Subsystem, st.integers(0, 2), st.just("drive")
)
SENSORS = st.builds(robot.Sensor, st.integers(0, 7), NAMES, st.none() | INTS, st.none() | INTS | st.just(12_000))
READINGS = st.builds(robot.SensorReading, st.integers(0, 5), INTS)
ROBOT_KNOWN = {
    "time_ms": INTS,
    "id": INTS,
    "name": NAMES,
    "driver": NAMES,
    "text": NAMES,
    "type": NAMES,
    "version": NAMES,
    "protocol_version": INTS,
    "data": BYTES,
    "left": st.integers(-2048, 2048),
    "right": st.integers(-2048, 2048),
    "is_on": st.booleans(),
}
TYPES = (robot.SubsystemType.SKID_STEER, robot.SubsystemType.LIGHTS, 7)


def lists(of):
    return st.lists(of, max_size=3).map(tuple)


OPAQUE = {"opaque": st.just(b"") | st.binary(max_size=20), "missing": st.just(0) | st.integers(-1, 3)}
FROM_ROBOT = st.one_of(
    [
        mostly(kind, **{field.name: ROBOT_KNOWN[field.name] for field in fields(kind)})
        for kind in (robot.KeepAlive, robot.BindFailure, robot.BindSuccess, robot.SubsystemBound, robot.LogMessage)
    ]
    + [
        mostly(robot.FirmwareInfo, **{field.name: ROBOT_KNOWN[field.name] for field in fields(robot.FirmwareInfo)}),
        mostly(robot.UnknownPacket, type=INTS, payload=BYTES),
        st.builds(robot.SubsystemInfo, lists(SUBSYSTEMS), **OPAQUE),
        st.builds(robot.SensorInfo, lists(SENSORS), st.sampled_from(robot.SensorLayout), **OPAQUE),
        st.builds(robot.SensorUpdate, lists(READINGS), st.booleans()),
    ]
)
FROM_DRIVER = st.one_of(
    [
        mostly(kind, **{field.name: ROBOT_KNOWN[field.name] for field in fields(kind)})
        for kind in (
            robot.KeepAlive,
            robot.QuerySubsystems,
            robot.RegisterDriver,
            robot.BindSubsystem,
            robot.UnbindSubsystem,
            robot.SkidSteerUpdate,
            robot.LightUpdate,
            robot.OpaqueUpdate,
        )
    ]
    + [mostly(robot.UnknownPacket, type=INTS, payload=BYTES)]
)


@many(600)
@given(st.lists(FROM_ROBOT, min_size=1, max_size=3))
def test_a_driver_reads_what_a_robot_sends(events):
    sending, receiving = robot.RobotConnection(TYPES), robot.DriverConnection()
    for event in events:
        check(sending.send, event, receiving)


@many(600)
@given(FROM_DRIVER)
def test_a_robot_reads_what_a_driver_sends(event):
    driver, bot = robot.DriverConnection(), robot.RobotConnection(TYPES)
    listed = robot.SubsystemInfo(tuple(robot.Subsystem(kind, "a") for kind in TYPES[:2]))
    driver.receive_data(bot.send(listed))
    driver.next_event()
    bot.receive_data(driver.send(robot.RegisterDriver("me")))
    bot.next_event()
    check(driver.send, event, bot)


# The testbed.

CONSTANTS = testbed.Constants(90.0, 60.0, 2, 1, 0.25, 1.5, 9.8, 0.25, 25.0, 720.0, 360.0, 180.0)
CONSTANT_FIELDS = {field.name: st.just(getattr(CONSTANTS, field.name)) | FLOATS for field in fields(CONSTANTS)}
CONSTANT_FIELDS |= {"width": st.integers(1, 3) | INTS, "height": st.integers(1, 3) | INTS}


@many(200)
@given(mostly(testbed.Constants, **CONSTANT_FIELDS))
def test_an_autopilot_reads_the_constants_that_a_testbed_sends(constants):
    check(testbed.TestbedConnection().send, constants, testbed.AutopilotConnection(), float32)


ANGLES = st.floats(-200, 200) | FLOATS


@many(200)
@given(
    st.sampled_from(testbed.AttitudeLayout),
    st.lists(
        mostly(
            testbed.SensorFrame,
            left=st.binary(min_size=6, max_size=6) | BYTES,
            right=st.binary(min_size=6, max_size=6) | BYTES,
            time=st.floats(0, 10) | FLOATS,
            pitch=ANGLES,
            roll=st.none() | ANGLES,
            yaw=st.none() | ANGLES,
            position=st.none() | VECTORS,
        ),
        max_size=3,
    ),
)
def test_an_autopilot_reads_the_frames_that_a_testbed_sends(layout, frames):
    bed, autopilot = testbed.TestbedConnection(layout), testbed.AutopilotConnection(layout)
    autopilot.receive_data(bed.send(CONSTANTS))
    assert autopilot.next_event() != NEED_DATA
    for frame in frames:
        try:
            data = bed.send(frame)
        except LocalProtocolError:
            continue
        autopilot.receive_data(data)
        while isinstance(read := autopilot.next_event(), testbed.SimulationRestarted):
            pass
        for name in ("left", "right", "time", "pitch", *(("roll",) if read.roll is not None else ())):
            assert is_same(getattr(frame, name), _plain(getattr(read, name)), float32), name
        if read.position is not None:
            assert is_same(frame.position, read.position, float32)
        bed.receive_data(autopilot.send(testbed.MotionParameters(0, 0, 0, 0)))
        bed.next_event()


def _plain(value):
    return bytes(value) if hasattr(value, "tobytes") else value


@many(200)
@given(mostly(testbed.MotionParameters, pitch_rate=FLOATS, roll_rate=FLOATS, yaw_rate=FLOATS, thrust=FLOATS))
def test_a_testbed_reads_what_an_autopilot_sends(parameters):
    bed, autopilot = testbed.TestbedConnection(), testbed.AutopilotConnection()
    frame = testbed.SensorFrame(bytes(6), bytes(6), 0.0, 0.0, yaw=0.0)
    autopilot.receive_data(bed.send(CONSTANTS) + bed.send(frame))
    assert [autopilot.next_event() is NEED_DATA for _ in range(2)] == [False, False]
    check(autopilot.send, parameters, bed, float32)


# JSON.


@many(200)
@given(
    mostly(
        dronegui.Controls,
        **{name: st.booleans() for name in dronegui.BUTTONS},
        **{name: st.floats(-1, 1) | FLOATS for name in dronegui.AXES},
    )
)
def test_the_gui_reads_what_a_controller_sends(controls):
    sending, receiving = dronegui.ControllerConnection(), dronegui.ReceiverConnection(complete_states_only=True)
    try:
        data = sending.send(controls)
    except LocalProtocolError:
        return
    receiving.receive_data(data)
    assert is_same(controls, receiving.next_event().controls)


COORDINATES = st.integers(0, 1000).map(float) | FLOATS | WRONG
NAVDATA = st.one_of(
    of(
        dronegui.Demo,
        ctrl_state=st.none() | st.integers(0, 2**32),
        num_frames=st.none() | INTS,
        **dict.fromkeys(("vbat_flying_percentage", "theta", "phi", "psi", "altitude", "vx", "vy", "vz"), FLOATS),
    ),
    st.builds(dronegui.Demo, st.none() | INTS, *[st.none() | FLOATS] * 8, st.none() | INTS),
    st.builds(
        dronegui.VisionDetect,
        st.lists(st.builds(dronegui.Feature, *[COORDINATES] * 4, st.none() | FLOATS), max_size=17).map(tuple) | ANY,
    ),
    st.builds(
        dronegui.OtherNavdata,
        STRINGS | st.sampled_from(["demo", "visiondetect", "gps"]) | WRONG,
        st.dictionaries(STRINGS | st.sampled_from(["type", "features", "ctrl_state"]), ANY, max_size=3) | WRONG,
    ),
)


@many(200)
@given(NAVDATA)
def test_a_controller_reads_the_navdata_that_the_gui_sends(block):
    check(dronegui.ReceiverConnection().send, block, dronegui.ControllerConnection())


TELEMETRY_VECTORS = st.builds(telemetry.Vector, FLOATS, FLOATS, FLOATS) | st.just(telemetry.Vector(1.0, 2.0, 3.0))
JPEG = bytes.fromhex("ffd8ffc0000b080001000101011100ffd9")
DRONES = st.builds(
    telemetry.DroneTelemetry,
    st.builds(
        telemetry.Imu,
        st.builds(telemetry.Orientation, FLOATS, FLOATS, FLOATS) | st.just(telemetry.Orientation(0, 0, 0)),
        TELEMETRY_VECTORS,
        st.none() | TELEMETRY_VECTORS,
    ),
    st.builds(telemetry.Altimeter, FLOATS, st.floats(-1, 1)),
    TELEMETRY_VECTORS,
    st.none() | st.builds(telemetry.LandingPad, FLOATS, FLOATS, FLOATS, st.floats(0, 1)),
    mostly(
        telemetry.Camera,
        width=st.integers(1, 4096) | INTS,
        height=st.integers(1, 4096) | INTS,
        fov=st.none() | st.floats(1, 179),
        jpeg=st.none() | st.just(JPEG) | BYTES,
        jpeg_size=st.none(),
    ),
    st.none() | st.booleans() | WRONG,
    st.none() | st.floats(0, 100) | FLOATS | WRONG,
)


@many(280)
@given(DRONES)
def test_a_controller_reads_what_a_drone_sends(event):
    check(telemetry.DroneConnection().send, event, telemetry.ControllerConnection())


@many(120)
@given(mostly(telemetry.DroneCommand, **dict.fromkeys(("thrust", "pitch", "roll", "yaw"), st.floats(-0.5, 0.5))))
def test_a_drone_reads_what_a_controller_sends(event):
    check(telemetry.ControllerConnection().send, event, telemetry.DroneConnection())


@many(120)
@given(
    st.builds(
        telemetry.RoverTelemetry,
        TELEMETRY_VECTORS,
        TELEMETRY_VECTORS,
        STRINGS | st.just("circular") | WRONG,
        st.none() | st.floats(0, 100) | WRONG,
    )
)
def test_everybody_reads_what_a_rover_sends(event):
    for receiving in (telemetry.ControllerConnection(), telemetry.DroneConnection()):
        check(telemetry.RoverConnection().send, event, receiving)


# Whatever the parts of a message are.

OBJECTS = [None, "7", b"7", 1.5, (), (1,), [[]], {}, {1: 2}, Decimal(2), object(), object, math.nan, 2**70, "\ud800"]
ZERO = telemetry.Vector(0.0, 0.0, 9.81)
MOTOR = robot.MotorSensors(0, 1, 2, 3)


def answering(request):
    """What a simulator sends once it has been asked."""
    server = sim.ServerConnection()
    server.receive_data(sim.ClientConnection().send(request))
    server.next_event()
    return server.send


def to_a_controller():
    bed = testbed.TestbedConnection()
    bed.send(CONSTANTS)
    return bed.send


def from_an_autopilot():
    bed, autopilot = testbed.TestbedConnection(), testbed.AutopilotConnection()
    autopilot.receive_data(bed.send(CONSTANTS) + bed.send(FRAME))
    assert [autopilot.next_event() is NEED_DATA for _ in range(2)] == [False, False]
    return autopilot.send


FRAME = testbed.SensorFrame(bytes(6), bytes(6), 0.0, 0.0, yaw=0.0)
#: What sends it, and a message with parts of every kind.
SENT = {
    "subsystems": (
        lambda: robot.RobotConnection(TYPES).send,
        robot.SubsystemInfo((robot.Subsystem(1, "drive", "me", MOTOR, MOTOR), robot.Subsystem(2, "lamp"))),
    ),
    "sensors": (
        lambda: robot.RobotConnection(TYPES).send,
        robot.SensorInfo((robot.Sensor(1, "pack", 9000, 12_000), robot.Sensor(2, "Left", 2550))),
    ),
    "readings": (
        lambda: robot.RobotConnection(TYPES).send,
        robot.SensorUpdate((robot.SensorReading(0, 9000), robot.SensorReading(1, 2550))),
    ),
    "speeds": (lambda: robot.DriverConnection().send, robot.SkidSteerUpdate(0, 1, 2)),
    "unknown packet": (lambda: robot.DriverConnection().send, robot.UnknownPacket(99, b"ab")),
    "trigger": (
        lambda: sim.ClientConnection().send,
        sim.AddTrigger(sim.PathTrigger(1, (0.0, 1.0, 2.0), (3.0, 4.0, 5.0), 1.0)),
    ),
    "extended stream": (
        lambda: sim.ServerConnection().send,
        sim.ExtendedData(1, (sim.ExtendedAttribute("colour", b"red"),)),
    ),
    "entity stream": (lambda: sim.ServerConnection().send, sim.EntityData(1, (0, 5), ((1.0, 2.0, 3.0), True))),
    "attribute": (
        lambda: answering(sim.GetEntity(1, 0)),
        sim.EntityGot(0, (1.0, 2.0, 3.0)),
    ),
    "constants": (lambda: testbed.TestbedConnection().send, CONSTANTS),
    "frame": (to_a_controller, FRAME),
    "parameters": (from_an_autopilot, testbed.MotionParameters(1.0, 2.0, 3.0, 4.0)),
    "controls": (lambda: dronegui.ControllerConnection().send, dronegui.Controls()),
    "demo": (lambda: dronegui.ReceiverConnection().send, dronegui.Demo(3 << 16, 90.0)),
    "detections": (
        lambda: dronegui.ReceiverConnection().send,
        dronegui.VisionDetect((dronegui.Feature(1.0, 2.0, 3.0, 4.0),)),
    ),
    "other navdata": (lambda: dronegui.ReceiverConnection().send, dronegui.OtherNavdata("gps", {"lat": 1.0})),
    "drone": (
        lambda: telemetry.DroneConnection().send,
        telemetry.DroneTelemetry(
            telemetry.Imu(telemetry.Orientation(0.1, 0.2, 0.3), ZERO, ZERO),
            telemetry.Altimeter(2.0, -0.1),
            ZERO,
            telemetry.LandingPad(0.1, 0.2, 2.0, 0.9),
            telemetry.Camera(320, 240, 60.0, JPEG),
            False,
            1.0,
        ),
    ),
    "rover": (lambda: telemetry.RoverConnection().send, telemetry.RoverTelemetry(ZERO, ZERO, "circular", 1.0)),
    "command": (lambda: telemetry.ControllerConnection().send, telemetry.DroneCommand(0.5, 0.1, -0.1, 0.2)),
}


def with_wrong_parts(part):
    """Give a message again and again, each time with another object in place of one of its parts, or of itself."""
    yield from OBJECTS
    if is_dataclass(part):
        for field in fields(part):
            for wrong in with_wrong_parts(getattr(part, field.name)):
                yield replace(part, **{field.name: wrong})
    elif isinstance(part, tuple):
        make = part._make if hasattr(part, "_make") else tuple
        for place, item in enumerate(part):
            for wrong in with_wrong_parts(item):
                yield make([*part[:place], wrong, *part[place + 1 :]])


@pytest.mark.parametrize("name", SENT)
def test_parts_of_the_wrong_type_are_refused_with_a_sentence(name):
    make_send, message = SENT[name]
    assert make_send()(message)
    refused = 0
    for wrong in with_wrong_parts(message):
        send = make_send()
        try:
            send(wrong)
        except LocalProtocolError:
            refused += 1
    assert refused >= len(OBJECTS)
