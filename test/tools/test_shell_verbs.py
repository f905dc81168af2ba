# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge topic`, `service` and `param` as processes, and a node that they find."""

import signal
from functools import partial
from types import SimpleNamespace
from unittest.mock import Mock

import cv2
import numpy as np
import pytest
from geometry_msgs.msg import Twist
from processes import executable
from rclpy.qos import qos_profile_sensor_data
from ros_session import wait_until
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import String
from std_srvs.srv import Trigger

from drone_bridge.ros.qos import latched
from drone_bridge.tools.shell import node as shell_node
from drone_bridge.tools.shell.node import CommandFailedError, call, resolved
from drone_bridge.tools.shell.topic import subscribe

#: Environment of commands that ask for what does not exist.
IN_VAIN = {"DRONE_BRIDGE_DISCOVERY_SECONDS": "10"}


@pytest.fixture
def command(start_child, monkeypatch, tmp_path):
    """command(*words) starts `drone-bridge` on a PATH without ros2, and with time to discover on a busy machine."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DRONE_BRIDGE_DISCOVERY_SECONDS", "60")
    return lambda *words, **options: start_child(executable("drone-bridge"), *words, **options)


def test_topics_are_described_printed_and_published(ros, command):
    latest = ros.node.create_publisher(String, "latest", latched())
    latest.publish(String(data="first"))
    fast = ros.node.create_publisher(String, "fast", qos_profile_sensor_data)
    ros.node.create_timer(0.02, lambda: fast.publish(String(data="again")))
    received = ros.subscribe(Twist, "cmd_vel")

    info = command("topic", "info", "-v", "/latest")
    assert info.wait() == 0
    name = ros.node.get_fully_qualified_name()
    assert {"Type: std_msgs/msg/String", "Publisher count: 1", "Subscription count: 0"} <= set(info.lines)
    assert f"  {name}: std_msgs/msg/String, reliable, transient local" in info.lines
    assert command("topic", "info", "/nothing", env=IN_VAIN).wait() == 1

    nodes = command("node", "list")
    assert nodes.wait() == 0
    assert name in nodes.lines
    assert nodes.count_lines("drone_bridge_node") == 0

    echo = command("topic", "echo", "--once", "latest")
    assert echo.wait() == 0
    assert "data: first" in echo.lines

    echo = command("topic", "echo", "fast")
    echo.wait_for_line("^data: again")
    assert echo.stop(signal.SIGINT) == 0, echo.output

    volatile = ros.node.create_publisher(String, "latest", 10)
    echo = command("topic", "echo", "latest")
    echo.wait_for_line("data: first")
    wait_until(lambda: volatile.get_subscription_count() and latest.get_subscription_count() == 2, "both")
    latest.publish(String(data="second"))
    third = String(data="third")  # which is lost before the command has discovered its publisher
    wait_until(lambda: volatile.publish(third) or echo.count_lines("data: third"), "the third")
    assert echo.count_lines("data: second") == 1
    assert echo.stop(signal.SIGINT) == 0, echo.output

    pub = command("topic", "pub", "-r", "50", "-t", "3", "/cmd_vel", "geometry_msgs/msg/Twist", "{linear: {x: 1}}")
    assert pub.wait() == 0
    wait_until(lambda: len(received), "a message")
    assert command("topic", "echo", "/nothing", env=IN_VAIN).wait() == 1


def test_a_name_that_ros_does_not_have_is_refused_with_a_sentence():
    graph = SimpleNamespace(resolve_topic_name=Mock(side_effect=RuntimeError))
    with pytest.raises(CommandFailedError, match=r"^'/my-bot' is not a name in ROS: letters, digits, underscores"):
        resolved(graph, "/my-bot")


SET_BOOL = "std_srvs/srv/SetBool"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("/light", "/light has type std_srvs/srv/SetBool, not std_srvs/srv/Trigger.$"),
        ("/hold", "No node serves /hold, did you mean '/d./bridge/hold' or '/d./bridge/hold'[?]$"),
        (
            "/d1/bridge/ho_ld",
            "No node serves /d1/bridge/ho_ld, did you mean '/d1/bridge/hold' or '/d2/bridge/hold'[?]$",
        ),
        ("/no/such", "No node serves /no/such[.]$"),
    ],
)
def test_a_service_that_nobody_serves_is_named_soon(monkeypatch, name, error):
    now_s = [0.0]
    monkeypatch.setattr(shell_node, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    monkeypatch.setattr(shell_node.rclpy, "spin_once", lambda _, timeout_sec: now_s.append(now_s.pop() + timeout_sec))
    served = {"shell": ["/shell/hold"], "bridge": ["/light", "/d1/bridge/hold", "/d2/bridge/hold", "/d1/bridge/holt"]}
    graph = SimpleNamespace(  # with a client, whose type would be one of the name, it fails
        resolve_topic_name=str,
        get_name=lambda: "shell",
        get_node_names=lambda: [*served],
        get_node_names_and_namespaces=lambda: [(node, "/") for node in served],
        get_service_names_and_types_by_node=lambda node, _: [(each, [SET_BOOL]) for each in served[node]],
    )
    with pytest.raises(CommandFailedError, match=error):
        call(graph, Trigger, name, None)
    assert now_s[0] < 2.0


def test_messages_of_a_type_that_no_publisher_has_are_not_awaited():
    publishers = [SimpleNamespace(topic_type="std_msgs/msg/String")]
    graph = SimpleNamespace(resolve_topic_name=str, get_publishers_info_by_topic=lambda _: publishers)
    with pytest.raises(CommandFailedError, match=r"/odom has type std_msgs/msg/String, not nav_msgs/msg/Odometry[.]$"):
        subscribe(graph, SimpleNamespace(topic="/odom", type="nav_msgs/Odometry"), print)


def test_ros2_is_run_where_it_is_installed(command, tmp_path):
    ros2 = tmp_path / "ros2"
    ros2.write_text('#!/bin/sh\necho "ros2: $*"\n')
    ros2.chmod(0o755)
    echo = command("topic", "echo", "--once", "/odom")
    assert echo.wait() == 0
    assert "ros2: topic echo --once /odom" in echo.lines


def test_a_node_is_run_by_its_name(command):
    node = command("run", "state_publisher", "--help")
    assert node.wait() == 2
    assert "robot_bridge" in node.output
    node = command("run", "rover_controller", "--ros-args", "-r", "__node:=my_rover")
    node.wait_for_line("my_rover")
    assert node.stop(signal.SIGINT) == 0


def test_a_picture_is_what_the_camera_has_sent(ros, command, tmp_path):
    pixels = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    jpeg = cv2.imencode(".jpg", pixels)[1].tobytes()
    raw = Image(
        height=2, width=3, encoding="bgr8", step=10, data=b"".join(bytes(row) + b"!" for row in pixels.reshape(2, 9))
    )
    assert command("picture", tmp_path / "seen.jpg").wait() == 1, "no camera"
    for message, topic in (
        (raw, "eye/image_raw"),
        (CompressedImage(format="jpeg", data=jpeg), "eye/image_raw/compressed"),
    ):
        publisher = ros.node.create_publisher(type(message), topic, qos_profile_sensor_data)
        ros.node.create_timer(0.1, partial(publisher.publish, message))
    for name, *topic in (("seen.jpg",), ("seen.png", "eye/image_raw")):
        saved = command("picture", tmp_path / name, *topic)
        assert saved.wait() == 0, saved.output
    assert (tmp_path / "seen.jpg").read_bytes() == jpeg
    assert (cv2.imread(str(tmp_path / "seen.png")) == pixels).all()
    assert [command("picture", tmp_path / name).wait() for name in ("seen.gif", "none/seen.jpg")] == [2, 1]
