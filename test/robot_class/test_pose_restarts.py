# SPDX-License-Identifier: Apache-2.0
"""Robots that count their pose anew, in their bridge's session: `odom` goes on, and goals and fences are told."""

import math

import pytest
from robot_class_talk import ClientTalk
from session_talk import notes, published

from drone_bridge.motion.limits import LimitParameters, Limits
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.robot_class import BodyVelocity, Delimited, Robot, Serial, Telemetry, Wheels
from drone_bridge.robot_class.client_session import CONNECTED
from drone_bridge.robot_class.connection import StatePacket
from drone_bridge.robot_class.robot import maxima, unstoppable
from drone_bridge.robot_class.two_wheels import TwoWheels
from drone_bridge.session.continuous_pose import POSE_RESTARTS, ContinuousPose
from drone_bridge.session.feedback import Feedback


class Counter(Robot):
    """Robot whose class counts its way, by ticks of a centimetre."""

    name, control, keeps = "counter", Serial(115200, Delimited(b"\n")), ("wheels",)

    def __init__(self):
        self.wheels = Wheels(0.3, 0.01)

    def encode_command(self, velocity):
        return b"v %g\n" % velocity.forward

    def decode_report(self, packet):
        return Telemetry(*self.wheels.counted(int(packet), int(packet)))


class Gyro(Robot):
    """Robot that reports a velocity and a yaw, which its bridge integrates."""

    name, control, reckons = "gyro", Serial(115200, Delimited(b"\n")), True

    def encode_command(self, velocity):
        return b"v %g\n" % velocity.forward

    def decode_report(self, packet):
        speed, yaw = map(float, packet.split())
        return Telemetry(None, yaw, BodyVelocity(speed), height=0.0, roll=0.0, pitch=0.0)


class Talk(ClientTalk):
    """Session of a bridge with a fence of 2 m, on a stream or a line."""

    def __init__(self, robot, *, is_line=False):
        self.observed = ObservedMotion(lambda: self.now_s)
        self.limits = Limits(LimitParameters(fence_radius=2.0), self.observed)
        feedback, pose = Feedback(self.observed, self.limits), ContinuousPose(self.observed, *maxima(robot))
        super().__init__(robot, feedback=feedback, pose=pose, is_line=is_line)
        self.connect()

    def hear_all(self, *packets):
        """Receive packets, 0.1 s apart. Return the last place and yaw, and the restarts."""
        actions = []
        for packet in packets:
            self.run(0.1)
            actions += self.hear(packet + b"\n")
        last = [each.meaning for each in published(actions) if isinstance(each, StatePacket)][-1]
        return last.position[:2], last.yaw, len(notes(actions, POSE_RESTARTS))


@pytest.mark.parametrize("is_line", [False, True])
def test_a_board_that_was_reset_goes_on_from_where_it_was(is_line):
    talk = Talk(TwoWheels, is_line=is_line)
    talk.hear_all(b"hello", *(b"at %d 0 0 1000 1000 12000" % (100 * step) for step in range(16)))
    assert talk.observed.newest.position == (1.5, 0.0, 0.0)
    talk.run(3.1)
    assert talk.session.state != CONNECTED
    if not is_line:
        talk.connect()
    assert talk.hear_all(b"hello", b"at 0 0 0 0 0 12000") == ((1.5, 0.0), 0.0, 1)
    assert talk.hear_all(b"at 100 0 0 1000 1000 12000") == ((1.6, 0.0), 0.0, 0)
    assert talk.observed.newest.position == (1.6, 0.0, 0.0)
    assert talk.limits.is_blind(talk.now_s), "the fence of 2 m, since it was silent for more than 3 s"


def test_a_report_during_the_greeting_does_not_hide_the_reset():
    talk = Talk(TwoWheels)
    talk.hear_all(b"hello", *(b"at %d 0 0 1000 1000 12000" % (100 * step) for step in range(16)))
    talk.run(3.1)
    talk.connect()
    assert talk.hear_all(b"at 1500 0 0 0 0 12000", b"hello", b"at 0 0 0 0 0 12000") == ((1.5, 0.0), 0.0, 1)


@pytest.mark.parametrize(("ticks", "x", "restarts"), [(150, 1.5, 0), (300, 3.0, 0), (0, 1.5, 1), (900, 1.5, 1)])
def test_a_way_that_the_class_counts_survives_its_reconnection(ticks, x, restarts):
    talk = Talk(Counter, is_line=True)
    talk.hear_all(*(b"%d" % (10 * step) for step in range(16)))
    talk.run(3.1)
    place, _, restarted = talk.hear_all(b"%d" % ticks)
    assert (place[0], restarted) == (pytest.approx(x), restarts)


def test_what_a_class_keeps_has_to_exist():
    class Wrong(Counter):
        name, keeps = "wrong", ("wheels", "tick")

    assert "'tick'" in unstoppable(Wrong)
    assert unstoppable(Counter) == ""
    with pytest.raises(ValueError, match="keeps"):
        type("Text", (Counter,), {"name": "text", "keeps": "x"})


def test_a_heading_that_begins_again_goes_on_before_it_is_integrated():
    talk = Talk(Gyro, is_line=True)
    talk.hear_all(*(b"1 %g" % (0.1 * step) for step in range(16)))
    talk.run(3.1)
    place, yaw, restarts = talk.hear_all(b"0 0")
    assert (yaw, restarts) == (pytest.approx(1.5), 1)
    ahead, yaw, _ = talk.hear_all(b"1 0")
    assert (ahead[0] - place[0], ahead[1] - place[1]) == pytest.approx((0.1 * math.cos(1.5), 0.1 * math.sin(1.5)))
