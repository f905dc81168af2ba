# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge check`: a vehicle that fits is told so, and one that does not gets the sentence that says why."""

import contextlib
import subprocess
import sys

import pytest
from nav_msgs.msg import Odometry
from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import repeating
from sensor_msgs.msg import Image, Imu
from std_msgs.msg import Header

from drone_bridge.msg import CommandRates, DroneProperties

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
PERIOD_S = 0.05
NEEDED = ("imu/data", "left/image_raw", "right/image_raw", "drone_properties")
FRAMES = {
    "left/image_raw": "left_camera_optical_frame",
    "right/image_raw": "right_camera_optical_frame",
    "imu/data": "base_link",
}


def check(*options):
    """Return the exit status and the lines."""
    command = [sys.executable, "-m", "drone_bridge.tools.check", *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert not done.stderr
    return done.returncode, done.stdout


class Vehicle:
    """A drone with two cameras for testbed_server, as its owner has written it."""

    def __init__(self, ros):
        self._ros = ros
        self.types = {"imu/data": Imu, "left/image_raw": Image, "right/image_raw": Image}
        self.properties_qos = LATCHED
        self.frames = dict(FRAMES)
        self.periods_s = dict.fromkeys(FRAMES, PERIOD_S)

    def start(self, stack):
        node = self._ros.node
        node.create_subscription(CommandRates, "cmd_rates", lambda message: None, 1)
        properties = DroneProperties(header=Header(frame_id="base_link"))
        node.create_publisher(DroneProperties, "drone_properties", self.properties_qos).publish(properties)
        for topic, kind in self.types.items():
            publisher = node.create_publisher(kind, topic, 10)

            def publish(_, publisher=publisher, kind=kind, topic=topic):
                message = kind()
                message.header.frame_id = self.frames[topic]
                self._ros.publish_fresh(publisher, message)

            stack.enter_context(repeating(publish, self.periods_s[topic]))


@pytest.fixture
def stack():
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def server(free_port):
    with Process.node("testbed_server", port=free_port) as node:
        yield node


def break_nothing(vehicle):
    pass


def break_type(vehicle):
    vehicle.types["imu/data"] = Odometry


def break_qos(vehicle):
    vehicle.properties_qos = QoSProfile(depth=1)


def break_frame(vehicle):
    vehicle.frames["left/image_raw"] = "camera"


def break_rate(vehicle):
    vehicle.periods_s["right/image_raw"] = 1.5


@pytest.mark.parametrize(
    ("breaking", "sentence"),
    [
        (break_nothing, ""),
        (break_type, "imu/data: /test_session publishes nav_msgs/msg/Odometry, and it has to be sensor_msgs/msg/Imu"),
        (
            break_qos,
            "drone_properties: /test_session publishes it with durability volatile, and it should be transient",
        ),
        (break_frame, "left/image_raw: Its frame_id is 'camera', where left_camera_optical_frame is expected"),
        (break_rate, "right/image_raw: It comes 0.67 times per second, and a message counts for 1 s"),
    ],
)
def test_each_fault_is_said_in_a_sentence(ros, server, stack, breaking, sentence):
    vehicle = Vehicle(ros)
    breaking(vehicle)
    vehicle.start(stack)
    status, said = check("testbed_server", "--seconds", "4")
    if sentence:
        assert sentence in said, said
        assert (status, said.count("->")) == (1, 1), said
    else:
        assert (status, said.splitlines()[-1]) == (0, "Everything that is needed is there."), said
        assert all(f"ok takes     {topic} " in said for topic in NEEDED), said


def test_a_vehicle_that_is_not_there_is_missed_topic_by_topic(ros, server):
    status, said = check("testbed_server", "--seconds", "1")
    assert status == 1
    for topic, why in (("imu/data", "no frame is sent"), ("cmd_rates", "commands move no vehicle")):
        assert f"{topic}: Nobody " in said, said
        assert why in said


def test_a_node_that_is_not_there_is_said(ros):
    assert check("robot_bridge", "--namespace", "r1") == (
        1,
        "! No node /r1/robot_bridge runs here, or none that this machine hears: launch it first.\n",
    )
