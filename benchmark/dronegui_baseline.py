# SPDX-License-Identifier: Apache-2.0
"""Baseline for dronegui_bridge: a minimal script between a GUI and ROS 2.

It sends the newest velocity as shares at 20 Hz, holds take_off down on request, and publishes navdata. It does not
check or count anything, has no command timeout, and does not control velocity by feedback.
"""

import argparse
import contextlib
import json
import math
import select
import socket
import sys
import time
from typing import Any

import orjson
import rclpy
from builtin_interfaces.msg import Time
from filling import fill_rotation, rotation_of
from geometry_msgs.msg import PointStamped, TransformStamped, Twist, TwistWithCovarianceStamped
from nav_msgs.msg import Odometry
from nodes import publish, ros, spin_in_a_thread
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import BatteryState, Imu, Range
from std_msgs.msg import Bool, Empty, Header, String
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import Detection, DetectionArray, DroneGuiState

PERIOD_S = 0.05
PRESS_S = 0.5
LANDED, FLYING, HOVERING = 2, 3, 4
MAX_TILT, MAX_YAW_RATE = 0.2094, 1.745
DRAG = 0.3  # tilt per m/s, about


class Baseline:
    """Sends controls, and publishes navdata. Messages are created once and refilled."""

    def __init__(self, node: Node, gui: socket.socket) -> None:
        self._gui = gui
        self._clock = node.get_clock()
        self._seq = 0
        self._shares = dict.fromkeys(("roll", "pitch", "yaw", "gas"), 0.0)
        self._is_commanded = False
        self._pressed_s = -math.inf
        self._state = 0
        self._pose = [0.0, 0.0]
        self._before_s = math.nan
        make = node.create_publisher
        self._sent = make(DroneGuiState, "dronegui/state", 10)
        self._raw = make(String, "dronegui/navdata", 50)
        self._detections = make(DetectionArray, "detections", 10)
        self._battery_publisher = make(BatteryState, "battery_state", 10)
        self._height_publisher = make(PointStamped, "height", 10)
        self._range_publisher = make(Range, "altitude", 10)
        self._velocity_publisher = make(TwistWithCovarianceStamped, "velocity", 10)
        self._imu_publisher = make(Imu, "imu/data", 10)
        self._odometry_publisher = make(Odometry, "odom", 10)
        self._tf_publisher = make(TFMessage, "/tf", 100)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._flying_publisher = make(Bool, "flying", latched)
        self._battery = BatteryState(header=Header(frame_id="base_link"), present=True)
        self._height = PointStamped(header=Header(frame_id="base_footprint"))
        self._range = Range(header=Header(frame_id="altimeter"), min_range=0.2, max_range=6.0)
        self._velocity = TwistWithCovarianceStamped(header=Header(frame_id="base_link"))
        self._imu = Imu(header=Header(frame_id="base_link"))
        self._odometry = Odometry(header=Header(frame_id="odom"), child_frame_id="base_link")
        self._body, self._ground = (
            TransformStamped(header=self._odometry.header, child_frame_id=name)
            for name in ("base_link", "base_footprint")
        )
        self._tf = TFMessage(transforms=[self._body, self._ground])
        node.create_subscription(Twist, "cmd_vel", self._fly, 1)
        node.create_subscription(Empty, "takeoff", self._take_off, 1)

    def _fly(self, twist: Twist) -> None:
        pitch, yaw = -twist.linear.x * DRAG / MAX_TILT, -twist.angular.z / MAX_YAW_RATE
        self._shares = {"roll": -twist.linear.y * DRAG / MAX_TILT, "pitch": pitch, "yaw": yaw, "gas": twist.linear.z}
        self._is_commanded = True

    def _take_off(self, _: Empty) -> None:
        if self._state == LANDED:
            self._pressed_s = time.monotonic()

    def send(self) -> None:
        """Send all controls, and publish them."""
        self._seq += 1
        buttons = {
            "take_off": time.monotonic() < self._pressed_s + PRESS_S,
            "reset": False,
            "hover": not self._is_commanded,
        }
        state = {**buttons, **self._shares}
        self._gui.send(json.dumps({"seq": self._seq, "state": state}).encode())
        message = DroneGuiState(seq=self._seq, **state)
        message.header.stamp = self._clock.now().to_msg()
        publish(self._sent, message)

    def take(self, datagram: bytes) -> None:
        """Publish a block of navdata."""
        publish(self._raw, String(data=datagram.decode()))
        block = orjson.loads(datagram)
        if block["type"] == "demo":
            self._take_demo(block, self._clock.now().to_msg())
        elif block["type"] == "visiondetect":
            message = DetectionArray(detections=[_detection(feature) for feature in block["features"]])
            message.header = Header(stamp=self._clock.now().to_msg(), frame_id="camera_optical_frame")
            publish(self._detections, message)

    def _take_demo(self, demo: dict[str, Any], stamp: Time) -> None:
        phi, theta, psi = (math.radians(demo[name] / 1000) for name in ("phi", "theta", "psi"))
        height = demo["altitude"] / 1000
        forward, left, up = demo["vx"] / 1000, -demo["vy"] / 1000, -demo["vz"] / 1000
        self._battery.header.stamp = self._height.header.stamp = self._range.header.stamp = stamp
        self._velocity.header.stamp = self._imu.header.stamp = self._odometry.header.stamp = stamp
        self._battery.percentage = demo["vbat_flying_percentage"] / 100
        publish(self._battery_publisher, self._battery)
        self._height.point.z = self._range.range = height
        publish(self._height_publisher, self._height)
        publish(self._range_publisher, self._range)
        linear = self._velocity.twist.twist.linear
        linear.x, linear.y, linear.z = forward, left, up
        publish(self._velocity_publisher, self._velocity)
        rotation = rotation_of(phi, -theta, -psi)
        fill_rotation(self._imu.orientation, rotation)
        publish(self._imu_publisher, self._imu)
        self._move(forward, left, -psi)
        pose, linear, moved = self._odometry.pose.pose, self._odometry.twist.twist.linear, self._body.transform
        linear.x, linear.y, linear.z = forward, left, up
        pose.position.x, pose.position.y = self._pose
        moved.translation.x, moved.translation.y = self._pose
        pose.position.z = moved.translation.z = height
        fill_rotation(pose.orientation, rotation)
        fill_rotation(moved.rotation, rotation)
        publish(self._odometry_publisher, self._odometry)
        below = self._ground.transform
        below.translation.x, below.translation.y = self._pose
        fill_rotation(below.rotation, rotation_of(0.0, 0.0, -psi))
        publish(self._tf_publisher, self._tf)
        if (state := demo["ctrl_state"] >> 16) != self._state:
            self._state = state
            publish(self._flying_publisher, Bool(data=state in (FLYING, HOVERING)))

    def _move(self, forward: float, left: float, yaw: float) -> None:
        """Integrate the velocity."""
        now_s = time.monotonic()
        step_s = 0.0 if math.isnan(self._before_s) else now_s - self._before_s
        self._before_s = now_s
        self._pose[0] += step_s * (forward * math.cos(yaw) - left * math.sin(yaw))
        self._pose[1] += step_s * (forward * math.sin(yaw) + left * math.cos(yaw))


def _detection(feature: dict[str, Any]) -> Detection:
    return Detection(
        center_x=feature["xc"] / 1000,
        center_y=feature["yc"] / 1000,
        width=feature["width"] / 1000,
        height=feature["height"] / 1000,
        distance=feature["dist"] / 100,
    )


def main() -> int:
    """Serve one GUI until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("namespace")
    parser.add_argument("port", type=int)
    parser.add_argument("navdata_port", type=int)
    arguments = parser.parse_args()
    with (
        ros(is_interrupted=True),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gui,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as navdata,
    ):
        gui.connect(("127.0.0.1", arguments.port))
        navdata.bind(("127.0.0.1", arguments.navdata_port))
        node = rclpy.create_node("baseline", namespace=arguments.namespace)
        baseline = Baseline(node, gui)
        spin_in_a_thread(node)
        due_s = time.monotonic()
        while True:
            if (now_s := time.monotonic()) >= due_s:
                due_s += PERIOD_S
                with contextlib.suppress(ConnectionRefusedError):  # the GUI has not started yet
                    baseline.send()
            if select.select([navdata], [], [], max(0.0, due_s - now_s))[0]:
                baseline.take(navdata.recv(65536))
    return 0


if __name__ == "__main__":
    sys.exit(main())
