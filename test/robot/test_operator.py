# SPDX-License-Identifier: Apache-2.0
"""ScriptedDriver: sent packets and their order."""

import pytest

from drone_bridge.net.connector import Cancellation, LinkError, LinkTimeoutError
from drone_bridge.programs.plan import parse_plan
from drone_bridge.robot import codec
from drone_bridge.robot.operator import DRIVER_NAME, ScriptedDriver, speeds


class Robot:
    """Robot at the other end of a OneStream. It responds at once, with a fake clock."""

    def __init__(self):
        self.now_s, self.sent, self._answers = 10.0, [], b""
        self._connection = codec.RobotConnection(())
        self.refusals, self.has_left = 1, False

    def clock(self):
        return self.now_s

    def send(self, *pieces):
        for piece in pieces:
            self._connection.receive_data(bytes(piece))
        while (packet := self._connection.next_event()) is not codec.NEED_DATA:
            if not isinstance(packet, codec.KeepAlive):
                self.sent.append((self.now_s, packet))
            self.answer(packet)

    leave = send

    def answer(self, packet):
        if isinstance(packet, codec.QuerySubsystems):
            self.say(codec.SubsystemInfo((codec.Subsystem(2, "lamp"), codec.Subsystem(1, "drive", "eve"))))
        if isinstance(packet, codec.BindSubsystem):
            self.say(codec.BindFailure(packet.id) if self.refusals > 0 else codec.BindSuccess(packet.id))
            self.refusals -= 1

    def say(self, packet):
        self._answers += b"".join(map(bytes, codec.in_pieces([self._connection.send(packet)])))

    def receive(self, timeout_s):
        if self.has_left:
            return b""
        if not self._answers:
            self.now_s += timeout_s
            raise LinkTimeoutError("Nothing arrived.")
        answers, self._answers = self._answers, b""
        return answers


@pytest.fixture
def robot():
    return Robot()


def driver_of(robot, plan="2s forward 0.5, 1s turn 1"):
    return ScriptedDriver(robot, parse_plan(plan), lambda leg: speeds(leg, 0.5, 1.0), Cancellation(), robot.clock)


def test_the_scripted_driver_follows_its_plan_and_unbinds(robot):
    assert driver_of(robot).run()
    (_, register), (_, query), (asked_s, refused), (began_s, bound), *rest = robot.sent
    assert (register, query) == (codec.RegisterDriver(DRIVER_NAME), codec.QuerySubsystems())
    assert refused == bound == codec.BindSubsystem(1)
    assert began_s - asked_s == pytest.approx(1.0, abs=0.2)
    turn_s = rest[1][0]
    assert turn_s - rest[0][0] == pytest.approx(2.0, abs=0.2)
    assert [packet for _, packet in rest] == [
        codec.SkidSteerUpdate(1, 1024, 1024),
        codec.SkidSteerUpdate(1, -512, 512),
        codec.SkidSteerUpdate(1, 0, 0),
        codec.UnbindSubsystem(1),
    ]


def test_a_lost_skid_steer_is_bound_again(robot):
    driver = driver_of(robot, "4s forward 0.5")
    robot.refusals = 0
    driver.prepare()
    robot.say(codec.SubsystemBound(1, "eve"))
    driver.follow()
    kinds = [type(packet).__name__ for _, packet in robot.sent]
    assert kinds[2:] == ["BindSubsystem", "SkidSteerUpdate", "BindSubsystem", "SkidSteerUpdate"]


def test_a_reading_of_an_unlisted_sensor_is_printed(robot, capsys):
    driver = driver_of(robot)
    robot.say(codec.SensorInfo(()))
    robot.say(codec.SensorUpdate((codec.SensorReading(3, 7),)))
    driver.listen(1.0)
    assert "sensor 3: 7" in capsys.readouterr().out


def test_the_error_reports_that_the_robot_closed_the_connection(robot):
    def fail(*pieces):
        raise LinkError("Nothing can be sent.")

    robot.has_left, robot.leave = True, fail
    with pytest.raises(LinkError, match="closed"):
        driver_of(robot).run()
