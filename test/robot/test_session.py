# SPDX-License-Identifier: Apache-2.0
"""ConnectedDriver: one connection to a robot, step by step, with a fake clock."""

import math
from unittest.mock import ANY

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from session_talk import published

from drone_bridge.robot import codec
from drone_bridge.robot.codec import Speeds
from drone_bridge.robot.session.bindings import QUERY_PERIOD_S
from drone_bridge.robot.session.connected_driver import (
    PATIENCE_S,
    ConnectedDriver,
    DriverParameters,
    KeepAliveRoundTrip,
    SilentRobotError,
)
from drone_bridge.robot.session.desired import DesiredSubsystems
from drone_bridge.robot.session.keep_alives import ANSWER_TIMEOUT_S, KEEP_ALIVE_PERIOD_S, SAFE_MODE_LASTS_S
from drone_bridge.session.session import Note

DRIVE, LAMP, SECOND_LAMP, ARM = (
    codec.Subsystem(1, "drive"),
    codec.Subsystem(2, "lamp"),
    codec.Subsystem(2, "beacon"),
    codec.Subsystem(9, "arm"),
)
ROBOT = codec.SubsystemInfo((DRIVE, LAMP, SECOND_LAMP, ARM))
TIMEOUT_S = 2.0


class Scene:
    """Connected driver, its events, and a clock."""

    def __init__(self, skid_steer=("first",), lights=("first",), desired=None):
        self.out = []
        self.desired = desired or DesiredSubsystems(skid_steer, lights)
        parameters = DriverParameters(link_timeout=TIMEOUT_S, max_update_rate=math.inf)
        self.session = ConnectedDriver("me", self.desired, parameters, self.out, now_s=100.0)
        self.now_s = 100.0
        self.sent()

    def hear(self, *packets):
        for packet in packets:
            self.session.handle(packet, self.now_s)
        return self.sent()

    def wait(self, seconds):
        self.now_s += seconds
        self.session.tick(self.now_s, round(1000 * self.now_s))
        return [packet for packet in self.sent() if not isinstance(packet, codec.KeepAlive)]

    def sent(self):
        sent = []
        self.session.flush(lambda packet, now_s, is_slow: sent.append(packet), self.now_s)
        return sent

    def keep_alive(self):
        """Advance the clock until a keep-alive is sent, and return it."""
        self.now_s = max(self.now_s, self.session.keep_alives.due_s)
        self.session.tick(self.now_s, round(1000 * self.now_s))
        return [packet for packet in self.sent() if isinstance(packet, codec.KeepAlive)]

    def drive(self, *speeds):
        self.session.drive(Speeds(*speeds), self.now_s)
        return self.sent()

    def ask(self, task, *arguments):
        """Post a request. Return a function that returns its outcomes."""
        request = object()
        task(request, *arguments)
        return lambda: [
            (each.is_success, each.sentence) for each in self.out if getattr(each, "request", None) is request
        ]

    def warnings(self):
        notes = [each for each in self.out if isinstance(each, Note) and not each.is_expected]
        return [(note.counter, note.sentence) for note in notes if note.counter != "updates"]

    def counts(self):
        return [count for count, _ in self.warnings()]


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def bound():
    """Return a scene in which the drive and the first lamp are bound."""
    scene = Scene()
    scene.hear(ROBOT)
    scene.hear(codec.BindSuccess(0), codec.BindSuccess(1))
    return scene


def test_desired_subsystems_are_bound_and_not_driven_before_the_grant(scene):
    assert scene.hear(ROBOT) == [codec.BindSubsystem(0), codec.BindSubsystem(1)]
    assert scene.session.switch_lights(True) == 0
    assert scene.drive(5, 6) == []
    assert scene.hear(codec.SubsystemBound(0, "me"), codec.LogMessage("bound")) == []
    assert scene.drive(5, 6) == []
    assert not scene.session.bindings.is_settled
    assert scene.hear(codec.BindSuccess(0), codec.BindFailure(1)) == [codec.SkidSteerUpdate(0, 0, 0)]
    assert scene.session.bindings.is_settled
    assert scene.drive(5, 6) == [codec.SkidSteerUpdate(0, 5, 6)]
    assert scene.drive(5, 6) == []


@pytest.mark.parametrize(
    ("skid_steer", "lights", "expected"),
    [
        (["first"], ["first"], {0, 1}),
        (["none"], ["all"], {1, 2}),
        (["drive"], ["beacon", "lamp"], {0, 1, 2}),
        (["0"], ["2"], {0, 2}),
    ],
)
def test_desired_subsystems_can_be_named(skid_steer, lights, expected):
    scene = Scene(skid_steer, lights)
    assert {packet.id for packet in scene.hear(ROBOT)} == expected
    assert scene.counts() == []


def test_a_refused_subsystem_is_requested_again_when_it_is_released(scene):
    scene.hear(codec.SubsystemInfo((codec.Subsystem(1, "drive", "bob"),)))
    assert scene.hear(codec.BindFailure(0)) == []
    ((counter, sentence),) = scene.warnings()
    assert counter == "refused_binds"
    assert "subsystem 0 (drive)" in sentence
    assert "bob" in sentence
    assert scene.hear(codec.SubsystemBound(0, "")) == []
    assert "'bob'" in scene.session.bindings.obstruction.sentence  # until the next answer
    assert scene.wait(QUERY_PERIOD_S) == [codec.QuerySubsystems()]
    assert scene.hear(codec.SubsystemInfo((DRIVE,))) == [codec.BindSubsystem(0)]


def test_revoked_subsystem_is_not_driven_and_is_bound_again_when_it_is_free(bound):
    bound.drive(5, 5)
    bound.hear(codec.SubsystemBound(0, "bob"))
    assert bound.drive(6, 6) == []
    bound.hear(codec.SubsystemBound(0, ""))
    assert bound.wait(QUERY_PERIOD_S) == [codec.QuerySubsystems()]
    assert bound.hear(ROBOT) == [codec.BindSubsystem(0)]
    assert bound.drive(6, 6) == []
    bound.hear(codec.BindSuccess(0))
    assert bound.drive(6, 6) == [codec.SkidSteerUpdate(0, 6, 6)]
    assert bound.counts() == ["lost_subsystems"]


def test_alternating_grants_and_revocations_cause_no_flood_of_binds(bound):
    binds = 0
    for _ in range(100):
        bound.hear(codec.SubsystemBound(0, ""))
        if bound.wait(0.01):
            binds += len(bound.hear(ROBOT))
            bound.hear(codec.BindSuccess(0))
    assert binds == 1


@pytest.mark.parametrize(
    "packet",
    [
        codec.BindSuccess(0),
        codec.BindSuccess(77),
        codec.BindFailure(1),
        codec.SubsystemBound(9, "bob"),
        codec.KeepAlive(5),
    ],
)
def test_unsolicited_packets_change_nothing(scene, packet):
    assert scene.hear(packet) == [], "robotd would disconnect on it"
    assert scene.session.bindings.bound == set()
    assert scene.drive(1, 1) == []
    scene.hear(ROBOT)
    assert scene.session.bindings.bound == set()


def test_another_list_means_other_subsystems(bound):
    assert bound.hear(codec.SubsystemInfo((LAMP, DRIVE))) == [codec.BindSubsystem(0), codec.BindSubsystem(1)]
    assert bound.session.bindings.bound == set()
    bound.hear(codec.BindSuccess(1))
    assert bound.drive(3, 3) == [codec.SkidSteerUpdate(1, 3, 3)]


def test_a_list_that_grows_keeps_the_bound_subsystems(bound):
    """An NXT adapter sends it without a query when another brick appears."""
    bound.drive(3, 3)
    assert bound.hear(codec.SubsystemInfo((*ROBOT.subsystems, codec.Subsystem(1, "second drive")))) == []
    assert bound.session.bindings.bound == {0, 1}
    assert bound.drive(4, 4) == [codec.SkidSteerUpdate(0, 4, 4)]


# Keep-alives and silence.


def test_keep_alives_are_sent_with_a_fixed_period_and_the_time_of_day(scene):
    sent = []
    for _ in range(4):
        scene.now_s = max(scene.now_s, scene.session.due_s)
        scene.session.tick(scene.now_s, round(1000 * scene.now_s))
        sent += (asked := scene.sent())
        scene.hear(*asked)
    assert sent == [codec.KeepAlive(round(1000 * (100 + KEEP_ALIVE_PERIOD_S * number))) for number in range(4)]


@pytest.mark.parametrize("how", ["a stop", "given back"])
def test_a_stop_is_in_force_once_a_later_keep_alive_is_answered(bound, how):
    bound.hear(*bound.keep_alive())
    bound.drive(5, 5)
    before = bound.keep_alive()
    bound.now_s += 0.01
    if how == "a stop":
        assert bound.drive(0, 0) == [codec.SkidSteerUpdate(0, 0, 0)]
    else:
        bound.ask(bound.session.bindings.unbind, 0)
        assert bound.drive(5, 5) == [codec.SkidSteerUpdate(0, 0, 0), codec.UnbindSubsystem(0)]
    bound.hear(*before)  # unrelated to later packets
    assert bound.session.moving == Speeds(5, 5)
    assert bound.session.due_s <= bound.now_s  # for the next one, at once
    bound.hear(*bound.keep_alive())
    assert bound.session.moving == Speeds(0, 0)
    assert bound.wait(10 * KEEP_ALIVE_PERIOD_S) == []  # it is not repeated


def test_new_command_or_driver_ends_the_wait_for_a_stops_acknowledgement(bound):
    bound.drive(0, 0)
    bound.drive(5, 5)
    assert bound.session.moving == Speeds(5, 5)
    bound.hear(codec.SubsystemBound(0, "bob"))
    bound.hear(*bound.keep_alive())
    assert bound.session.moving == Speeds(0, 0)  # its motion is no longer ours to report


def test_the_round_trip_is_measured(scene):
    scene.session.tick(100.0, 1234)
    scene.sent()
    scene.now_s += 0.25
    scene.hear(codec.KeepAlive(1234))
    assert published(scene.out) == [KeepAliveRoundTrip(0.25)]


def test_after_a_stall_it_sends_and_receives_before_it_judges_the_robot(bound):
    bound.keep_alive()
    bound.now_s += 3 * TIMEOUT_S
    bound.session.keep_alives.resume(bound.now_s)
    (asked,) = bound.keep_alive()  # at once
    assert bound.session.keep_alives.standstill_reason(bound.now_s) is None
    bound.now_s += 0.75 * TIMEOUT_S
    bound.hear(asked)
    assert bound.wait(0.2 * TIMEOUT_S) == []
    assert bound.counts() == []
    with pytest.raises(SilentRobotError, match="for 2 s"):
        bound.wait(TIMEOUT_S)


def test_only_an_answered_keep_alive_is_a_sign_of_life(bound):
    """A robot with a backlog answers, but ever later, and does not execute a stop. Reconnecting helps."""
    for _ in range(15):
        bound.hear(codec.LogMessage("still here"))
        bound.wait(TIMEOUT_S / 16)
    with pytest.raises(SilentRobotError):
        bound.wait(TIMEOUT_S / 16)


@pytest.mark.parametrize("is_robotd", [False, True])
def test_a_robot_that_is_starting_and_robotd_have_more_time(scene, is_robotd):
    """robotd serves no driver that has disconnected, until it is restarted."""
    scene.wait(PATIENCE_S - 0.1)
    scene.hear(codec.FirmwareInfo("robotd" if is_robotd else "other", "1.2", 2))
    if is_robotd:
        scene.wait(0.05)
    with pytest.raises(SilentRobotError, match="for 10 s" if is_robotd else "for 2 s"):
        scene.wait(0.1)


SAFE_MODE = codec.LogMessage("[Nov 20 2026 11:53:01 PM] {drive} safe mode")


def test_motors_are_not_driven_in_safe_mode(bound):
    """robotd reports it at every stale keep-alive, and any update would restart the motors."""
    bound.drive(5, 5)
    for speed in range(6, 16):
        bound.hear(SAFE_MODE, *bound.keep_alive())
        assert bound.drive(speed, speed) == ([codec.SkidSteerUpdate(0, 0, 0)] if speed == 6 else [])
    assert "safe mode" in bound.session.keep_alives.standstill_reason(bound.now_s)
    ends_s = bound.now_s + SAFE_MODE_LASTS_S
    while bound.now_s < ends_s:
        assert bound.drive(7, 7) == []
        bound.hear(*bound.keep_alive())
    assert bound.session.keep_alives.standstill_reason(bound.now_s) is None
    assert bound.drive(7, 7) == [codec.SkidSteerUpdate(0, 7, 7)]


def test_motors_are_not_driven_while_keep_alives_are_late(bound):
    bound.hear(*bound.keep_alive())
    bound.drive(4, 4)
    (delayed,) = bound.keep_alive()
    bound.hear(delayed)
    bound.now_s += ANSWER_TIMEOUT_S
    (delayed,) = bound.keep_alive()
    assert bound.drive(5, 5) == [codec.SkidSteerUpdate(0, 5, 5)]
    bound.now_s += 0.5
    assert bound.drive(6, 6) == [codec.SkidSteerUpdate(0, 0, 0)]
    assert "may still be moving" in bound.session.keep_alives.standstill_reason(bound.now_s)
    bound.now_s += 0.6
    bound.hear(delayed)
    assert bound.drive(6, 6) == []  # the answered keep-alive is too old to show that they are in time again
    bound.hear(*bound.keep_alive())
    assert bound.drive(6, 6) == [codec.SkidSteerUpdate(0, 6, 6)]


# Subsystems held by others.

ROBOTD = codec.FirmwareInfo("robotd", "1.2", 2)


def held_by(name):
    return codec.SubsystemInfo((codec.Subsystem(1, "Main Drive", name),))


def refused(holder, firmware=ROBOTD, **options):
    """Return a scene in which the bind of the drive was refused."""
    scene = Scene(**options)
    assert scene.hear(held_by(holder)) == [codec.BindSubsystem(0)]
    scene.hear(firmware, codec.BindFailure(0))
    return scene


def test_while_another_driver_holds_a_subsystem_the_list_is_queried(scene):
    """A robot need not announce its release."""
    scene = refused("bob", codec.FirmwareInfo("emulator", "1", 2))
    sentence, is_error = scene.session.bindings.obstruction
    assert "'bob'" in sentence
    assert not is_error
    for _ in range(3):
        scene.hear(*scene.keep_alive())
        assert scene.wait(QUERY_PERIOD_S) == [codec.QuerySubsystems()]
        assert scene.hear(held_by("bob")) == []
    assert scene.hear(held_by("")) == [codec.BindSubsystem(0)]
    scene.hear(codec.BindSuccess(0))
    assert scene.session.bindings.obstruction is None
    for _ in range(10):
        scene.hear(*scene.keep_alive())
        assert scene.wait(0.5) == []


@pytest.mark.parametrize("holder", ["me", "h2"])
def test_a_robotd_that_serves_no_other_driver_is_an_error(holder):
    sentence, is_error = refused(holder).session.bindings.obstruction
    assert f"'{holder}'" in sentence
    assert "restart robotd" in sentence
    assert "motors may be running" in sentence
    assert is_error


# Requests.


def test_requests_bind_and_unbind(bound):
    answers = bound.ask(bound.session.bindings.bind, 2)
    assert (bound.sent(), answers()) == ([codec.BindSubsystem(2)], [])
    again = bound.ask(bound.session.bindings.bind, 2)
    bound.hear(codec.BindSuccess(2))
    assert answers() == again() == [(True, ANY)]
    assert bound.ask(bound.session.bindings.bind, 2)() == [(True, ANY)]
    assert bound.ask(bound.session.bindings.unbind, 2)() == [(True, ANY)]
    assert bound.sent() == [codec.UnbindSubsystem(2)]
    assert bound.hear(codec.SubsystemBound(2, "")) == []
    assert bound.wait(QUERY_PERIOD_S) == []


def test_requested_subsystems_persist_across_connections_to_one_robot(bound):
    bound.ask(bound.session.bindings.unbind, 0)
    bound.ask(bound.session.bindings.bind, 2)
    assert Scene(desired=bound.desired).hear(ROBOT) == [codec.BindSubsystem(1), codec.BindSubsystem(2)]
    other = codec.SubsystemInfo((codec.Subsystem(1, "other drive"), LAMP))
    assert Scene(desired=bound.desired).hear(other) == [codec.BindSubsystem(0), codec.BindSubsystem(1)]


def test_a_cancelled_bind_is_released_when_granted(scene):
    scene.hear(ROBOT)
    answers = scene.ask(scene.session.bindings.bind, 0)
    scene.ask(scene.session.bindings.unbind, 0)
    assert scene.hear(codec.BindSuccess(0)) == [codec.UnbindSubsystem(0)]
    assert answers()[0][0] is False
    assert scene.drive(1, 1) == []


# Arbitrary packets.


numbers = st.integers(0, 5)
packets = st.one_of(
    st.builds(codec.KeepAlive, st.integers(99_000, 110_000)),
    st.builds(codec.BindSuccess, numbers),
    st.builds(codec.BindFailure, numbers),
    st.builds(codec.SubsystemBound, numbers, st.sampled_from(["", "me", "bob"])),
    st.sampled_from(
        [ROBOT, codec.SubsystemInfo((DRIVE,)), codec.SubsystemInfo((LAMP, DRIVE)), codec.SubsystemInfo(())]
    ),
    st.just(codec.SensorInfo((codec.Sensor(2, "t", 1),))),
    st.just(codec.SensorUpdate((codec.SensorReading(9, 9),))),
)
steps = st.one_of(
    packets,
    st.floats(0, 0.3).map(lambda seconds: ("wait", seconds)),
    st.tuples(st.sampled_from(["bind", "unbind"]), numbers),
    st.tuples(st.just("drive"), st.integers(-2048, 2048)),
)


@given(st.lists(steps, max_size=40))
@example([codec.SubsystemInfo(()), ROBOT, codec.BindSuccess(0)])  # granted before it is requested
def test_in_any_order_only_granted_subsystems_are_driven(order):
    """For any packets, sent packets are valid, and updates are only for granted subsystems."""
    scene = Scene()
    protocol = codec.DriverConnection()
    protocol.send(codec.RegisterDriver("me"))
    asked, granted = set(), set()
    for step in order:
        match step:
            case ("wait", seconds):
                try:
                    sent = scene.wait(seconds)
                except SilentRobotError:
                    break
            case ("bind", number):
                scene.ask(scene.session.bindings.bind, number)
                sent = scene.sent()
            case ("unbind", number):
                scene.ask(scene.session.bindings.unbind, number)
                sent = scene.sent()
                updates = {packet.id for packet in sent if isinstance(packet, codec.SkidSteerUpdate)}
                assert updates <= granted
                granted.discard(number)
            case ("drive", speed):
                sent = scene.drive(speed, speed)
                assert {packet.id for packet in sent} <= granted
            case packet:
                sent = scene.hear(packet)
                if isinstance(packet, codec.BindSuccess) and packet.id in asked:
                    granted.add(packet.id)
                if isinstance(packet, codec.SubsystemBound) and packet.driver != "me":
                    granted.discard(packet.id)
        asked |= {packet.id for packet in sent if isinstance(packet, codec.BindSubsystem)}
        for packet in sent:
            protocol.send(packet)
    for packet in scene.session.bindings.end(""):
        assert packet.id in granted
