# SPDX-License-Identifier: Apache-2.0
"""Odometry of robots that report a pose without a velocity, or a velocity without a pose, on a circle to the left."""

import math

import pytest
from robot_class_talk import ClientTalk

from drone_bridge.robot_class import BodyVelocity, Delimited, Robot, Tcp, Telemetry
from drone_bridge.robot_class.connection import StatePacket
from drone_bridge.robot_class.topics import RobotClassTranslation, UnsentTopics, make_rows
from drone_bridge.ros.topics.covariances import UNKNOWN_VARIANCE
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.session.session import Publish

SPEED, TURN = 0.4, 0.5


class Located(Robot):
    """Rover that reports its pose, and whether it was at rest."""

    name, control = "located", Tcp(1, Delimited(b"\n"))
    topics = "odom", "battery_state", "mode: std_msgs/String"

    def encode_command(self, velocity):
        return b"%g %g\n" % (velocity.forward, velocity.turn)

    def decode_report(self, packet):
        angle = TURN * float(packet)
        return Telemetry((SPEED / TURN * math.sin(angle), SPEED / TURN * (1 - math.cos(angle)), 0.0), angle)


class Mapped(Located):
    """The same on a map."""

    name, absolute_pose = "mapped", True


class Reckoned(Located):
    """Rover that reports its velocity only."""

    name, reckons = "reckoned", True

    def decode_report(self, packet):
        return Telemetry(velocity=BodyVelocity(SPEED, turn=TURN), is_charging=False)


def reports(robot, times_s):
    """Return what is published for reports at these times."""
    talk, published = ClientTalk(robot), []
    talk.connect()
    for at_s in times_s:
        talk.run(at_s - talk.now_s)
        actions = talk.hear(b"%r\n" % at_s)
        published += [action.message for action in actions if isinstance(action, Publish)]
    return published


def odometry(robot, times_s):
    """Return the odometry after reports at these times."""
    (row,) = (row for row in make_rows(robot) if row.name == "odom")
    translation = RobotClassTranslation(DroneFrameNames(), "")
    return [row.to_ros(translation, told, None) for told in reports(robot, times_s) if told]


@pytest.mark.parametrize("robot", [Located, Mapped])
@pytest.mark.parametrize("times_s", [[k / 10 for k in range(200)], [k / 50 + 0.004 * (k % 3) for k in range(900)]])
def test_a_pose_alone_has_the_velocity_at_which_it_moves(robot, times_s):
    first, *_, last = odometry(robot, times_s)
    assert first.twist.covariance[0] == UNKNOWN_VARIANCE
    assert last.twist.covariance[0] < 1.0
    twist = last.twist.twist
    assert (twist.linear.x, twist.linear.y) == (pytest.approx(SPEED, rel=0.05), pytest.approx(0.0, abs=0.02))
    assert twist.angular.z == pytest.approx(TURN, rel=0.05)


def test_velocity_and_turn_alone_are_reckoned_in_the_plane():
    *_, last = odometry(Reckoned, [k / 10 for k in range(101)])
    angle = TURN * 10.0
    place = SPEED / TURN * math.sin(angle), SPEED / TURN * (1 - math.cos(angle))
    assert (last.pose.pose.position.x, last.pose.pose.position.y) == pytest.approx(place, abs=0.01)
    orientation = last.pose.pose.orientation
    assert 2 * math.atan2(orientation.z, orientation.w) == pytest.approx(math.remainder(angle, math.tau), abs=0.01)


def test_a_topic_for_which_no_report_has_had_a_value_is_named_after_5_s():
    unsent = UnsentTopics(Located, RobotClassTranslation(DroneFrameNames(), ""))
    for told, at_s, missed in (
        (Telemetry((0.0, 0.0, 0.0), 0.0), 10.0, None),
        (Telemetry(), 14.9, None),
        (Telemetry(), 15.1, ["battery_state", "mode"]),
        (Telemetry(voltage=12.0), 15.2, ["mode"]),
        (Telemetry(extra={"mode": object()}), 15.3, None),
        (Telemetry(), 100.0, None),
    ):
        unsent.reported(StatePacket(b"", told), at_s)
        names = unsent.facts and [each.split()[0] for each in unsent.facts["topics"].split(", ")]
        assert names == missed
