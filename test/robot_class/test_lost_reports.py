# SPDX-License-Identifier: Apache-2.0
"""Landing of a robot in one class whose reports have ceased, by the client's session, with a fake clock."""

import pytest
from last_words import sent_by_end, words_of
from limited_vehicle import LANDS_AFTER_S, LimitedVehicle, landing_state
from own_robots import Tello
from robot_class_talk import ClientTalk, counters, data_of

from drone_bridge.motion.limits import LONGEST_LANDING_S, LimitParameters
from drone_bridge.robot_class import BodyVelocity, Delimited, Robot, Tcp, Telemetry
from drone_bridge.robot_class.client_requests import LAND_S
from drone_bridge.robot_class.client_session import CONNECTED, GREETING
from drone_bridge.session.arbiter import Arrival
from drone_bridge.session.clients import LOST
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.hold_state import CALLED
from drone_bridge.session.report_watch import ReportWatch
from drone_bridge.session.session import Landing

STATE_AT = b"pitch:0;roll:0;yaw:0;vgx:0;vgy:0;vgz:0;temph:62;tof:6553;h:%d;bat:%d;time:%d;agx:0;agy:0;agz:-999;\r\n"
NEUTRAL, SINKS, LAND = b"0\n", b"-0.5\n", b"land\n"


class Kite(Robot):
    """Drone on a stream without a request to land."""

    name, control, model, max_speeds = "kite", Tcp(1, Delimited(b"\n")), "drone", {"z": 1.0}

    def handshake(self):
        yield b"hello\n", lambda packet: packet == b"hi\n"

    def encode_command(self, velocity):
        return b"%g\n" % velocity.up

    def decode_report(self, packet):
        return Telemetry(height=float(packet)) if packet != b"hi\n" else None


class Owl(Kite):
    """The same with such a request."""

    name, requests = "owl", {"land": LAND}


class Balloon(Kite):
    """Drone that can't be commanded to descend."""

    name, max_speeds = "balloon", {"yaw": 1.0}


class LandingTalk(ClientTalk):
    """Session with limits, and a robot that answers only if the test does."""

    def __init__(self, robot):
        self.vehicle = LimitedVehicle(lambda: self.now_s, sinks="z" in robot.axes and "land" not in robot.requests)
        arbiter, self.watch = self.vehicle.arbiter, ReportWatch()
        super().__init__(robot, arbiter, feedback=Feedback(self.vehicle.observed, arbiter.limits), watch=self.watch)

    def fly(self, answer, report, source="robot"):
        """Connect and report once."""
        self.connect(answer)
        self.hear(report, source)
        self.vehicle.report()
        assert self.session.state == CONNECTED


@pytest.fixture
def tello():
    talk = LandingTalk(Tello)
    talk.lands_at = talk.fly(b"ok", STATE_AT % (200, 87, 0), "state")
    return talk


def test_a_silent_robot_on_datagrams_lands_while_it_is_greeted_again(tello):
    before = tello.sends(LANDS_AFTER_S - 0.1)
    assert b"land" not in before
    assert tello.session.state == GREETING
    actions = tello.run(20.0)
    assert LOST not in counters(actions), "it is counted once"
    landing = data_of(actions)
    assert landing.count(b"land") == pytest.approx(20.0 / LAND_S, abs=1)
    assert landing.count(b"command") == pytest.approx(20.0 / 0.5, abs=3), "it is still greeted"
    assert landing_state(tello) == (True, Landing.LANDS)


def test_a_landing_ends_with_reports_or_after_a_minute(tello):
    assert tello.sends(1000.0).count(b"land") == pytest.approx(LONGEST_LANDING_S / LAND_S, abs=2)
    tello.hear(b"ok")
    tello.vehicle.report()
    assert not landing_state(tello)[0]
    assert b"land" not in tello.sends(LANDS_AFTER_S - 0.1)


@pytest.mark.parametrize(("reason", "lands"), [("STOP", False), (CALLED, True)])
def test_a_held_silent_robot_that_flew_is_landed_only_if_a_program_holds_it(tello, reason, lands):
    tello.vehicle.hold.hold(reason)
    assert (b"land" in tello.sends(20.0)) is lands


def fly_on(tello, height, seconds):
    """Let a drone report its height, cm, and a full battery or an empty one on the ground. Return the commands."""
    commands = []
    for _ in range(round(10 * seconds)):
        tello.hear(STATE_AT % (height, 87 if height else 10, tello.now_s if height else 0), "state")
        commands += tello.sends(0.1)
    return commands


def test_a_drone_that_nobody_commands_is_landed_by_its_request(tello):
    limits = tello.vehicle.arbiter.limits
    limits.parameters = LimitParameters(land_unattended=Tello.land_unattended_s)
    assert b"land" not in fly_on(tello, 0, 30.0)
    assert b"land" not in fly_on(tello, 70, Tello.land_unattended_s - 0.2)
    tello.vehicle.arbiter.put(Arrival(BodyVelocity(), tello.now_s))
    assert b"land" not in fly_on(tello, 70, Tello.land_unattended_s - 0.2)
    assert b"land" in fly_on(tello, 70, 1.0)


@pytest.mark.parametrize("reason", [CALLED, "Anne pressed STOP"])
def test_a_held_drone_on_a_bench_with_an_empty_battery_gets_only_neutral(tello, reason):
    limits = tello.vehicle.arbiter.limits
    limits.parameters = LimitParameters(land_unattended=15.0, low_battery=0.2, land_on_low_battery=True)
    tello.vehicle.hold.hold(reason)
    fly_on(tello, 0, 0.2)
    assert set(fly_on(tello, 0, 100.0)) == {b"rc 0 0 0 0"}
    assert limits.is_battery_low(tello.now_s)


@pytest.mark.parametrize(("robot", "command"), [(Kite, SINKS), (Owl, LAND)])
def test_a_silent_robot_lands_on_a_reopened_stream(robot, command):
    talk = LandingTalk(robot)
    talk.fly(b"hi\n", b"2\n")
    lost = talk.sends(LANDS_AFTER_S - 1.0)
    assert lost[-1] == NEUTRAL
    assert talk.session.landing(talk.now_s) is Landing.DISCONNECTED
    assert data_of(talk.connect()) == [b"hello\n"], "no landing before it is due"
    landing = talk.sends(3.5)
    assert command in landing
    assert b"hello\n" in landing
    assert landing_state(talk) == (True, Landing.DISCONNECTED), "the stream was closed again"
    talk.connect()
    assert command in talk.sends(2.0)
    assert landing_state(talk) == (True, Landing.LANDS)
    talk.hear(b"hi\n")
    talk.vehicle.report()
    assert command not in talk.sends(1.0)


@pytest.mark.parametrize("robot", [Kite, Owl])
def test_a_hold_during_the_landing_of_a_greeted_robot_is_neutral(robot):
    talk = LandingTalk(robot)
    talk.fly(b"hi\n", b"2\n")
    talk.run(LANDS_AFTER_S)
    talk.connect()
    talk.run(1.0)
    talk.vehicle.hold.hold("STOP")
    assert [each for each in talk.sends(1.0) if each != b"hello\n"] == [NEUTRAL]


def test_an_hour_later_a_new_connection_starts_without_a_landing():
    talk = LandingTalk(Kite)
    talk.fly(b"hi\n", b"2\n")
    talk.disconnect()
    talk.now_s += 3600.0
    talk.connect(b"hi\n")
    assert set(talk.sends(2.0)) == {NEUTRAL}


def test_a_robot_without_a_way_down_says_so():
    talk = LandingTalk(Balloon)
    talk.fly(b"hi\n", b"2\n")
    assert talk.session.landing(talk.now_s) is Landing.UNSUPPORTED


@pytest.mark.parametrize("is_held", [False, True])
def test_constant_height_in_a_climb_is_noticed_and_limits_nothing(is_held):
    talk = LandingTalk(Kite)
    talk.fly(b"hi\n", b"2\n")
    if is_held:
        talk.vehicle.hold.hold("STOP")
    climbing = []
    for _ in range(50):
        talk.vehicle.arbiter.put(Arrival(BodyVelocity(up=0.5), talk.now_s))
        climbing += talk.sends(0.1)
        talk.vehicle.report()
        talk.hear(b"2\n")
    assert bool(talk.watch.reasons(talk.now_s)) is not is_held
    assert climbing[-1] == (NEUTRAL if is_held else b"0.5\n")


class Sparrow(Kite):
    """Drone that reports the numbers of each packet, separated by spaces: x, yaw, velocity and height."""

    name, max_speeds = "sparrow", {"x": 1.0, "z": 1.0}

    def decode_report(self, packet):
        if packet == b"hi\n":
            return None
        x, yaw, forward, height = map(float, packet.split())
        return Telemetry((x, 0.0, 7.0), yaw, BodyVelocity(forward), height=height)


@pytest.mark.parametrize(
    ("packet", "known"),
    [
        (b"1 0 0.5 2\n", {"position", "yaw", "ground"}),
        (b"nan 0 nan 2\n", {"yaw"}),
        (b"nan 0 0.5 2\n", {"position", "yaw", "ground"}),
        (b"1 nan 0.5 2\n", {"position", "ground"}),
        (b"1 0 0.5 nan\n", {"position", "yaw"}),
        (b"nan nan nan nan\n", set()),
    ],
)
def test_a_report_renews_only_the_numbers_that_it_has(packet, known):
    talk = LandingTalk(Sparrow)
    talk.connect(b"hi\n", b"0 0 0.5 2\n")
    talk.now_s += 0.4
    talk.hear(packet)
    motion = talk.vehicle.observed.newest
    times = {"position": motion.position_at, "yaw": motion.yaw_at, "ground": motion.ground_at}
    assert {name for name, reported_at in times.items() if reported_at == talk.now_s} == known
    assert (motion.yaw, motion.ground) == (0.0, 5.0)
    assert motion.position[0] == pytest.approx({b"1": 1.0, b"n": 0.2 if b"0.5" in packet else 0.0}[packet[:1]])


def test_a_landing_during_the_greeting_ends_with_neutral_as_the_link_does():
    """By the session, and by its last words."""
    for by_link in (False, True):
        talk = LandingTalk(Kite)
        talk.fly(b"hi\n", b"2\n")
        talk.run(3.2)
        talk.run(LANDS_AFTER_S)
        talk.connect()
        assert talk.sends(0.6)[-1] == SINKS
        assert talk.session.state == GREETING
        assert words_of(talk.session) == [NEUTRAL]
        if by_link:
            assert talk.sends(3.0)[-1] == NEUTRAL
        else:
            assert sent_by_end(talk.session, talk.now_s) == [NEUTRAL]
