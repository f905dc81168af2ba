# SPDX-License-Identifier: Apache-2.0
"""dronegui_bridge as a process, with an emulated GUI and its drone."""

import pytest
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from ports import free_port
from processes import Process, when_listening
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import repeating
from sensor_msgs.msg import Imu, Range
from tf2_msgs.msg import TFMessage
from twists import twist

from drone_bridge.msg import DetectionArray
from drone_bridge.ros.topics.reckoned_odometry import POSE_VARIANCES

LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@pytest.fixture
def bridge(start_child):
    """Bridge with an emulated GUI and its drone."""
    port = free_port()
    ports = ("--port", "0", "--navdata-source-port", "0", "--navdata-port", port, "--no-video")
    gui = start_child("drone_bridge.dronegui.vehicle.emulator", *ports, "--bootstrapped", make=Process.module)
    parameters = {"port": when_listening(gui).port, "navdata_port": port, "video_port": 0, "press_time": 0.05}
    parameters |= {"navdata_timeout": 30.0, "confirm_timeout": 30.0}  # for a drone that is delayed by a busy machine
    names = {"frame_prefix": "d1/", "odom_frame": "start"}
    with Process.node("dronegui_bridge", **parameters, **names) as process:
        process.wait_for_line("Sending to")  # buttons can be pressed from now on
        yield process


def test_navdata_becomes_topics(ros, bridge):
    topics = {"imu/data": Imu, "altitude": Range, "odom": Odometry, "detections": DetectionArray, "/tf": TFMessage}
    inboxes = {topic: ros.subscribe(kind, topic) for topic, kind in topics.items()}
    static = ros.subscribe(TFMessage, "/tf_static", LATCHED)
    assert ros.trigger("dronegui_bridge/takeoff").success
    assert inboxes["altitude"].wait(lambda message: message.range > 0.9).header.frame_id == "d1/altimeter_link"
    detected = inboxes["detections"].wait(lambda message: message.detections)
    assert len(detected.detections) == 1
    publisher = ros.publisher(Twist, "cmd_vel")
    with repeating(lambda _: publisher.publish(twist(forward=1.5))):
        odometry = inboxes["odom"].wait(lambda message: message.twist.twist.linear.x > 1.0)
    assert (odometry.header.frame_id, odometry.child_frame_id) == ("d1/start", "d1/base_link")
    assert odometry.pose.pose.position.x > 0.3
    assert odometry.pose.pose.position.z == pytest.approx(1.0, abs=0.2)
    assert odometry.pose.covariance[0] > POSE_VARIANCES[0]
    assert inboxes["imu/data"].wait(lambda message: message.orientation.y > 0.02)  # the nose is down
    moved = inboxes["/tf"].wait(lambda message: message.transforms[0].header.stamp == odometry.header.stamp)
    assert moved.transforms[0].transform.translation.x == odometry.pose.pose.position.x
    # One of another test's bridge may arrive, too.
    placed = static.wait(lambda message: message.transforms[0].child_frame_id == "d1/altimeter_link")
    assert detected.header.frame_id in {each.child_frame_id for each in placed.transforms}
