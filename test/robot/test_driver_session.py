# SPDX-License-Identifier: Apache-2.0
"""DriverSession of robot_bridge across connections, in isolation, with a fake clock."""

from types import SimpleNamespace
from unittest.mock import ANY

import pytest
from session_talk import SessionTalk, notes, published

from drone_bridge.motion.body_velocity import STILL
from drone_bridge.motion.measurement import Measurement
from drone_bridge.robot import codec
from drone_bridge.robot.codec import HEADER_BYTES, STOPPED, Speeds
from drone_bridge.robot.session.bindings import NOT_LISTED
from drone_bridge.robot.session.commanded_motion import ODOMETRY_RATE
from drone_bridge.robot.session.connected_driver import DriverParameters, KeepAliveRoundTrip
from drone_bridge.robot.session.desired import DesiredSubsystems
from drone_bridge.robot.session.driver import NOT_CONNECTED, OBSTRUCTION, STANDSTILL, DriverSession, Lists, Problem
from drone_bridge.robot.session.keep_alives import ANSWER_TIMEOUT_S
from drone_bridge.robot.units import SkidSteer
from drone_bridge.session.arbiter import Decision, Rank
from drone_bridge.session.session import Close, Outcome, Send

DRIVE, LAMP = 0, 1
ROBOT = codec.SubsystemInfo((codec.Subsystem(1, "drive"), codec.Subsystem(2, "lamp")))
LINK_TIMEOUT_S, COMMAND_TIMEOUT_S = 2.0, 0.5
FORWARD, BACK = Speeds(1024, 1024), Speeds(-512, -512)
#: The velocities that its sides have are their speeds on the wire.
STEER = SkidSteer(wheel_separation=1.0, max_wheel_speed=codec.FULL_SPEED)
WALL_MS = 1_800_000_000_000


class Steering:
    """Arbiter with one command, which times out after COMMAND_TIMEOUT_S."""

    def __init__(self):
        self.speeds = self.arrived_s = None

    def decide(self, now_s):
        if self.speeds is None or now_s - self.arrived_s > COMMAND_TIMEOUT_S:
            return Decision(Rank.NEUTRAL)
        return Decision(Rank.COMMAND, STEER.velocity(self.speeds), self.arrived_s)

    def forget(self):
        self.speeds = None


class Talk(SessionTalk):
    """Session of a driver, its parameters, and a robot that answers keep-alives and grants binds."""

    def __init__(self, **parameters):
        self.parameters = DriverParameters(**{"link_timeout": LINK_TIMEOUT_S, **parameters})
        self.steering, self.measurements = Steering(), []
        desired = DesiredSubsystems(["first"], ["first"])
        super().__init__(
            DriverSession(
                "me",
                desired,
                self.steering,
                self.parameters,
                lambda: WALL_MS + self.ms(),
                skid_steer=STEER,
                feedback=self,
            )
        )
        self.is_answering, self.heard, self.actions, self.is_closed = True, [], [], False
        self.wire = None

    def measured(self, measured, now_s):
        self.measurements.append(measured)

    def ms(self):
        return round(1000 * self.now_s)

    def connect(self):
        self.wire, self.heard, self.is_closed = codec.RobotConnection([1, 2]), [], False
        return self.take(self.session.connected("robot:25600", self.now_s))

    def take(self, actions):
        """Execute the session's actions and let the robot respond. Return all actions."""
        done = list(actions)
        for action in done:
            if isinstance(action, Send):
                assert not self.is_closed
                self.wire.receive_data(action.data)
            elif isinstance(action, Close):
                self.is_closed = True
        if not self.wire:
            return done
        while (packet := self.wire.next_event()) is not codec.NEED_DATA:
            self.heard.append(packet)
            if not self.is_answering or self.is_closed:
                continue
            if isinstance(packet, codec.KeepAlive):
                done += self.say(packet)
            elif isinstance(packet, codec.BindSubsystem):
                done += self.say(codec.SubsystemBound(packet.id, "me"), codec.BindSuccess(packet.id))
        return done

    def say(self, *packets):
        return self.take(self.session.receive(b"".join(map(self.wire.send, packets)), "robot:25600", self.now_s))

    def command(self, speeds):
        self.steering.speeds, self.steering.arrived_s = speeds, self.now_s
        return self.take(self.session.commanded(self.now_s))

    def ask(self, task, argument, asked_s=None):
        request = SimpleNamespace(name=task.__name__, asked_s=self.now_s if asked_s is None else asked_s)
        return self.take(task(request, argument, self.now_s))

    def speeds(self):
        """Return the speeds that the robot has received."""
        return [Speeds(p.left, p.right) for p in self.heard if isinstance(p, codec.SkidSteerUpdate)]

    def packets(self):
        return [packet for packet in self.heard if not isinstance(packet, codec.KeepAlive)]


def outcomes(actions):
    return [(each.is_success, each.sentence) for each in actions if isinstance(each, Outcome)]


def kind(actions, wanted):
    return [message for message in published(actions) if isinstance(message, wanted)]


@pytest.fixture
def talk():
    return Talk()


@pytest.fixture
def bound(talk):
    """Return a talk with a robot whose drive and lamp are bound."""
    talk.connect()
    talk.say(ROBOT)
    talk.run(0.2)
    talk.heard.clear()
    return talk


# The start of a connection.


def test_it_registers_queries_binds_and_sends_a_stop_first(talk):
    actions = talk.connect()
    assert notes(actions, "connections") == ["Connected to robot:25600."]
    (answer,) = outcomes(talk.ask(talk.session.bind, LAMP))  # as soon as that is said
    assert answer == (False, NOT_LISTED)
    talk.say(ROBOT)
    talk.run(0.1)
    assert talk.packets() == [
        codec.RegisterDriver("me"),
        codec.QuerySubsystems(),
        codec.BindSubsystem(DRIVE),
        codec.BindSubsystem(LAMP),
        codec.SkidSteerUpdate(DRIVE, 0, 0),
    ]


def test_header_and_payload_of_each_packet_are_sent_separately(talk):
    sizes = [len(action.data) for action in talk.connect() if isinstance(action, Send)]
    assert sizes[:3] == [HEADER_BYTES, 4, HEADER_BYTES]  # a name of two bytes, and a query without anything


# Driving.


def test_a_command_is_sent_at_once_and_ends_in_a_stop(bound):
    actions = bound.command(FORWARD)
    assert bound.speeds() == [FORWARD]
    assert len(notes(actions, "updates")) == 1
    bound.run(COMMAND_TIMEOUT_S - 0.01)
    assert bound.speeds() == [FORWARD]
    bound.run(0.02)
    assert bound.speeds() == [FORWARD, STOPPED]


def test_changes_are_rate_limited_the_newest_wins_and_a_stop_is_immediate(bound):
    bound.parameters.max_update_rate = 10.0
    bound.command(FORWARD)
    for number in range(1, 5):
        bound.run(0.01)
        bound.command(Speeds(number, number))
    assert bound.speeds() == [FORWARD]
    bound.run(0.07)
    assert bound.speeds() == [FORWARD, Speeds(4, 4)]
    bound.command(STOPPED)
    assert bound.speeds()[-1] == STOPPED


def test_the_arbiter_decides_once_per_turn(bound):
    """The arbiter counts its decisions."""
    decided = []
    bound.steering.decide = lambda now_s: decided.append(now_s) or Decision(Rank.NEUTRAL)
    bound.take(bound.session.commanded(bound.now_s))
    assert len(decided) == 1


def test_commands_without_a_subsystem_are_undeliverable_with_a_reason(talk):
    assert talk.session.undrivable is None
    talk.connect()
    talk.run(0.1)
    assert talk.session.undrivable == NOT_LISTED
    talk.say(ROBOT)
    assert talk.session.undrivable is None
    talk.say(codec.SubsystemBound(DRIVE, "bob"))
    assert talk.session.undrivable


# Keep-alives.


def test_keep_alives_with_the_same_time_of_day_are_distinguished(bound, monkeypatch):
    """Happens when the clock is set back."""
    monkeypatch.setattr(bound, "ms", lambda: 0)
    bound.is_answering = False
    bound.run(0.35)
    asked = [packet for packet in bound.heard if isinstance(packet, codec.KeepAlive)][-3:]
    assert len({packet.time_ms for packet in asked}) == 1
    actions = bound.say(*asked)
    assert len(kind(actions, KeepAliveRoundTrip)) == 3


# The end of a connection.


@pytest.mark.parametrize("how", ["end", "nonsense", "silence", "fault"])
def test_the_end_stops_the_robot_and_unbinds_all_subsystems(bound, how):
    bound.command(FORWARD)
    bound.heard.clear()
    if how == "end":
        bound.take(bound.session.end(bound.now_s))
        assert bound.session.is_over
    elif how == "nonsense":
        actions = bound.take(bound.session.receive(b"\0\1\4\0", "robot:25600", bound.now_s))
        assert len(notes(actions, "rejected_input")) == 1
    elif how == "silence":
        bound.is_answering = False
        actions = bound.run(LINK_TIMEOUT_S + 0.1)
        assert "link_timeout" in notes(actions, "lost_connections")[0]
    else:
        bound.take(bound.session.lost(bound.now_s))
    assert bound.packets()[-3:] == [
        codec.SkidSteerUpdate(DRIVE, 0, 0),
        codec.UnbindSubsystem(DRIVE),
        codec.UnbindSubsystem(LAMP),
    ]
    assert (bound.is_closed, bound.session.is_open) == (True, False)
    assert bound.run(60.0) == []


def test_nothing_is_sent_to_a_disconnected_robot(bound):
    actions = bound.session.disconnected("robot:25600", "The robot has gone.", bound.now_s)
    assert notes(actions, "lost_connections") == ["The robot has gone."]
    assert not [action for action in actions if isinstance(action, (Send, Close))]
    assert bound.session.end(bound.now_s) == []


def test_an_incomplete_packet_at_the_end_is_rejected_input(bound):
    bound.session.receive(b"\0", "robot:25600", bound.now_s)
    actions = bound.session.disconnected("robot:25600", "The robot has gone.", bound.now_s)
    assert (len(notes(actions, "rejected_input")), notes(actions, "lost_connections")) == (1, [])


def test_a_robot_that_disconnects_during_a_bind_is_explained(talk):
    talk.connect()
    talk.is_answering = False
    talk.say(ROBOT)
    (sentence,) = notes(talk.session.disconnected("robot:25600", "The robot has gone.", talk.now_s), "lost_connections")
    assert "subsystem 0 (drive), subsystem 1 (lamp)" in sentence


def test_a_connection_is_proven_once_all_binds_are_answered(talk):
    talk.connect()
    assert not talk.session.is_proven
    talk.is_answering = False
    talk.say(ROBOT, codec.BindSuccess(DRIVE))
    assert not talk.session.is_proven
    talk.take(talk.session.receive(b"\0\1\4\0", "robot:25600", talk.now_s))  # undecodable data are no answer
    assert not talk.session.is_proven
    talk.connect()
    talk.say(ROBOT, codec.BindSuccess(DRIVE), codec.BindFailure(LAMP))
    assert talk.session.is_proven
    talk.session.disconnected("robot:25600", "The robot has gone.", talk.now_s)
    talk.connect()
    assert not talk.session.is_proven


def test_the_next_connection_starts_anew_with_a_stop(bound):
    bound.command(FORWARD)
    bound.session.disconnected("robot:25600", "The robot has gone.", bound.now_s)
    bound.run(0.2)
    bound.connect()
    bound.say(ROBOT)
    bound.run(0.3)
    assert bound.packets()[0] == codec.RegisterDriver("me")
    assert bound.speeds() == [STOPPED]


# Requests.


def test_a_pending_bind_fails_when_the_connection_ends(talk):
    talk.connect()
    talk.say(ROBOT)
    talk.ask(talk.session.unbind, LAMP)
    talk.is_answering = False
    talk.ask(talk.session.bind, LAMP)
    actions = talk.session.disconnected("robot:25600", "The robot has gone.", talk.now_s)
    assert [success for success, _ in outcomes(actions)] == [False]


def test_bound_lights_are_switched(bound):
    assert outcomes(bound.ask(bound.session.switch_light, True)) == [(True, ANY)]
    assert codec.LightUpdate(LAMP, True) in bound.heard
    bound.ask(bound.session.unbind, LAMP)
    assert outcomes(bound.ask(bound.session.switch_light, True)) == [(False, ANY)]


@pytest.mark.parametrize("task", ["bind", "unbind", "switch_light"])
def test_requests_without_a_connection_or_from_before_a_stall_are_refused(bound, task):
    bound.session.fresh_since_s = bound.now_s
    (answer,) = outcomes(bound.ask(getattr(bound.session, task), LAMP, asked_s=bound.now_s - 0.1))
    assert answer[0] is False
    assert "call again" in answer[1]
    bound.session.disconnected("robot:25600", "The robot has gone.", bound.now_s)
    assert outcomes(bound.ask(getattr(bound.session, task), LAMP)) == [(False, NOT_CONNECTED)]
    assert bound.packets() == []


# Published events.


def test_an_unreadable_list_of_sensors_is_published_as_empty(talk):
    talk.connect()
    actions = talk.take(talk.session.receive(b"\0\3\7\0\1\0", "robot:25600", talk.now_s))
    assert "0x07" in notes(actions, "unreadable_lists")[0]
    lists = kind(talk.say(ROBOT), Lists)[-1]
    assert lists.sensors == codec.SensorInfo(())
    assert lists.bound == {DRIVE, LAMP}


def test_lists_are_published_after_a_change_and_at_the_end(talk):
    talk.connect()
    talk.is_answering = False
    (lists,) = kind(talk.say(ROBOT), Lists)
    assert ([each.name for each in lists.subsystems.subsystems], lists.bound) == (["drive", "lamp"], frozenset())
    (lists,) = kind(talk.say(codec.SubsystemBound(DRIVE, "me"), codec.BindSuccess(DRIVE)), Lists)
    assert (lists.subsystems.subsystems[DRIVE].driver, lists.bound) == ("me", {DRIVE})
    actions = talk.say(codec.SensorInfo((codec.Sensor(codec.SensorType.NULL, "none"),)))
    assert len(kind(actions + talk.run(0.1), Lists)) == 1
    actions = talk.session.disconnected("robot:25600", "The robot has gone.", talk.now_s)
    (lists,) = kind(actions, Lists)
    assert (lists.subsystems.subsystems[DRIVE].driver, lists.bound) == ("", frozenset())


def test_packets_of_the_robot_are_published_and_counted(bound):
    said = (
        codec.FirmwareInfo("scripted", "0.1", 2),
        codec.LogMessage("the track squeaks"),
        codec.SensorInfo((codec.Sensor(1, "pack", 9_000, 12_000),)),
        codec.SensorUpdate((codec.SensorReading(0, 9_100),)),
    )
    actions = bound.say(*said)
    assert [message for message in published(actions) if message in said] == list(said)
    assert len(notes(actions, "packets")) == len(said)


def test_readings_before_the_list_of_this_connection_are_ignored(bound):
    """The robot may have been replaced."""
    bound.say(codec.SensorInfo((codec.Sensor(1, "pack", 9_000, 12_000),)))
    bound.session.disconnected("robot:25600", "The robot has gone.", bound.now_s)
    bound.connect()
    assert kind(bound.say(codec.SensorUpdate((codec.SensorReading(0, 9_100),))), codec.SensorUpdate) == []


def test_motion_is_integrated_at_each_change_and_published_periodically(bound):
    actions = bound.run(0.223)
    actions += bound.command(FORWARD)
    actions += bound.run(0.317)
    actions += bound.command(BACK)
    actions += bound.run(0.1)
    actions += bound.command(STOPPED)
    actions += bound.run(0.1)
    measured = kind(actions, Measurement)
    assert len(measured) == pytest.approx(0.74 * ODOMETRY_RATE, abs=1)
    way = pytest.approx(0.317 * 1024 - 0.1 * 512, abs=0.1 * 512)  # until it has acknowledged the stop
    assert measured[-1] == Measurement(position=(way, 0.0, 0.0), yaw=0.0, velocity=STILL)
    assert bound.measurements[-len(measured) :] == measured, "the limits have them, too"


def test_odometry_continues_on_the_next_connection(bound):
    bound.command(FORWARD)
    bound.run(0.3)
    way = bound.measurements[-1].position[0]
    bound.session.disconnected("robot:25600", "The robot has gone.", bound.now_s)
    bound.now_s += 5.0
    bound.connect()
    (*_, measured) = kind(bound.run(0.2), Measurement)
    assert measured.position[0] == pytest.approx(way, abs=0.05 * 1024)


def test_an_obstruction_is_reported_once_and_ends_with_the_connection(talk):
    talk.connect()
    talk.is_answering = False
    talk.say(ROBOT)
    actions = talk.say(codec.SubsystemBound(DRIVE, "bob"), codec.BindFailure(DRIVE))
    actions += talk.run(0.5)
    (problem,) = kind(actions, Problem)
    assert problem.name == OBSTRUCTION
    assert "'bob'" in problem.sentence
    actions = talk.session.disconnected("robot:25600", "The robot has gone.", talk.now_s)
    assert kind(actions, Problem) == [Problem(OBSTRUCTION, None)]


def test_a_robot_that_does_not_answer_is_said_to_perhaps_move(bound):
    bound.command(FORWARD)
    bound.run(0.1)
    bound.is_answering = False
    actions = bound.command(STOPPED) + bound.run(ANSWER_TIMEOUT_S + 0.2)
    assert [each.name for each in kind(actions, Problem)] == [STANDSTILL]
    assert "may still be moving" in kind(actions, Problem)[0].sentence
    assert bound.session.undrivable
    assert kind(actions, Measurement)[-1].velocity != STILL
    actions = []
    for packet in [packet for packet in bound.heard if isinstance(packet, codec.KeepAlive)][-30:]:
        actions += bound.say(packet)
    assert kind(actions, Problem) == [Problem(STANDSTILL, None)]


def test_a_subsystem_that_has_moved_in_the_list_is_bound_again_and_stopped(bound):
    """Such as after another brick of an NXT adapter has gone. The robot still lists this driver."""
    bound.command(FORWARD)
    bound.wire, bound.heard = codec.RobotConnection([2, 1]), []
    bound.say(codec.SubsystemInfo((codec.Subsystem(2, "lamp", "me"), codec.Subsystem(1, "drive", "me"))))
    bound.run(COMMAND_TIMEOUT_S + 0.1)
    assert [each.id for each in bound.heard if isinstance(each, codec.BindSubsystem)] == [0, 1]
    assert {each.id for each in bound.heard if isinstance(each, codec.SkidSteerUpdate)} == {1}
    assert bound.speeds()[0] == bound.speeds()[-1] == codec.STOPPED


def test_a_bind_of_an_unlisted_subsystem_is_refused(bound):
    (answer,) = outcomes(bound.ask(bound.session.bind, 9))
    assert answer == (False, ANY)
    assert "subsystem 9" in answer[1].lower()
