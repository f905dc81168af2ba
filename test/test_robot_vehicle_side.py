# SPDX-License-Identifier: Apache-2.0
"""What a robot answers its drivers, and what robot_server makes of it, without sockets, clocks and DDS."""

from dataclasses import replace

import pytest

from drone_bridge.robot import codec
from drone_bridge.robot.codec import STOPPED, Speeds
from drone_bridge.robot.device.control import Control
from drone_bridge.robot.device.conversation import RobotConversation
from drone_bridge.robot.device.dialects import FaultyRobotdControl, RobotdControl
from drone_bridge.robot.device.drivers import HangUpError, Instant
from drone_bridge.robot.device.vehicle import DrivenSubsystem
from drone_bridge.robot.server.listing import check_topics, light_topics, listed_by_parameters
from drone_bridge.robot.server.parameters import PARAMETERS
from drone_bridge.robot.session.drive_commands import LEAST_GAP_S, DriveCommands
from drone_bridge.robot.session.listing import Listing

TRACKS, LIGHT = 0, 1
MOTORS = (codec.MotorSensors(0, 0, 0, 0), codec.MotorSensors(0, 0, 0, 0))
WALL_MS = 1_800_000_000_000


class RecordingVehicle:
    """Has tracks and a light, and notes what is done with them."""

    def __init__(self):
        self.subsystems = [
            DrivenSubsystem(codec.SubsystemType.SKID_STEER, "tracks", MOTORS),
            DrivenSubsystem(codec.SubsystemType.LIGHTS, "light"),
        ]
        self.done = []
        self.battery = 12_000

    def drive(self, number, left, right):
        self.done.append((number, left, right))

    def stop(self, number):
        self.done.append((number, "stop"))

    def light(self, number, is_on):
        self.done.append((number, is_on))

    def sensors(self):
        return [codec.Sensor(codec.SensorType.BATTERY, "battery", self.battery, 12_600)]


class Driver:
    """A driver of a Control, with the wire between them."""

    def __init__(self, control, clock, name=None):
        self._wire = codec.DriverConnection()
        self.conversation = RobotConversation(control, "peer", self._wire.receive_data, lambda: clock[0])
        if name:
            self.say(codec.RegisterDriver(name))

    def say(self, *packets):
        """Say something, and return what is said meanwhile."""
        for packet in packets:
            self.conversation.receive_data(self._wire.send(packet))
            while self.conversation.handle_next():
                pass
        return self.heard()

    def heard(self):
        heard = []
        while (event := self._wire.next_event()) is not codec.NEED_DATA:
            heard.append(event)
        return heard


@pytest.fixture
def clock():
    return [Instant(0.0, WALL_MS)]


@pytest.fixture
def vehicle():
    return RecordingVehicle()


@pytest.fixture
def control(vehicle):
    return Control(vehicle, lambda line: None)


def test_a_driver_is_not_dropped_for_what_the_wire_can_not_carry(vehicle, clock):
    lines = []
    control = Control(vehicle, lines.append)
    driver = Driver(control, clock, "alice")
    vehicle.battery = 2**31  # mV
    control.send_log("\ud800")
    assert driver.say(codec.QuerySubsystems(), codec.KeepAlive(1))[-1] == codec.KeepAlive(1)
    assert [line.partition(":")[0] for line in lines[-2:]] == ["LogMessage can't be sent", "SensorInfo can't be sent"]


# Who drives.


def test_a_driver_that_set_its_clock_back_during_a_silence_drives_again(control, vehicle, clock):
    driver = Driver(control, clock, "alice")
    driver.say(codec.BindSubsystem(TRACKS), codec.KeepAlive(WALL_MS))
    assert control.halt_silent(Instant(2.0, WALL_MS), 1.0)
    for number in range(30):
        clock[0] = Instant(2.0 + 0.1 * number, WALL_MS)
        driver.say(codec.KeepAlive(WALL_MS - 3_600_000 + 100 * number), codec.SkidSteerUpdate(TRACKS, 8, 8))
    assert vehicle.done[-1] == (TRACKS, 8, 8)


def test_a_subsystem_held_elsewhere_cannot_be_bound_and_is_listed_as_theirs(control, vehicle, clock):
    driver = Driver(control, clock, "alice")
    vehicle.subsystems[TRACKS] = replace(vehicle.subsystems[TRACKS], is_available=False, other_driver="bob")
    assert driver.say(codec.BindSubsystem(TRACKS)) == [codec.BindFailure(TRACKS)]
    info = next(packet for packet in driver.say(codec.QuerySubsystems()) if isinstance(packet, codec.SubsystemInfo))
    assert info.subsystems[TRACKS].driver == "bob"


# Sensors.


@pytest.mark.parametrize("behave", [RobotdControl, FaultyRobotdControl])
def test_robotd_lists_whole_volts_and_sends_no_readings(behave, vehicle, clock):
    control = behave(vehicle, lambda line: None)
    driver = Driver(control, clock, "alice")
    vehicle.battery = None
    info = driver.say(codec.QuerySubsystems())[0]
    assert info.layout is codec.SensorLayout.ROBOTD_1_2
    assert info.sensors[0] == codec.Sensor(codec.SensorType.BATTERY, "battery", full_voltage_mv=13_000)
    control.send_readings([codec.SensorReading(0, 1)])
    assert driver.heard() == []


# robotd, with and without its faults.


@pytest.mark.parametrize(("behave", "is_faulty"), [(RobotdControl, False), (FaultyRobotdControl, True)])
def test_robotd_forgets_nobody_but_a_server_that_speaks_like_it_does(behave, is_faulty, vehicle, clock):
    control = behave(vehicle, lambda line: None)
    alice, bob = Driver(control, clock, "alice"), Driver(control, clock, "bob")
    alice.say(codec.BindSubsystem(TRACKS), codec.SkidSteerUpdate(TRACKS, 9, 9))
    alice.conversation.leave("it has closed the connection")
    assert vehicle.done == [(TRACKS, 9, 9)] if is_faulty else [(TRACKS, 9, 9), (TRACKS, "stop")]
    if is_faulty:
        with pytest.raises(HangUpError, match="after another driver has gone"):
            bob.say(codec.BindSubsystem(TRACKS))
    else:
        assert bob.say(codec.BindSubsystem(TRACKS))[-1] == codec.BindSuccess(TRACKS)


@pytest.mark.parametrize("behave", [RobotdControl, FaultyRobotdControl])
def test_robotd_hangs_up_on_an_update_of_what_there_is_not_and_the_document_s_robot_ignores_it(behave, vehicle, clock):
    nothing = codec.OpaqueUpdate(7, bytes(4))
    with pytest.raises(HangUpError, match="no subsystem 7"):
        Driver(behave(vehicle, lambda line: None), clock, "alice").say(nothing)
    driver = Driver(Control(vehicle, lambda line: None), clock, "alice")
    assert driver.say(nothing, codec.KeepAlive(1)) == [codec.KeepAlive(1)]


# What is published.


@pytest.fixture
def published():
    return []


@pytest.fixture
def commands(published):
    return DriveCommands(published.append)


def test_changes_come_no_closer_than_a_gap_and_the_newest_wins_but_stopping_is_at_once(commands, published):
    commands.drive(Speeds(1, 1), 0.0)
    commands.drive(Speeds(2, 2), 0.001)
    commands.drive(Speeds(3, 3), 0.002)
    assert commands.due_s == LEAST_GAP_S
    commands.tick(LEAST_GAP_S)
    commands.drive(STOPPED, LEAST_GAP_S + 1e-4)
    assert published == [Speeds(1, 1), Speeds(3, 3), STOPPED]
    commands.drive(Speeds(4, 4), 1.0)  # before the stop was said often enough
    commands.tick(commands.due_s)
    assert published[3:] == [Speeds(4, 4)] * 2


# What there is.


def test_parameters_list_sensors_and_find_those_of_each_side():
    listing, sources = listed_by_parameters(
        "tracks",
        ["headlight", "Rear light"],
        [
            "battery_state",
            "temperature/left_motor",
            "current/left_motor",
            "motor_pwm/m2=Right PWM",
            "battery_state/aux",
        ],
        12.6,
    )
    names = [sensor.name for sensor in listing.sensors]
    assert names == ["battery", "left motor", "left motor", "Right PWM", "aux", "none"]
    assert [subsystem.name for subsystem in listing.subsystems] == ["headlight", "Rear light", "tracks"]
    left, right = listing.subsystems[-1].motors
    assert (left, right) == (codec.MotorSensors(0, 1, 2, 5), codec.MotorSensors(0, 5, 5, 3))
    assert sources[0].sensor.full_voltage_mv == 12_600
    assert [source.topic for source in sources][3:] == ["motor_pwm/m2", "battery_state/aux", ""]
    assert light_topics(listing.subsystems) == {0: "light", 1: "light/rear_light"}
    assert listed_by_parameters("none", ["none"], ["none"], 12.6) == (Listing(), ())


def test_by_default_there_is_nothing_but_a_drive_as_the_java_driver_fails_at_lights():
    default = {declaration.name: declaration.default for declaration in PARAMETERS}
    listing, _ = listed_by_parameters(*(default[name] for name in ("skid_steer", "lights", "sensors", "full_voltage")))
    assert [(subsystem.type.name, subsystem.name) for subsystem in listing.subsystems] == [("SKID_STEER", "tracks")]


@pytest.mark.parametrize(
    ("topics", "error"),
    [
        (["voltage"], "begin with one of battery_state, temperature, current, motor_pwm"),
        (["temperature/"], "not a topic name"),
        (["temperature/a", "temperature/a=b"], "twice"),
        ([f"current/m{number}" for number in range(65)], "64 are allowed"),
    ],
)
def test_invalid_topics_of_sensors_are_refused(topics, error):
    assert error in check_topics(topics)
    assert check_topics(["battery_state", "temperature/a=b"]) is None
