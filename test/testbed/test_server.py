# SPDX-License-Identifier: Apache-2.0
"""testbed_server as a process, between an autopilot's socket and a vehicle with few topics."""

import contextlib
import itertools

import pytest
from processes import TIMEOUT_S, Process
from ros_session import wait_until
from sensor_msgs.msg import CameraInfo, Image, Imu
from testbed_autopilot import MOTION, AutopilotPeer
from testbed_bytes import float32

from drone_bridge.msg import CommandRates, DroneProperties
from drone_bridge.ros.qos import latched
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.ros.topics.images import Rgb8Image
from drone_bridge.testbed import topics as translate
from drone_bridge.testbed.codec import AngleUnit, Constants, SensorFrame
from drone_bridge.testbed.server.node import TestbedServer
from drone_bridge.testbed.topics import StereoFrameNames

CONSTANTS = Constants(120.0, 90.0, 16, 8, 0.25, 1.5, float32(9.81), 0.25, 25.0, 720.0, 360.0, 180.0)
PIXELS = bytes([1]) * CONSTANTS.image_bytes
UNIT, NAMES = AngleUnit.DEGREES, StereoFrameNames()


def test_one_camera_and_parameters_do_where_there_is_no_more(ros):
    """Without drone_properties, without a right camera, and before that without any topic."""
    parameters = {"cameras": "mono", "drone.mass": 2.5, "negative_gravity": True, "command_timeout": 60.0}
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(Process.node("testbed_server", remap=["__ns:=/mono"], port=0, **parameters))
        port = int(server.wait_for_line(r"Waiting for a peer on 127\.0\.0\.1:(\d+)")[1])
        autopilot = stack.enter_context(AutopilotPeer(port))
        server.wait_for_line("first frame.* /mono/left/image_raw and /mono/imu/data")
        commands = ros.subscribe(CommandRates, "mono/cmd_rates")
        images, imus = ros.publisher(Image, "mono/left/image_raw"), ros.publisher(Imu, "mono/imu/data")
        infos, stamps_s = ros.node.create_publisher(CameraInfo, "mono/left/camera_info", 1), itertools.count(100)

        def show():
            stamp = time_from_seconds(next(stamps_s))
            infos.publish(translate.camera_info(CONSTANTS, UNIT, NAMES, "left"))
            image = Rgb8Image(16, 8, "left").filled(PIXELS, stamp)
            image.encoding = "bgr8"
            images.publish(image)
            attitude = SensorFrame(b"", b"", 0.0, pitch=-3.0, yaw=30.0)
            imus.publish(translate.TestbedTranslation(UNIT, NAMES).imu(attitude, stamp))
            autopilot.socket.settimeout(0.1)
            with contextlib.suppress(TimeoutError):
                return autopilot.receive()
            return None

        constants = wait_until(show, "the constants")
        assert (constants.weight, constants.camera_separation) == (2.5, 0.0)
        assert constants.gravity == float32(-9.81)
        assert float32(constants.horizontal_angle_of_view) == CONSTANTS.horizontal_angle_of_view
        autopilot.socket.settimeout(TIMEOUT_S)
        frame = autopilot.receive()
        assert (frame.time, float32(frame.pitch), float32(frame.yaw)) == (0.0, -3.0, 30.0)
        assert bytes(frame.left) == bytes(frame.right) == PIXELS
        server.wait_for_line("No publisher on drone_properties")
        autopilot.answer()
        assert commands.wait().thrust == MOTION.thrust
        server.send()  # SIGTERM: the last command is the neutral one
        assert commands.wait().thrust == pytest.approx(2.5 * 9.81)
        assert server.wait() == 0


def test_camera_infos_are_ignored_once_drone_properties_are_there(ros):
    """Each costs as much as an attitude."""
    ros.run(TestbedServer, port=0, source_timeout=0.05)
    infos = [ros.node.create_publisher(CameraInfo, f"{side}/camera_info", 1) for side in ("left", "right")]
    wait_until(lambda: all(info.get_subscription_count() == 1 for info in infos), "subscriptions to camera_info")
    properties = ros.node.create_publisher(DroneProperties, "drone_properties", latched())
    properties.publish(translate.drone_properties(CONSTANTS, UNIT))
    wait_until(lambda: not any(info.get_subscription_count() for info in infos), "their end")
