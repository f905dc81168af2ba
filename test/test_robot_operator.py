# SPDX-License-Identifier: Apache-2.0
"""The scripted driver of robots: what it says in which order."""

from types import SimpleNamespace

import pytest

from drone_bridge.net.connector import LinkError
from drone_bridge.programs.plan import parse_plan
from drone_bridge.robot import codec
from drone_bridge.robot.operator import ScriptedDriver, _converse, speeds


def test_the_scripted_driver_follows_its_plan_and_gives_the_drive_back():
    said = []
    driver = ScriptedDriver(
        "bot", parse_plan("2s forward 0.5, 1s turn 1"), lambda leg: speeds(leg, 0.5, 1.0), said.append
    )

    def outbox():
        taken, driver.outbox = driver.outbox, []
        return [packet for packet in taken if not isinstance(packet, codec.KeepAlive)]

    driver.tick(10.0, 0)
    assert outbox() == [codec.RegisterDriver("bot"), codec.QuerySubsystems()]
    driver.handle(codec.SubsystemInfo((codec.Subsystem(2, "lamp"), codec.Subsystem(1, "drive", "eve"))))
    driver.tick(10.1, 0)
    driver.tick(10.2, 0)
    assert outbox() == [codec.BindSubsystem(1)]
    driver.handle(codec.BindFailure(1))
    driver.tick(11.2, 0)
    assert outbox() == [codec.BindSubsystem(1)]
    driver.handle(codec.BindSuccess(1))
    for now_s, expected in ((12.0, (1024, 1024)), (13.0, None), (14.1, (-512, 512)), (15.1, (0, 0))):
        assert not driver.is_over
        driver.tick(now_s, 0)
        assert outbox() == ([codec.SkidSteerUpdate(1, *expected)] if expected else [])
    assert driver.is_over
    assert driver.farewell() == [codec.SkidSteerUpdate(1, 0, 0), codec.UnbindSubsystem(1)]
    driver.handle(codec.SensorInfo(()))
    driver.handle(codec.SensorUpdate((codec.SensorReading(3, 7),)))
    assert said[-1] == "sensor 3: 7"


def test_a_robot_that_has_closed_the_connection_is_named_as_the_reason():
    def fail(*pieces):
        raise LinkError("Nothing can be sent.")

    stream = SimpleNamespace(send=lambda *pieces: None, receive=lambda timeout_s: b"", leave=fail)
    driver = ScriptedDriver("bot", parse_plan("2s forward 0.5"), lambda leg: (0, 0), lambda line: None)
    with pytest.raises(LinkError, match="The robot has closed the connection"):
        _converse(stream, driver)
