# SPDX-License-Identifier: Apache-2.0
"""telemetry_server between a landing program and a ROS drone, which the test simulates."""

import base64

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from processes import Process
from ros_session import wait_until
from sensor_msgs.msg import CompressedImage, Imu
from std_msgs.msg import String
from telemetry_documents import ROVER
from telemetry_operator import TelemetryOperator
from telemetry_peer import jpeg

from drone_bridge.msg import LandingPad
from drone_bridge.ros.qos import latched


@pytest.fixture
def operator(closing):
    return closing(TelemetryOperator())


@pytest.fixture
def serve(operator, start_child):
    """Return a function that starts a server for the operator."""
    return lambda **parameters: start_child("telemetry_server", make=Process.node, port=operator.port, **parameters)


class Drone:
    """ROS drone with the minimum of topics: an Imu and odometry, 25 times per second until `stop`."""

    def __init__(self, ros, **others):
        node = ros.node
        self._imu, self._odometry = (
            node.create_publisher(Imu, "imu/data", 5),
            node.create_publisher(Odometry, "odom", 5),
        )
        self._clock = node.get_clock()
        self.others = others  # (publisher, message) by name
        self.timer = node.create_timer(0.04, self.tell)

    def tell(self):
        stamp = self._clock.now().to_msg()
        imu, odometry = Imu(), Odometry()
        imu.header.stamp = odometry.header.stamp = stamp
        imu.linear_acceleration.z = 9.81
        odometry.pose.pose.position.z = 1.5
        for publisher, message in list(self.others.values()):
            message.header.stamp = stamp
            publisher.publish(message)
        self._odometry.publish(odometry)
        self._imu.publish(imu)

    def stop(self):
        self.timer.cancel()


def test_telemetry_follows_the_topics_and_ends_with_them(ros, serve, operator):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    led = ros.subscribe(String, "/rover/telemetry")
    serve(rover_pattern="circular").wait_for_line("no topic provides imu/data")
    data = jpeg(320, 240)
    publisher = ros.node.create_publisher(CompressedImage, "camera/image_raw/compressed", 1)
    drone = Drone(ros, image=(publisher, CompressedImage(format="jpeg", data=data)))
    document = operator.wait(lambda document: document["altimeter"]["altitude"])  # once there is odometry, too
    assert document["imu"]["linear_acceleration"]["z"] == 9.81
    assert document["altimeter"] == {"altitude": 1.5, "vertical_velocity": 0.0}
    assert document["landing_pad"] is None
    camera = operator.wait(lambda document: document["camera"]["image"])["camera"]
    assert base64.b64decode(camera.pop("image")) == data
    assert camera == {"width": 320, "height": 240, "fov": 60.0}
    times = [operator.receive()["timestamp"] for _ in range(10)]
    assert times == sorted(times)
    pad, moving = LandingPad(detected=True, offset_x=7.0, offset_y=-1.0, distance=5.0, confidence=0.5), Odometry()
    moving.pose.pose.position.x, moving.twist.twist.linear.x = 1.5, 0.3
    drone.others |= {
        "pad": (ros.node.create_publisher(LandingPad, "landing_pad", 1), pad),
        "rover": (ros.node.create_publisher(Odometry, "rover/odom", 1), moving),
    }
    expected = {"relative_x": 7.0, "relative_y": -1.0, "distance": 5.0, "confidence": 0.5}
    operator.wait(lambda document: document.get("landing_pad") == expected)
    rover = operator.wait(lambda document: "position" in document)
    assert (rover["position"]["x"], rover["velocity"]["x"], rover["pattern"]) == (1.5, 0.3, "circular")
    ros.node.create_publisher(String, "rover/pattern", latched()).publish(String(data="square"))
    operator.wait(lambda document: document.get("pattern") == "square")
    wait_until(lambda: operator.send(ROVER) or len(led), "the operator's rover", period_s=0.05)
    assert '"pattern":"circular"' in led.wait().data
    reports.wait(lambda report: "connected" in report.status[0].message)
    drone.stop()
    wait_until(lambda: operator.hears_nothing_for(0.3), "silence")
    reports.wait(lambda report: "no topic provides imu/data" in report.status[0].message)
