# SPDX-License-Identifier: Apache-2.0
"""Process tests of robot_bridge, between real sockets and real DDS."""

import sys

import pytest
from processes import Process, when_listening
from robot_peer import LAMP, RobotPeer
from ros_session import wait_until
from sensor_msgs.msg import BatteryState, Temperature
from std_msgs.msg import Bool

from drone_bridge.msg import SensorValue
from drone_bridge.robot import codec
from drone_bridge.srv import Bind, Discover, Unbind

EMULATOR = (sys.executable, "-m", "drone_bridge.robot.vehicle.emulator", "--port", 0, "--silence-timeout", 0)


@pytest.fixture
def peer():
    """Robot peer and its bridge."""
    peer = RobotPeer()
    parameters = {"driver_name": "tester", "frame_prefix": "r1/"}
    parameters |= {"link_timeout": 60.0}  # a stalled test must not make the robot count as silent
    with Process.node("robot_bridge", port=peer.port, **parameters):
        peer.wait_for(codec.BindSubsystem, lambda packet: packet.id == LAMP)
        yield peer
    peer.close()


def test_sensors_become_topics_and_lights_switch_by_service_and_topic(ros, peer):
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
    # The list of sensors has other values, which may arrive first.
    battery = inboxes[0].wait(lambda message: message.voltage == 0.5)
    temperature = inboxes[1].wait(lambda message: message.temperature == 15.0)
    current = inboxes[2].wait(lambda message: message.value == 2.5)
    inboxes[3].wait(lambda message: message.value == 3500 / 2048)
    assert battery.percentage == pytest.approx(0.5 / 12, rel=1e-5)
    assert (current.name, current.unit, current.header.frame_id) == ("Left Motor", "A", "r1/base_link")
    assert temperature.header.frame_id == battery.header.frame_id == "r1/base_link"
    # The light is bound after the tracks.
    wait_until(lambda: ros.switch("robot_bridge/light", True).success, "a bound light")
    assert peer.wait_for(codec.LightUpdate) == codec.LightUpdate(LAMP, True)
    ros.publisher(Bool, "light").publish(Bool(data=False))
    assert peer.wait_for(codec.LightUpdate) == codec.LightUpdate(LAMP, False)
    assert ros.call_again(Unbind, "robot_bridge/unbind", Unbind.Request(id=LAMP)).success
    answer = ros.switch("robot_bridge/light", True)
    assert not answer.success
    assert "bound" in answer.message
    assert ros.call_again(Bind, "robot_bridge/bind", Bind.Request(id=LAMP)).success


def test_the_robot_is_found_by_name_and_discovery_lists_all_robots(ros, start_child):
    emulator = start_child(*EMULATOR, "--discovery-port", 0, "--name", "saber")
    discovery_port = int(emulator.wait_for_line(r"discovery on 238\.160\.102\.2:(\d+)")[1])
    port = when_listening(emulator).port
    parameters = {"robot_name": "saber", "port": port, "discovery_port": discovery_port}
    with Process.node("robot_bridge", remap=["__ns:=/own"], **parameters) as process:
        process.wait_for_line(r"granted subsystem 0 \(tracks\)")
        clients = [ros.client(Discover, "/own/robot_bridge/discover") for _ in range(2)]

        def found():
            """Call both services concurrently. A reply may be late."""
            futures = [client.call_async(Discover.Request()) for client in clients]
            answers = [wait_until(future.done, "an answer") and future.result() for future in futures]
            return all(answer.success and answer.message == "1 answered." for answer in answers) and answers

        for answer in wait_until(found, "the robot in both answers"):
            assert [(robot.address, robot.name) for robot in answer.robots] == [("127.0.0.1", "saber")]
