# SPDX-License-Identifier: Apache-2.0
"""testbed_server as a process, between an autopilot's socket and topics that a test publishes."""

import contextlib
import itertools
import math
import select
import signal
import socket
import time

import pytest
from geometry_msgs.msg import Quaternion, Twist
from nav_msgs.msg import Odometry
from processes import TIMEOUT_S, Process
from quadrotor import Quadrotor
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import repeating, wait_until
from sensor_msgs.msg import CameraInfo, Image, Imu
from testbed_autopilot import MOTION, AutopilotPeer
from testbed_bytes import float32
from vanishing import vanish

from drone_bridge.msg import CommandRates, DroneProperties
from drone_bridge.net import tcp as tcp_options
from drone_bridge.ros.images import Rgb8Image
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.testbed import topics as translate
from drone_bridge.testbed.codec import (
    AngleUnit,
    AttitudeLayout,
    ConnectionClosed,
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
    """From the constants over frames, commands, dropped frames and silences to the end, in one conversation."""
    server, port = serve(source_timeout=PATIENCE_S, command_timeout=60.0)
    drone = Drone(ros)
    drone.announce()
    with AutopilotPeer(port) as autopilot:
        frame = first_frame(drone, autopilot)
        assert (frame.time, float32(frame.pitch), float32(frame.yaw)) == (0.0, -3.0, 30.0)
        assert bytes(frame.left) == bytes([1]) * CONSTANTS.image_bytes
        assert bytes(frame.right) == bytes([2]) * CONSTANTS.image_bytes

        # Silent: one neutral command, and nothing more, whatever is shown.
        autopilot.answer()
        given = drone.commands.wait(lambda command: command.roll_rate != 0.0)
        assert given.thrust == MOTION.thrust
        assert (given.roll_rate, given.pitch_rate, given.yaw_rate) == pytest.approx((-0.34907, 0.17453, -0.52360), 1e-4)
        ros.set_parameters("testbed_server", command_timeout=0.3)
        neutral = drone.commands.wait()
        assert (neutral.roll_rate, neutral.pitch_rate, neutral.yaw_rate) == (0.0, 0.0, 0.0)
        assert neutral.thrust == pytest.approx(HOVER_N)
        server.wait_for_line("The drone has sent nothing new for 0.3 s")  # the autopilot has answered all it was sent
        assert server.count_lines("has answered no frame") == 0

        # An answer that took longer than it may is not followed.
        drone.show(marker=10)
        autopilot.receive()
        set_command_timeout(ros, 0.01)
        autopilot.answer()
        server.wait_for_line("took longer than command_timeout")
        set_command_timeout(ros, 60.0)
        # The neutral command is still the last word, and as such repeated once a second.
        assert {drone.commands.wait().roll_rate for _ in range(len(drone.commands))} <= {0.0}

        # Frames that come while an answer is awaited are dropped, the newest one is sent.
        drone.show(marker=11)
        before = autopilot.receive()
        for marker in range(20, 24):
            newest = drone.show(marker=marker)
        autopilot.answer()
        after = wait_for_marker(autopilot, 23)
        assert after.time > before.time
        autopilot.answer()
        drone.commands.wait(lambda command: command.header.stamp == newest)

        # Leaving.
        autopilot.socket.close()
        assert drone.commands.wait().thrust == pytest.approx(HOVER_N)
        server.wait_for_line("The autopilot has left")
        assert len(drone.commands) == len(drone.velocities) == 0


def set_command_timeout(ros, timeout_s):
    """Set it, and wait until it is heeded: the server looks at it every 20 ms, before it answers calls."""
    ros.set_parameters("testbed_server", command_timeout=timeout_s)
    set_s = time.monotonic()
    wait_until(lambda: time.monotonic() - set_s > 0.05, "the server's next look")
    ros.parameters("testbed_server")


def wait_for_marker(autopilot, marker):
    """Answer frames until the one whose left image has this colour."""
    while (frame := autopilot.receive()).left[0] != marker:
        autopilot.answer()
    return frame


def test_a_tilted_drone_is_levelled_out_when_its_autopilot_falls_silent(ros, serve):
    server, port = serve(source_timeout=PATIENCE_S, command_timeout=60.0)
    drone = Drone(ros)
    drone.announce()
    nose_down = translate.quaternion_from_euler(0.0, math.radians(41.0), 0.0)
    orientation = Quaternion(x=nose_down.x, y=nose_down.y, z=nose_down.z, w=nose_down.w)
    with AutopilotPeer(port) as autopilot:
        first_frame(drone, autopilot)
        autopilot.answer()
        assert drone.commands.wait().thrust == MOTION.thrust
        with repeating(lambda _: drone.show(orientation=orientation)):
            ros.set_parameters("testbed_server", command_timeout=0.3)
            server.wait_for_line("the drone was commanded to level out")
            command = drone.commands.wait(lambda command: command.pitch_rate < 0.0)
            assert (command.roll_rate, command.yaw_rate) == pytest.approx((0.0, 0.0), abs=1e-6)
            assert command.thrust == pytest.approx(HOVER_N / math.cos(math.radians(41.0)))
        # With nothing to go by any more, it does not turn further.
        drone.commands.wait(lambda command: command.pitch_rate == 0.0)


def test_a_drone_that_falls_silent_ends_the_conversation_within_source_timeout(ros, serve):
    server, port = serve(command_timeout=60.0)
    drone = Drone(ros)
    drone.announce()
    with AutopilotPeer(port) as autopilot:
        times = [first_frame(drone, autopilot).time]
        autopilot.answer()
        assert drone.commands.wait().thrust == MOTION.thrust
        while not isinstance(event := autopilot.receive(), ConnectionClosed):
            times.append(event.time)  # what had to be shown again until the server had it all
            autopilot.answer()
        assert times == sorted(set(times))  # no old frame as a new one
        server.wait_for_line(
            r"Nothing to send was received for 1 s \(source_timeout\), and nothing is received on /left/image_raw and "
            r"/right/image_raw and /imu/data"
        )
        drone.commands.wait(lambda command: command.thrust == pytest.approx(HOVER_N))


def test_a_server_that_stood_still_keeps_its_session(ros, serve):
    """Stopped for longer than source_timeout, it finds nothing new of the drone: it was not listening."""
    server, port = serve(source_timeout=2.0, command_timeout=0.5)
    drone = Drone(ros)
    drone.announce()
    with AutopilotPeer(port) as autopilot:
        with repeating(lambda _: drone.show()):
            frame = autopilot.receive()
            while not isinstance(frame, SensorFrame):
                frame = autopilot.receive()
        autopilot.answer()
        while not server.count_lines("The drone has sent nothing new"):  # so that it waits for that, and no answer
            if select.select([autopilot.socket], [], [], 0.05)[0]:
                autopilot.receive()
                autopilot.answer()
        server.send(signal.SIGSTOP)
        time.sleep(3.0)
        server.send(signal.SIGCONT)
        time.sleep(0.3)  # in which it looks what came
        with repeating(lambda _: drone.show()):
            for _ in range(75):  # it gets 50 per second
                assert isinstance(autopilot.receive(), SensorFrame)
                autopilot.answer()
        assert server.count_lines("Nothing to send was received|has answered no frame") == 0


def test_an_autopilot_that_vanishes_is_connected_to_again(ros, monkeypatch, closing):
    """In this process, where the system can be told to notice it at once."""
    for name in ("KEEPALIVE_IDLE_S", "KEEPALIVE_INTERVAL_S", "KEEPALIVE_PROBES"):
        monkeypatch.setattr(tcp_options, name, 1)
    listener = closing(socket.create_server(("127.0.0.1", 0)))
    listener.settimeout(TIMEOUT_S)
    values = {"role": "connect", "port": listener.getsockname()[1], "command_timeout": 60.0}
    server = ros.run(TestbedServer, source_timeout=PATIENCE_S, **values)
    drone = Drone(ros)
    drone.announce()
    with AutopilotPeer(connected=listener.accept()[0]) as autopilot:
        first_frame(drone, autopilot)
        vanish(autopilot.socket)
        autopilot.answer()  # still arrives, and the frame after it is not acknowledged
        assert drone.commands.wait().thrust == MOTION.thrust
        drone.show()
        with AutopilotPeer(connected=listener.accept()[0]) as successor:
            assert drone.commands.wait().thrust == pytest.approx(HOVER_N)
            assert first_frame(drone, successor).time == 0.0
    assert server.statistics.counts["lost connections"] == 1


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
    """By the testbed's model of motion, without a camera; silent and gone, it leaves a zero and nothing more."""
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

        # Silent: a zero, and nothing more. Then it begins level, and at rest.
        set_command_timeout(ros, 0.3)
        server.wait_for_line("has answered no frame for 0.3 s .* told to stop")
        velocities.wait(lambda twist: twist == Twist())
        set_command_timeout(ros, 60.0)
        assert all(velocities.wait() == Twist() for _ in range(len(velocities)))  # it is repeated once a second
        assert answered(hover).pitch == 0.0
        velocities.wait(lambda twist: abs(twist.linear.x) < 0.01)

        for _ in range(3):
            answered(dive)
        velocities.wait(lambda twist: twist.linear.x > 0.0)
        autopilot.socket.close()
        server.wait_for_line("The autopilot has left")
        velocities.wait(lambda twist: twist == Twist())
        assert all(velocities.wait() == Twist() for _ in range(len(velocities)))


def test_an_autopilot_that_is_told_no_position_flies_a_quadrotor_where_it_meant_to(ros, serve):
    """In the layout pitch_yaw, at 8 frames per second of the quadrotor's time, with the scripted autopilot."""
    server, port = serve(command_output="cmd_vel", source_timeout=PATIENCE_S, command_timeout=60.0)
    quadrotor, drone = Quadrotor(5), Drone(ros)
    start, period_s, velocities = quadrotor.yaw, 0.125, drone.velocities
    drone.announce()
    odometry = ros.publisher(Odometry, "odom")
    plan = "4s forward 0.5, 3s turn 0.5, 4s forward 0.5, 2s"
    arguments = ["--port", str(port), "--layout", "pitch_yaw", "--plan", plan]
    with Process.module("drone_bridge.testbed.operator", *arguments) as operator:
        operator.wait_for_line("connected to")
        while operator.is_running:
            (x, y, z), yaw = quadrotor.measured()
            message = Odometry()
            message.header.stamp = time_from_seconds(drone.stamp_s + period_s)
            at, facing = message.pose.pose.position, message.pose.pose.orientation
            at.x, at.y, at.z = x, y, z
            facing.z, facing.w = math.sin(yaw / 2), math.cos(yaw / 2)
            odometry.publish(message)
            drone.show(after_s=period_s, orientation=facing)
            wait_until(lambda: len(velocities) or not operator.is_running, "an answer")
            if len(velocities):
                command = velocities.wait()
                linear = command.linear
                quadrotor.fly(0.02)
                quadrotor.command = (linear.x, linear.y, linear.z, command.angular.z)
                quadrotor.fly(period_s - 0.02)
        assert operator.wait() == 0
    assert server.count_lines("an autopilot that steers by the images needs a vehicle that takes cmd_rates") == 1
    expected = [2 * (part(start) + part(start + 1.5)) for part in (math.cos, math.sin)]
    assert math.dist(quadrotor.position, [*expected, 0.0]) < 0.15
