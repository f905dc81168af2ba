# SPDX-License-Identifier: Apache-2.0
"""testbed_server as a process, between an autopilot's socket and topics that a test publishes."""

import contextlib
import itertools

import pytest
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from processes import TIMEOUT_S, Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import wait_until
from sensor_msgs.msg import CameraInfo, Image, Imu
from testbed_autopilot import MOTION, AutopilotPeer
from testbed_bytes import float32

from drone_bridge.msg import CommandRates, DroneProperties
from drone_bridge.ros.images import Rgb8Image
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.testbed import topics as translate
from drone_bridge.testbed.codec import (
    AngleUnit,
    AttitudeLayout,
    Constants,
    MotionParameters,
    SensorFrame,
)
from drone_bridge.testbed.server.node import TestbedServer
from drone_bridge.testbed.topics import StereoFrameNames

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
CONSTANTS = Constants(120.0, 90.0, 16, 8, 0.25, 1.5, float32(9.81), 0.25, 25.0, 720.0, 360.0, 180.0)
HOVER_N = CONSTANTS.weight * CONSTANTS.gravity
PATIENCE_S = 600.0  # for what is not the subject, on a machine that is slow and busy


class Drone:
    """Publishes what a drone in ROS does, and hears its commands."""

    def __init__(self, ros, namespace=""):
        self._ros = ros
        topic = namespace + "{}"
        self.commands = ros.subscribe(CommandRates, topic.format("cmd_rates"))
        self.velocities = ros.subscribe(Twist, topic.format("cmd_vel"))
        self._properties = ros.node.create_publisher(DroneProperties, topic.format("drone_properties"), LATCHED)
        self._images = {
            side: ros.publisher(Image, topic.format(f"{side}/image_raw")) for side in self.sides_of(ros, namespace)
        }
        self._imu = ros.publisher(Imu, topic.format("imu/data"))
        self.infos = {
            side: ros.node.create_publisher(CameraInfo, topic.format(f"{side}/camera_info"), 1)
            for side in ("left", "right")
        }
        self.stamp_s = 100.0

    @staticmethod
    def sides_of(ros, namespace):
        """A mono server takes the left one alone."""
        return ("left",) if namespace == "mono/" else ("left", "right")

    def announce(self, **changes):
        properties = translate.drone_properties(CONSTANTS, AngleUnit.DEGREES)
        for name, value in changes.items():
            setattr(properties, name, value)
        self._properties.publish(properties)

    def show(self, marker=1, encoding="rgb8", after_s=0.5, orientation=None):
        """Publish a pair and an attitude, half a second after the last one or so; return their stamp."""
        self.stamp_s += after_s
        stamp = time_from_seconds(self.stamp_s)
        for index, (side, publisher) in enumerate(self._images.items()):
            image = Rgb8Image(16, 8, side).filled(bytes([marker + index]) * CONSTANTS.image_bytes, stamp)
            image.encoding = encoding
            publisher.publish(image)
        attitude = SensorFrame(b"", b"", 0.0, pitch=-3.0, yaw=30.0)
        imu = translate.Translation(AngleUnit.DEGREES, StereoFrameNames()).imu(attitude, stamp)
        imu.orientation = orientation or imu.orientation
        self._imu.publish(imu)
        return stamp

    def show_cameras(self):
        for side, publisher in self.infos.items():
            publisher.publish(translate.camera_info(CONSTANTS, AngleUnit.DEGREES, StereoFrameNames(), side))


@pytest.fixture
def serve(start_child):
    """serve(**parameters) starts a server that listens, and gives it with its port."""

    def start(*, remap=(), **parameters):
        child = Process.node("testbed_server", remap=remap, port=0, **parameters)
        stack.enter_context(child)
        return child, int(child.wait_for_line(r"Waiting for a peer on 127\.0\.0\.1:(\d+)")[1])

    with contextlib.ExitStack() as stack:
        yield start


def first_frame(drone, autopilot):
    """Show something until the autopilot gets its first frame."""

    def show():
        drone.show()
        autopilot.socket.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            return isinstance(autopilot.receive(), Constants)
        return False

    wait_until(show, "the constants")
    autopilot.socket.settimeout(TIMEOUT_S)
    return autopilot.receive()


def test_a_legacy_autopilot_flies_a_drone_in_ros(ros, serve):
    """From the constants over frames and commands to the end, in one conversation."""
    server, port = serve(source_timeout=PATIENCE_S, command_timeout=60.0)
    drone = Drone(ros)
    drone.announce()
    with AutopilotPeer(port) as autopilot:
        frame = first_frame(drone, autopilot)
        assert (frame.time, float32(frame.pitch), float32(frame.yaw)) == (0.0, -3.0, 30.0)
        assert bytes(frame.left) == bytes([1]) * CONSTANTS.image_bytes
        assert bytes(frame.right) == bytes([2]) * CONSTANTS.image_bytes
        autopilot.answer()
        given = drone.commands.wait(lambda command: command.roll_rate != 0.0)
        assert given.thrust == MOTION.thrust
        assert (given.roll_rate, given.pitch_rate, given.yaw_rate) == pytest.approx((-0.34907, 0.17453, -0.52360), 1e-4)

        # Silent: the neutral command.
        ros.set_parameters("testbed_server", command_timeout=0.3)
        neutral = drone.commands.wait(lambda command: command.thrust == pytest.approx(HOVER_N))
        assert (neutral.roll_rate, neutral.pitch_rate, neutral.yaw_rate) == (0.0, 0.0, 0.0)
        server.wait_for_line("The drone has sent nothing new for 0.3 s")  # the autopilot has answered all it was sent
        ros.set_parameters("testbed_server", command_timeout=60.0)

        # Leaving.
        drone.show(marker=11)
        autopilot.receive()
        autopilot.answer()
        drone.commands.wait(lambda command: command.thrust == MOTION.thrust)
        autopilot.socket.close()
        drone.commands.wait(lambda command: command.thrust == pytest.approx(HOVER_N))
        server.wait_for_line("The autopilot has left")


def test_one_camera_and_parameters_do_where_there_is_no_more(ros, serve):
    """Without drone_properties; without a right camera; and before that, with nothing at all."""
    parameters = {"cameras": "mono", "drone.mass": 2.5, "negative_gravity": True, "command_timeout": 60.0}
    server, port = serve(remap=["__ns:=/mono"], **parameters)
    with AutopilotPeer(port) as autopilot:
        server.wait_for_line(
            "waits for its first frame, and nothing is received on /mono/left/image_raw and /mono/imu/data"
        )
        drone = Drone(ros, "mono/")

        def show():
            drone.show_cameras()
            drone.show(encoding="bgr8")
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
        assert bytes(frame.left) == bytes(frame.right) == bytes([1]) * CONSTANTS.image_bytes
        server.wait_for_line("Nobody publishes drone_properties")
        autopilot.answer()
        assert drone.commands.wait().thrust == MOTION.thrust
        server.send()  # SIGTERM: the last command is the neutral one
        assert drone.commands.wait().thrust == pytest.approx(2.5 * 9.81)
        assert server.wait() == 0


def test_camera_infos_are_not_heard_any_more_once_drone_properties_are_there(ros):
    """Each costs as much as an attitude."""
    ros.run(TestbedServer, port=0, source_timeout=0.05)
    drone = Drone(ros)
    infos = drone.infos.values()
    wait_until(lambda: all(info.get_subscription_count() == 1 for info in infos), "subscriptions to camera_info")
    drone.announce()
    wait_until(lambda: not any(info.get_subscription_count() for info in infos), "their end")


class Rover:
    """Publishes where a vehicle without cameras stands, looking east, and hears what it is to do."""

    def __init__(self, ros):
        self.velocities = ros.subscribe(Twist, "cmd_vel")
        self._properties = ros.node.create_publisher(DroneProperties, "drone_properties", LATCHED)
        self._properties.publish(translate.drone_properties(CONSTANTS, AngleUnit.DEGREES))
        self._odometry = ros.publisher(Odometry, "odom")
        self._times = itertools.count(100.0, 0.05)

    def show(self):
        message = Odometry()
        message.header.stamp = time_from_seconds(next(self._times))
        message.pose.pose.position.x = 3.0
        message.pose.pose.orientation.w = 1.0
        self._odometry.publish(message)


def test_a_legacy_autopilot_drives_what_follows_velocities(ros, serve):
    """By the testbed's model of motion, without a camera; gone, it leaves a zero."""
    pose = AttitudeLayout.POSE
    server, port = serve(attitude_layout=pose.value, cameras="none", source_timeout=PATIENCE_S, command_timeout=60.0)
    rover = Rover(ros)
    velocities = rover.velocities
    hover, dive = (MotionParameters(rate, 0.0, 0.0, HOVER_N) for rate in (0.0, 20.0))
    with AutopilotPeer(port, pose) as autopilot:
        frame = first_frame(rover, autopilot)
        assert bytes(frame.left) == bytes(frame.right) == bytes(CONSTANTS.image_bytes)

        def answered(motion):
            autopilot.answer(motion)
            rover.show()
            return autopilot.receive()

        wait_until(lambda: answered(hover) and len(velocities), "velocities, which somebody takes")
        for _ in range(10):
            frame = answered(dive)
        assert frame.pitch == pytest.approx(10.0, abs=1.1)  # of half a second, or a step more or less
        assert (frame.yaw, frame.roll) == pytest.approx((90.0, 0.0), abs=1e-4)
        assert 3.0 < frame.position[0] < 3.5  # a little ahead of where the vehicle stands
        moving = velocities.wait(lambda twist: twist.linear.x > 0.1)
        assert (moving.linear.y, moving.linear.z, moving.angular.z) == pytest.approx((0.0, 0.0, 0.0), abs=0.1)
        autopilot.socket.close()
        server.wait_for_line("The autopilot has left")
        velocities.wait(lambda twist: twist == Twist())
