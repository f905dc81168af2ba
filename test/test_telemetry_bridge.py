# SPDX-License-Identifier: Apache-2.0
"""telemetry_bridge as a process, between real DDS and a real UDP socket."""

import json
import math
import time

import cv2
import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from diagnostics import values_of
from geometry_msgs.msg import TwistStamped
from nav_msgs.msg import Odometry
from ros_session import RosSession, wait_until
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, Imu
from std_msgs.msg import String
from telemetry_documents import HOVER, ROVER, Clock, changed, drone
from telemetry_peer import TelemetryPeer, jpeg, send_until, start_with_peer
from tf2_msgs.msg import TFMessage
from twists import twist

from drone_bridge.msg import CommandAxes, LandingPad
from drone_bridge.ros.time import time_from_seconds

DEFAULTS = {"rate": 25.0}


class Running:
    """One bridge that sends all its stamps from the wire, which most tests share."""

    def __init__(self):
        self.ros = RosSession()
        self.process, self.peer = start_with_peer(stamp_source="wire", frame_prefix="d1/")
        self.clock = Clock()
        self.peer.send(drone(timestamp=self.clock.next()))
        self.peer.wait()

    def close(self):
        self.peer.close()
        self.process.end()
        self.ros.close()

    def receive(self, message_type, topic, make=drone, wanted=lambda message: True, qos=10):
        """Send documents until a message of theirs comes; return the message."""
        inbox = self.ros.subscribe(message_type, topic, qos)
        found = []

        def send():
            document = make(timestamp=self.clock.next())
            self.peer.send(document)

        def came():
            while len(inbox) and not found:
                message = inbox.wait()
                if wanted(message):
                    found.append(message)
            return bool(found)

        send_until(send, came, f"a message on {topic}")
        return found[0]


@pytest.fixture(scope="module")
def running():
    running = Running()
    yield running
    running.close()


@pytest.fixture
def ros(running):
    return running.ros


@pytest.fixture
def peer(running):
    assert all(result.successful for result in running.ros.set_parameters("telemetry_bridge", **DEFAULTS))
    running.peer.send(drone(timestamp=running.clock.next()))
    running.peer.wait_for_next(lambda command: command == HOVER)
    return running.peer


def command(publisher, peer, message, **axes):
    """Publish until the wire says what was meant."""
    start = len(peer.commands)
    expected = {**HOVER, **axes}

    def is_said():
        return any(found == pytest.approx(expected) for found in peer.commands[start:])

    send_until(lambda: publisher.publish(message), is_said, f"a command with {axes}")


# Telemetry.


def test_the_imu(running):
    message = running.receive(Imu, "imu/data")
    assert message.header.frame_id == "d1/base_link"
    assert message.header.stamp.sec >= 100
    rates, acceleration = message.angular_velocity, message.linear_acceleration
    assert (rates.x, rates.y, rates.z) == (0.01, 0.02, 0.03)
    assert (acceleration.x, acceleration.y, acceleration.z) == (0.5, -0.5, 9.81)
    assert message.linear_acceleration_covariance[0] >= 0.0  # -1 would be: it is not told
    assert message.orientation.w == pytest.approx(0.98185617, abs=1e-7)


def is_of_pad(message):
    return message.transforms[-1].child_frame_id == "d1/landing_pad"


def test_a_pad_out_of_sight_is_not_in_tf(running, ros):
    transforms = ros.subscribe(TFMessage, "/tf", 1000)
    told_s = []

    def is_told_after(time_s):
        for _ in range(len(transforms)):
            message = transforms.wait()
            if is_of_pad(message):
                stamp = message.transforms[-1].header.stamp
                told_s.append(stamp.sec + stamp.nanosec * 1e-9)
        return told_s and told_s[-1] > time_s

    def tell_until(time_s):
        send_until(
            lambda: running.peer.send(drone(timestamp=running.clock.next())), lambda: is_told_after(time_s), "tf"
        )

    tell_until(0.0)
    first = running.clock.time + 0.02  # between two documents
    running.receive(
        LandingPad,
        "landing_pad",
        lambda **values: drone(landing_pad=None, **values),
        lambda message: not message.detected,
    )
    last = running.clock.time + 0.02
    # What follows is told after all that is told of documents without a pad.
    tell_until(last)
    assert not [time_s for time_s in told_s if first < time_s < last]


def test_a_rover_on_the_same_port(running, peer):
    rover = TelemetryPeer(peer.bridge_port)
    try:
        inbox = running.ros.subscribe(Odometry, "rover/odom")
        send_until(lambda: rover.send(changed(ROVER, timestamp=running.clock.next())), lambda: len(inbox), "rover/odom")
        message = inbox.wait()
        assert (message.header.frame_id, message.child_frame_id) == ("d1/map", "d1/rover/base_link")
        position, velocity = message.pose.pose.position, message.twist.twist.linear
        assert (position.x, position.y, position.z) == (1.5, 0.8, 0.15)
        assert (velocity.x, velocity.y, velocity.z) == (0.3, 0.4, 0.0)
        assert message.pose.pose.orientation.w == 1.0
        peer.wait_for_next()
        assert rover.commands == [], "commands go to the drone, whoever else sends"
    finally:
        rover.close()


# Images.

PICTURE = jpeg()


def with_picture(**values):
    return drone(PICTURE, **values)


def test_the_raw_image_is_the_decoded_one(running):
    message = running.receive(Image, "camera/image_raw", with_picture)
    assert (message.width, message.height, message.encoding, message.step) == (32, 24, "rgb8", 96)
    pixels = np.frombuffer(bytes(message.data), np.uint8).reshape(24, 32, 3)
    assert np.array_equal(pixels, cv2.cvtColor(cv2.imdecode(np.frombuffer(PICTURE, np.uint8), 1), cv2.COLOR_BGR2RGB))
    assert pixels[0, 0].argmax() == 0, "red above"
    assert pixels[-1, 0].argmax() == 2, "blue below"


def test_the_camera_info_comes_with_every_image(running):
    message = running.receive(CameraInfo, "camera/camera_info", with_picture)
    assert (message.width, message.height) == (32, 24)
    assert message.header.frame_id == "d1/camera_optical_frame"
    assert message.k[0] == message.k[4] == pytest.approx(16 / math.tan(math.radians(30)))
    images = running.ros.subscribe(CompressedImage, "camera/image_raw/compressed")
    infos = running.ros.subscribe(CameraInfo, "camera/camera_info")
    stamps = {"images": set(), "infos": set()}

    def came():
        for name, inbox in (("images", images), ("infos", infos)):
            stamps[name].update(stamp_of(inbox.wait()) for _ in range(len(inbox)))
        return len(stamps["images"] & stamps["infos"]) > 3

    send_until(
        lambda: running.peer.send(drone(PICTURE, timestamp=running.clock.next())), came, "images with their cameras"
    )


def stamp_of(message):
    return message.header.stamp.sec, message.header.stamp.nanosec


@pytest.fixture
def alone(ros):
    """alone(**parameters) starts a bridge whose topics nobody else uses, and returns it with its peer."""
    started = []

    def start(**parameters):
        started.append(start_with_peer(remap=["__ns:=/alone", "__node:=alone"], **parameters))
        return started[-1]

    yield start
    for process, peer in started:
        peer.close()
        process.end()


def test_jpegs_are_decoded_only_for_subscribers(ros, alone):
    process, peer = alone()
    clock = Clock()
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    compressed = ros.subscribe(CompressedImage, "/alone/camera/image_raw/compressed")
    infos = ros.subscribe(CameraInfo, "/alone/camera/camera_info")

    def count(name):
        report = reports.wait(lambda report: report.status[0].name == "alone/alone: link")
        return int(values_of(report)[name])

    def send():
        peer.send(drone(PICTURE, timestamp=clock.next()))

    send_until(send, lambda: len(compressed) > 20 and len(infos) > 20, "compressed images")
    wait_until(lambda: count("images") > 20, "a report")
    assert count("images decoded") == 0
    raw = ros.subscribe(Image, "/alone/camera/image_raw")
    send_until(send, lambda: len(raw) > 3, "decoded images for whoever comes late")
    wait_until(lambda: count("images decoded") > 3, "a report of them")
    assert process.stop() == 0


# Commands.


def test_cmd_axes_are_shares_of_what_the_wire_allows(running, ros, peer):
    publisher = ros.publisher(CommandAxes, "cmd_axes")
    axes = CommandAxes(thrust=0.5, pitch=1.0, roll=-0.5, yaw=2.0)

    def send():
        peer.send(drone(timestamp=running.clock.next()))
        axes.header.stamp = time_from_seconds(running.clock.time)
        publisher.publish(axes)

    wanted = {**HOVER, "thrust": 0.5, "pitch": 0.5, "roll": -0.25, "yaw": 0.5}
    send_until(send, lambda: peer.commands[-1] == wanted, "the shares on the wire")
    peer.wait_for_next(lambda found: found == HOVER)


def test_a_stamped_command_has_the_time_of_the_telemetry(running, ros, peer):
    publisher = ros.publisher(TwistStamped, "cmd_vel_stamped")
    message = TwistStamped(twist=twist(up=0.75))

    def send():
        peer.send(drone(timestamp=running.clock.next()))
        message.header.stamp = time_from_seconds(running.clock.time)
        publisher.publish(message)

    send_until(send, lambda: peer.commands[-1]["thrust"] > 0.0, "the stamped command")
    peer.wait_for_next(lambda found: found == HOVER)
    message.header.stamp = time_from_seconds(running.clock.time - 0.6)
    refusal = r"cmd_vel_stamped was refused: it is 0\.\d+ s old, and 0\.5 s"
    send_until(lambda: publisher.publish(message), lambda: running.process.count_lines(refusal), "a refusal")
    assert peer.commands[-1] == HOVER


def test_commands_come_at_a_steady_rate(running, ros, peer):
    ros.set_parameters("telemetry_bridge", rate=200.0)
    began_s, before = time.monotonic(), len(peer.commands)

    def have_come():  # commands end when telemetry does
        peer.send(drone(timestamp=running.clock.next()))
        return len(peer.commands) > before + 160

    wait_until(have_come, "160 commands", period_s=0.05)
    assert time.monotonic() - began_s < 5.0  # 0.8 s, and 6.4 s at the rate that is the default


def test_signs_can_be_inverted(ros, alone):
    commands = [f"command.{axis}" for axis in ("pitch", "roll", "yaw")]
    telemetry = [f"telemetry.{name}" for name in ("roll", "pitch", "yaw", "relative_x", "relative_y")]
    _, peer = alone(opposite_signs=commands + telemetry)
    clock = Clock()
    imus, pads = ros.subscribe(Imu, "/alone/imu/data"), ros.subscribe(LandingPad, "/alone/landing_pad")
    send_until(lambda: peer.send(drone(timestamp=clock.next())), lambda: len(imus) and len(pads), "telemetry")
    imu, pad = imus.wait(), pads.wait()
    assert (imu.angular_velocity.x, imu.angular_velocity.y, imu.angular_velocity.z) == (-0.01, -0.02, -0.03)
    assert imu.linear_acceleration.z == 9.81
    assert (pad.offset_x, pad.offset_y, pad.distance) == (-0.5, 0.2, 4.5)
    message = CommandAxes(thrust=1.0, pitch=1.0, roll=-1.0, yaw=1.0)
    publisher = ros.publisher(CommandAxes, "/alone/cmd_axes")
    command(publisher, peer, message, thrust=1.0, pitch=-0.5, roll=0.5, yaw=-0.5)


def test_a_bridge_that_drives_its_own_clock_stamps_with_it(ros, alone):
    _, peer = alone(publish_clock=True, use_sim_time=True)
    clock = Clock()
    imus = ros.subscribe(Imu, "/alone/imu/data")
    send_until(lambda: peer.send(drone(timestamp=clock.next())), lambda: len(imus), "telemetry")
    assert 100 <= imus.wait().header.stamp.sec <= clock.time


# A rover on a topic.


def test_a_rover_on_the_topic_is_published_and_sent_on_to_the_drone(running, ros, peer):
    publisher = ros.publisher(String, "/rover/telemetry")
    odometry = ros.subscribe(Odometry, "rover/odom")
    start = len(peer.commands)

    def send():
        publisher.publish(String(data=json.dumps(changed(ROVER, timestamp=running.clock.next()))))

    send_until(send, lambda: len(odometry) and any("position" in found for found in peer.commands[start:]), "both")
    assert peer.wait(lambda found: "position" in found, start)["pattern"] == "circular"
