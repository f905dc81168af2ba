# SPDX-License-Identifier: Apache-2.0
"""Robots with a camera and without a watchdog, through running bridges and servers."""

import contextlib
import signal

import pytest
from geometry_msgs.msg import Twist
from own_robots import installed
from ports import free_port
from processes import executable
from repository import TESTS
from ros_session import module_ros, repeating
from sensor_msgs.msg import Image

ros = module_ros()
RAW = "camera/image_raw"
#: Timeout of the tests of one file.
CHECK_S = 280.0


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return installed(tmp_path_factory.mktemp("robots"), TESTS / "robot_class" / "camera_robots")


@pytest.fixture
def start(environment, start_child):
    """start(program, *words) runs a program of the package where the robots are installed."""
    return lambda program, *words: start_child(executable(program), *words, env=environment)


@pytest.fixture
def bridge(start):
    """bridge(name) starts an emulated robot and its bridge, and returns both."""

    def start_both(name, *words):
        emulator = start("drone-bridge", "emulate", name, "--port", "0")
        port = emulator.wait_for_line(r"listening on 127\.0\.0\.1:(\d+)")[1]
        return emulator, start("robot_class_bridge", name, f"port:={port}", *words)

    return start_both


@pytest.mark.exhaustive
def test_a_client_of_the_server_receives_images_from_ros(start, ros):
    """A bridge is the client, in a namespace of its own."""
    port = free_port()
    start("robot_class_server", "raw_camera", f"port:={port}")
    start("robot_class_bridge", "raw_camera", f"port:={port}", "--ros-args", "-r", "__ns:=/client")
    received, publisher = ros.subscribe(Image, f"/client/{RAW}"), ros.publisher(Image, RAW)
    sent = Image(width=2, height=1, encoding="bgr8", step=6, data=[3, 2, 1, 6, 5, 4])
    with repeating(lambda _: ros.publish_fresh(publisher, sent)):
        image = received.wait(lambda image: image.width == sent.width)  # the robot has a picture until one arrives
        assert bytes(image.data) == bytes([1, 2, 3, 4, 5, 6])


@contextlib.contextmanager
def driven(ros):
    publisher = ros.publisher(Twist, "cmd_vel")
    twist = Twist()
    twist.linear.x = 0.5
    with repeating(lambda _: publisher.publish(twist)):
        yield


def test_a_bridge_warns_of_a_robot_without_a_watchdog(bridge, ros, start):
    emulator, node = bridge("raw_camera")
    node.wait_for_line(r"WARN.*no watchdog")
    with driven(ros):
        emulator.wait_for_line("^moves at")
        node.send(signal.SIGKILL)
        node.wait()
    emulator.wait_for_line("^stands at")  # by the last words of its bridge
    asked = start("drone-bridge", "check", "raw_camera", "-k", "whose_bridge_and_its_child_are_killed")
    assert asked.wait(CHECK_S) == 0, asked.output
    asked.wait_for_line("raw_camera: .* moves on")
