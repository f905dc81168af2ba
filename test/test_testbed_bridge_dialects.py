# SPDX-License-Identifier: Apache-2.0
"""testbed_bridge against what real testbeds do: other layouts, new simulations, default sockets; and lockstep."""

import re
import sys

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from diagnostics import values_of
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import wait_until
from sensor_msgs.msg import Imu
from testbed_peer import HOVER, TestbedPeer, bridge
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import DroneProperties
from drone_bridge.ros.time import seconds_of
from drone_bridge.testbed.codec import AttitudeLayout

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
LEVEL = {"pitch": 0.0, "roll": 0.0, "yaw": 0.0, "position": (1.0, 2.0, -3.0)}


@pytest.fixture
def make_peer(closing):
    return lambda layout: closing(TestbedPeer(layout=layout))


def emulator(*options):
    return Process(sys.executable, "-m", "drone_bridge.testbed.emulator", "--port", "0", *options)


def port_of(testbed):
    return int(testbed.wait_for_line(r"listening on 127\.0\.0\.1:(\d+)")[1])


# Layouts.


def test_auto_detects_a_pose_and_logs_it(ros, make_peer):
    odometry = ros.subscribe(Odometry, "odom")
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    constants = ros.subscribe(DroneProperties, "drone_properties", LATCHED)
    peer = make_peer(AttitudeLayout.POSE)
    with bridge(peer, stamp_source="wire") as process:
        peer.open()
        constants.wait()  # the bridge knows of this subscription, and so of the one before
        peer.exchange(**LEVEL)
        first = odometry.wait()
        assert seconds_of(first.header.stamp) == pytest.approx(peer.time), "who subscribed before gets the first one"
        position = first.pose.pose.position
        assert (position.x, position.y, position.z) == (1.0, 3.0, 2.0)
        process.wait_for_line("The testbed sends 7 floats after the images: attitude_layout is pose")
        reports.wait(lambda report: values_of(report)["attitude layout"] == "pose (auto)")
        static = ros.subscribe(TFMessage, "/tf_static", LATCHED).wait().transforms
        assert ("map", "odom") in {(transform.header.frame_id, transform.child_frame_id) for transform in static}


@pytest.mark.parametrize("layout", [AttitudeLayout.PITCH_YAW, AttitudeLayout.PITCH_ROLL])
def test_auto_takes_the_documented_layout_for_short_frames_and_names_the_other(ros, make_peer, layout):
    attitudes = ros.subscribe(Imu, "imu/data")
    peer = make_peer(layout)
    with bridge(peer) as process:
        peer.open()
        wait_until(lambda: peer.exchange(**LEVEL) and len(attitudes), "an attitude")
        assert attitudes.wait().orientation_covariance[8] < 1  # yaw is taken to be measured
        process.wait_for_line("is taken to be pitch_yaw, as documented.*set it to pitch_roll")
        static = ros.subscribe(TFMessage, "/tf_static", LATCHED).wait().transforms
        assert "odom" not in {transform.child_frame_id for transform in static}
        assert not ros.node.get_publishers_info_by_topic("/odom")
        assert not ros.node.get_publishers_info_by_topic("/tf"), "what can never come is not offered"


def test_a_pose_where_a_short_layout_was_configured_is_reported_with_a_hint(ros, make_peer):
    peer = make_peer(AttitudeLayout.POSE)
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    with bridge(peer, attitude_layout="pitch_roll") as process:
        peer.open()
        frame = peer.frame_bytes(**LEVEL)
        white = b"\xff" * (len(frame) - 28)
        peer.socket.sendall(white + frame[-28:])
        peer.read(16)
        peer.socket.sendall(white + frame[-28:])
        process.wait_for_line(
            r"Perhaps attitude_layout, which is pitch_roll, is not what this testbed sends; after the images came "
            r"pitch_yaw: pitch 1, yaw 2, time -3; pitch_roll: pitch 1, roll 2, time -3; "
            r"pose: x 1, y 2, z -3, heading 0, pitch 0, roll 0, time 0\.015625"
        )
        reports.wait(lambda report: "Perhaps attitude_layout" in values_of(report)["last error"])


def test_a_short_frame_where_a_pose_was_configured_is_reported_with_a_hint(make_peer):
    peer = make_peer(AttitudeLayout.PITCH_YAW)
    with bridge(peer, attitude_layout="pose", silence_timeout=0.3) as process:
        peer.open().send_frame(pitch=1.0)
        process.wait_for_line(
            r"did not complete a message within 0\.3 s\. Perhaps attitude_layout, which is pose, .*"
            r"pitch_yaw: pitch 1, yaw 2, time 0\.015625; .*pose: 12 of 28 bytes"
        )


# A new simulation on the same connection.


def test_time_0_is_a_new_simulation(ros, make_peer):
    peer = make_peer(AttitudeLayout.PITCH_YAW)
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    properties = ros.subscribe(DroneProperties, "drone_properties", LATCHED)
    attitudes = ros.subscribe(Imu, "imu/data")
    with bridge(peer, attitude_layout="pitch_yaw", stamp_source="wire") as process:
        peer.open()
        wait_until(lambda: peer.exchange(pitch=0.0) and len(attitudes) and len(properties), "messages")
        properties.clear()
        assert peer.exchange(time=0.0, pitch=0.0) == HOVER
        process.wait_for_line(r"started a new simulation on the same connection: its time is 0 after \d+\.\d+ s")
        assert properties.wait().mass == 1.5
        attitudes.wait(lambda imu: imu.header.stamp.sec == imu.header.stamp.nanosec == 0)
        assert peer.exchange(pitch=0.0) == HOVER
        report = reports.wait(lambda report: values_of(report).get("new simulations") == "1")
        assert (values_of(report)["connections"], values_of(report)["rejected input"]) == ("1", "0")
        peer.exchange(time=5.0)
        with pytest.raises(Exception, match="time runs back"):  # the peer's codec is as strict
            peer.frame_bytes(time=1.0)


def test_an_emulated_testbed_starts_new_simulations(ros):
    with (
        emulator("--restart-every", "50", "--steps", "140", "--once") as testbed,
        Process.node("testbed_bridge", port=port_of(testbed)) as process,
    ):
        testbed.wait_for_line(rf"ended: 140 steps, {40 / 60:.2f} simulated s")
        process.wait_for_line("The testbed ended the conversation")
        assert process.count_lines("started a new simulation on the same connection: its time is 0 after 0.8") == 2


# Lockstep.


def test_unstamped_commands_in_lockstep_are_warned_of_once(ros, make_peer):
    peer = make_peer(AttitudeLayout.PITCH_YAW)
    with bridge(peer, attitude_layout="pitch_yaw", sync="lockstep", command_timeout=0.2) as process:
        peer.open()
        publisher = ros.publisher(Twist, "cmd_vel")
        said = r"cmd_vel have no stamp .* waits 0\.2 s .*: publish cmd_vel_stamped or cmd_rates .* set sync to latest"
        wait_until(lambda: publisher.publish(Twist()) or (peer.exchange(), process.count_lines(said))[1], "the line")
        for _ in range(3):
            publisher.publish(Twist())
            peer.exchange()
        assert process.count_lines(said) == 1
    assert re.search(said, process.output)
