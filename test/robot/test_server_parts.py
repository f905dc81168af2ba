# SPDX-License-Identifier: Apache-2.0
"""Parts of robot_server without DDS: drive commands, listings, sensor subscriptions."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time

from drone_bridge.robot import codec
from drone_bridge.robot.codec import STOPPED, Speeds
from drone_bridge.robot.topics import RobotTranslation, SensorSource
from drone_bridge.robot.vehicle.server import sources
from drone_bridge.robot.vehicle.server.listing import check_topics, light_topics, listing_from_parameters
from drone_bridge.robot.vehicle.server.parameters import PARAMETERS
from drone_bridge.robot.vehicle.server.sources import ListedParts, SensorSubscriptions
from drone_bridge.robot.vehicle.session.drive_commands import LEAST_GAP_S, DriveCommands
from drone_bridge.robot.vehicle.session.listing import Listing

# Drive commands.


def test_changes_are_rate_limited_the_newest_wins_and_a_stop_is_immediate():
    published = []
    commands = DriveCommands(published.append)
    commands.drive(Speeds(1, 1), 0.0)
    commands.drive(Speeds(2, 2), 0.001)
    commands.drive(Speeds(3, 3), 0.002)
    assert commands.due_s == LEAST_GAP_S
    commands.tick(LEAST_GAP_S)
    commands.drive(STOPPED, LEAST_GAP_S + 1e-4)
    assert published == [Speeds(1, 1), Speeds(3, 3), STOPPED]
    commands.drive(Speeds(4, 4), 1.0)  # before the last repeat of the stop
    commands.tick(commands.due_s)
    assert published[3:] == [Speeds(4, 4)] * 2


# Listings.


def test_parameters_list_sensors_and_assign_them_to_sides():
    listing, of_topics = listing_from_parameters(
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
    assert of_topics[0].sensor.full_voltage_mv == 12_600
    assert [source.topic for source in of_topics][3:] == ["motor_pwm/m2", "battery_state/aux", ""]
    assert light_topics(listing.subsystems) == {0: "light", 1: "light/rear_light"}
    assert listing_from_parameters("none", ["none"], ["none"], 12.6) == (Listing(), ())


def test_default_list_has_only_a_skid_steer_as_java_driver_fails_on_lights():
    default = {declaration.name: declaration.default for declaration in PARAMETERS}
    names = ("skid_steer", "lights", "sensors", "full_voltage")
    listing, _ = listing_from_parameters(*(default[name] for name in names))
    assert [(subsystem.type.name, subsystem.name) for subsystem in listing.subsystems] == [("SKID_STEER", "tracks")]


def test_values_can_be_cleared_while_they_are_taken(monkeypatch):
    """One thread takes values while another one unsubscribes."""

    class Cleared(dict):
        def popitem(self):
            taken = super().popitem()
            self.clear()
            return taken

        def __bool__(self):
            return True  # as another thread has just seen it

    found = SensorSubscriptions(None, None, lambda: None)
    monkeypatch.setattr(found, "_values", Cleared({1: 5, 2: 6}))
    assert found.take() == {2: 6}


def test_robot_behind_a_bridge_is_available_while_connected_and_reported(monkeypatch):
    watch, heard, stamp = SimpleNamespace(is_gone=False, is_vehicle_silent=True), {}, Time()
    monkeypatch.setattr(sources, "BridgeWatch", lambda node, bridges, on_change: watch)
    node = SimpleNamespace(make_subscription=lambda kind, topic, callback, qos: heard.__setitem__(topic, callback))
    followed, changes = [], []
    subscriptions = SimpleNamespace(follow=lambda listed, are_of_bridge: followed.append(listed))
    listed = ListedParts(node, RobotTranslation(), subscriptions, lambda: changes.append(listed.newest()))
    bridge, pack = RobotTranslation(), codec.SensorInfo((codec.Sensor(codec.SensorType.BATTERY, "pack", None, 12_000),))
    drive = codec.Subsystem(codec.SubsystemType.SKID_STEER, "drive", "me", *[codec.MotorSensors(0, 0, 0, 0)] * 2)
    lamp = codec.Subsystem(codec.SubsystemType.LIGHTS, "lamp", "bob")
    heard["sensors"](bridge.sensors(pack, stamp))
    heard["sensors"](bridge.sensors(pack, stamp))  # a repeat changes nothing
    bridge.bound = {0}
    heard["subsystems"](bridge.subsystems(codec.SubsystemInfo((drive, lamp)), stamp))
    assert followed == [(SensorSource(pack.sensors[0], "battery_state"),)]
    assert changes[:2] == [None, None]
    assert [(each.name, each.is_available, each.other_driver) for each in changes[2].subsystems] == [
        ("drive", True, ""),
        ("lamp", False, "bob"),
    ]
    assert (changes[2].sensors, listed.is_silent) == (pack.sensors, True)
    watch.is_gone = True
    assert listed.newest() is None
    watch.is_gone, bridge.bound = False, ()
    heard["subsystems"](bridge.subsystems(codec.SubsystemInfo((replace(drive, driver=""),)), stamp))
    assert (listed.newest(), listed.is_silent) == (None, False)


@pytest.mark.parametrize(
    ("topics", "error"),
    [
        (["voltage"], "begin with one of battery_state, temperature, current, motor_pwm"),
        (["temperature/"], "not a topic name"),
        (["temperature/a", "temperature/a=b"], "duplicate"),
        ([f"current/m{number}" for number in range(65)], "64 are allowed"),
    ],
)
def test_invalid_topics_of_sensors_are_refused(topics, error):
    assert error in check_topics(topics)
    assert check_topics(["battery_state", "temperature/a=b"]) is None
