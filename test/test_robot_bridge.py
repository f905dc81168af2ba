# SPDX-License-Identifier: Apache-2.0
"""robot_bridge as a process, between real sockets and real DDS."""

import math
import re
import sys
from pathlib import Path

import pytest
from geometry_msgs.msg import Twist
from processes import Process, executable, when_listening
from rclpy.qos import DurabilityPolicy, QoSProfile
from robot_peer import LAMP, RobotPeer
from ros_session import module_ros, wait_until
from sensor_msgs.msg import BatteryState, Temperature
from std_msgs.msg import Bool
from twists import twist

from drone_bridge.msg import SensorArray, SensorValue
from drone_bridge.robot import codec
from drone_bridge.srv import Bind, Discover, Unbind

CAPTURES = Path(__file__).parent / "captures"
EMULATOR = (sys.executable, "-m", "drone_bridge.robot.emulator", "--port", 0, "--silence-timeout", 0)
LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)  # so that none is missed
LINK_TIMEOUT_S = 5.0  # a robot whose test is held up is not to be taken for silent

ros = module_ros()


@pytest.fixture(scope="module")
def shared():
    """A robot and its bridge. To start a process for each test would take ten times as long as the tests."""
    peer = RobotPeer()
    parameters = {"wheel_separation": 0.4, "max_wheel_speed": 2.0, "frame_prefix": "r1/"}
    parameters |= {"publish_odometry": True}
    with bridge(peer, **parameters) as peer.bridge:
        peer.wait_for(codec.BindSubsystem, lambda packet: packet.id == LAMP)
        yield peer
    peer.close()


@pytest.fixture
def peer(shared):
    """The robot of the shared bridge, newly connected."""
    shared.start_over()
    return shared


def bridge(peer, **parameters):
    parameters = {"driver_name": "tester", "link_timeout": LINK_TIMEOUT_S, **parameters}
    return Process.node("robot_bridge", port=peer.port, **parameters)


# What the robot tells.


def test_sensors_become_topics(ros, peer):
    inboxes = (
        ros.subscribe(BatteryState, "battery_state"),
        ros.subscribe(Temperature, "temperature/left_motor"),
        ros.subscribe(SensorValue, "current/left_motor"),
        ros.subscribe(SensorValue, "motor_pwm/left_motor"),
    )

    def send():
        peer.send(codec.SensorUpdate(tuple(codec.SensorReading(i, 1000 * i + 500) for i in range(4))))
        return all(map(len, inboxes))

    wait_until(send, "a message on every topic")
    # The list of sensors holds other values, which may have come before.
    battery = inboxes[0].wait(lambda message: message.voltage == 0.5)
    temperature = inboxes[1].wait(lambda message: message.temperature == 15.0)
    current = inboxes[2].wait(lambda message: message.value == 2.5)
    inboxes[3].wait(lambda message: message.value == 3500 / 2048)
    assert battery.percentage == pytest.approx(0.5 / 12, rel=1e-5)
    assert (current.name, current.unit, current.header.frame_id) == ("Left Motor", "A", "r1/base_link")
    assert temperature.header.frame_id == battery.header.frame_id == "r1/base_link"


def test_the_recorded_robotd_s_answer_gives_topics_without_values(ros, peer):
    """What the real program said: two batteries whose voltages it does not tell."""
    sensors = ros.subscribe(SensorArray, "sensors", LATCHED)
    second = ros.subscribe(BatteryState, "battery_state/sabertooth_m2_battery")
    recorded = (CAPTURES / "robot_to_driver.bin").read_bytes()
    peer.send_bytes(recorded[: 3 + 0xE2])  # once: the topic is new then, and yet who waits for it hears of it
    battery = second.wait()
    assert (battery.present, battery.location) == (True, "sabertooth M2 battery")
    assert math.isnan(battery.voltage)
    assert math.isnan(battery.percentage)
    # Once is all that this program ever says of it, and yet late subscribers hear it, too.
    late = ros.subscribe(BatteryState, "battery_state/sabertooth_m2_battery", LATCHED)
    assert late.wait().location == "sabertooth M2 battery"
    message = sensors.wait(lambda message: message.layout == "robotd-1.2" and len(message.sensors) == 8)
    assert message.sensors[6].topic == "current/sabertooth_m2_ammeter"


# Services.


def test_lights_are_switched_by_service_and_topic(ros, peer):
    # The light is bound after the tracks.
    wait_until(lambda: ros.switch("robot_bridge/light", True).success, "a bound light")
    assert peer.wait_for(codec.LightUpdate) == codec.LightUpdate(LAMP, True)
    ros.publisher(Bool, "light").publish(Bool(data=False))
    assert peer.wait_for(codec.LightUpdate) == codec.LightUpdate(LAMP, False)
    assert ros.call_again(Unbind, "robot_bridge/unbind", Unbind.Request(id=LAMP)).success
    answer = ros.switch("robot_bridge/light", True)
    assert (answer.success, answer.message) == (False, "No light of the robot is bound.")
    assert ros.call_again(Bind, "robot_bridge/bind", Bind.Request(id=LAMP)).success  # for the next test


# Other drivers, faults.


def test_a_robot_of_protocol_1_is_driven_and_its_battery_read(ros, start_child):
    """Its bricks appear late, and both lists then come unasked."""
    emulator = start_child(*EMULATOR, "--no-discovery", "--dialect", "protocol-1", "--verbose", "--appear-after", 1)
    port = when_listening(emulator).port
    with Process.node("robot_bridge", port=port, remap=["__ns:=/own"]) as process:
        process.wait_for_line(r"granted subsystem 0 \(tracks\)")
        publisher = ros.publisher(Twist, "/own/cmd_vel")
        wait_until(lambda: publisher.publish(twist(1.0)) or emulator.count_lines("motors 2048 2048"), "full speed")
        battery = ros.subscribe(BatteryState, "/own/battery_state").wait()
        assert 11.0 < battery.voltage < 12.6
        assert ros.subscribe(SensorArray, "/own/sensors", LATCHED).wait().layout == "protocol-1"
    assert emulator.count_lines("^connected to ") == 1


# Finding the robot; parameters.


def test_it_finds_the_robot_by_name_and_lists_those_there_are(ros, start_child):
    emulator = start_child(*EMULATOR, "--discovery-port", 0, "--name", "saber")
    discovery_port = int(emulator.wait_for_line(r"discovery on 238\.160\.102\.2:(\d+)")[1])
    port = when_listening(emulator).port
    parameters = {"robot_name": "saber", "port": port, "discovery_port": discovery_port, "discovery_timeout": 3.0}
    with Process.node("robot_bridge", remap=["__ns:=/own"], **parameters) as process:
        process.wait_for_line(r"granted subsystem 0 \(tracks\)")
        clients = [ros.client(Discover, "/own/robot_bridge/discover") for _ in range(2)]
        futures = [client.call_async(Discover.Request()) for client in clients]
        wait_until(lambda: all(future.done() for future in futures), "two answers")
        for future in futures:
            answer = future.result()
            assert (answer.success, answer.message) == (True, "1 answered.")
            assert [(robot.address, robot.name) for robot in answer.robots] == [("127.0.0.1", "saber")]


BAD_PARAMETERS = {
    "The interface is 'eth0', and has to be an IPv4 address.": "discovery_interface:=eth0",
    "driver_name has more than the 255 bytes that are allowed.": f"driver_name:={256 * 'x'}",
    "role is 'listen', and has to be one of connect.": "role:=listen",
    "wheel_separation": "wheel_separation:=0.0",
}


def test_invalid_parameters_are_refused_with_a_sentence(start_child):
    """All at the same time, as starting them is what takes long."""
    children = [start_child(executable("robot_bridge"), "--ros-args", "-p", value) for value in BAD_PARAMETERS.values()]
    for sentence, child in zip(BAD_PARAMETERS, children, strict=True):
        child.wait_for_line(f"ERROR.*{re.escape(sentence)}")
        assert "Traceback" not in child.output
