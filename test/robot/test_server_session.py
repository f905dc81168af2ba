# SPDX-License-Identifier: Apache-2.0
"""RobotSession of robot_server, in isolation, with a fake clock."""

import pytest
from session_talk import SessionTalk, notes, published
from verbs import by_session, verbs

from drone_bridge.robot import codec
from drone_bridge.robot.codec import STOPPED, Speeds
from drone_bridge.robot.vehicle.device.control import MAX_DRIVERS
from drone_bridge.robot.vehicle.device.dialects import RobotDialect
from drone_bridge.robot.vehicle.device.vehicle import DrivenSubsystem
from drone_bridge.robot.vehicle.session.drive_commands import STOPS
from drone_bridge.robot.vehicle.session.listing import Listing
from drone_bridge.robot.vehicle.session.robot import (
    DROPPED_DRIVERS,
    FIRST_MESSAGE_S,
    REFUSED_UPDATES,
    ROBOT_GONE,
    SILENT_DRIVERS,
    RobotParameters,
    RobotSession,
)
from drone_bridge.robot.vehicle.session.sensor_values import GATHER_S
from drone_bridge.session.session import AFTER_STALLS, Close, Send

LIGHT, TRACKS = 0, 1
TRACK_MOTORS = (codec.MotorSensors(0, 0, 0, 0),) * 2
SUBSYSTEMS = (
    DrivenSubsystem(codec.SubsystemType.LIGHTS, "headlight"),
    DrivenSubsystem(codec.SubsystemType.SKID_STEER, "tracks", TRACK_MOTORS),
)
LISTING = Listing(
    SUBSYSTEMS,
    (
        codec.Sensor(codec.SensorType.BATTERY, "battery", full_voltage_mv=24_000),
        codec.Sensor(codec.SensorType.THERMOMETER, "left"),
    ),
)
FORWARD = codec.SkidSteerUpdate(TRACKS, 512, 512)
ASKER = ("127.0.0.1", 5000)
WALL_MS = 1_800_000_000_000


class Driver:
    """Driver's side of the wire."""

    def __init__(self, talk, peer):
        self._talk, self.peer, self.wire = talk, peer, codec.DriverConnection()
        self.heard, self.is_closed = [], False

    def take(self, action):
        if isinstance(action, Send) and action.to == self.peer:
            assert not self.is_closed
            self.wire.receive_data(action.data)
            while (event := self.wire.next_event()) is not codec.NEED_DATA:
                self.heard.append(event)
        elif action == Close(self.peer):
            self.is_closed = True

    def say(self, *packets):
        return self._talk.receive(b"".join(map(self.wire.send, packets)), self.peer)

    def alive(self):
        return self.say(codec.KeepAlive(self._talk.wall_ms()))

    def leave(self):
        return self._talk.take(self._talk.session.disconnected(self.peer, "It has gone.", self._talk.now_s))

    def bind(self, *numbers):
        self.say(codec.RegisterDriver(self.peer), *map(codec.BindSubsystem, numbers))
        assert all(codec.BindSuccess(number) in self.heard for number in numbers)
        return self

    def kinds(self):
        return [type(event) for event in self.heard]

    def logged(self):
        return [event.text for event in self.heard if isinstance(event, codec.LogMessage)]


class Talk(SessionTalk):
    """Session of a robot, its parameters and its drivers."""

    def __init__(self, listing=LISTING, dialect=RobotDialect.DOCUMENT, is_silent=False, **parameters):
        defaults = {"command_timeout": 1.0, "driver_timeout": 4.0, "sensor_period": 0.1}
        self.parameters = RobotParameters(**{**defaults, **parameters})
        self.drivers = []
        super().__init__(RobotSession("shelly", self.parameters, self.wall_ms, listing, dialect, is_silent=is_silent))
        self.session.opened(self.now_s)

    def wall_ms(self):
        return WALL_MS + round(1000 * self.now_s)

    def take(self, actions):
        for action in actions:
            for driver in self.drivers:
                driver.take(action)
        return list(actions)

    def connect(self, name="alice"):
        self.drivers.append(Driver(self, name))
        self.take(self.session.connected(name, self.now_s))
        return self.drivers[-1]

    def receive(self, data, peer):
        return self.take(self.session.receive(data, peer, self.now_s))

    def values(self, **values):
        return self.take(self.session.take({int(n[1:]): value for n, value in values.items()}, self.now_s))

    def follow(self, listing, **options):
        return self.take(self.session.follow(listing, self.now_s, **options))


@pytest.fixture
def talk():
    return Talk()


@pytest.fixture
def alice(talk):
    return talk.connect("alice")


@pytest.fixture
def driving(talk, alice):
    """Return the driver alice, who drives."""
    alice.bind(TRACKS)
    assert published(alice.say(FORWARD)) == [Speeds(512, 512)]
    alice.heard.clear()
    return alice


# Driving.


def test_update_is_published_at_once_and_repeated_for_an_active_driver(talk, driving):
    for _ in range(10):
        assert published(talk.run(0.4)) == [Speeds(512, 512)] * 8
        driving.alive()


def test_speeds_beyond_full_speed_are_clamped(talk, driving):
    talk.run(0.12)
    assert published(talk.receive(bytes.fromhex("0006 05 0001 7fff 8000"), "alice")) == [Speeds(2048, -2048)]


@pytest.mark.parametrize("how", ["closes", "unbinds", "talks nonsense", "is cut short"])
def test_motors_stop_on_driver_disconnect_and_can_be_bound_again(talk, driving, how):
    bob = talk.connect("bob")
    if how == "closes":
        actions = driving.leave()
    elif how == "unbinds":
        actions = driving.say(codec.UnbindSubsystem(TRACKS))
    elif how == "talks nonsense":
        actions = talk.receive(bytes.fromhex("0003 04 000000"), "alice")
        assert "closed" in notes(actions, "rejected_input")[0]
        assert driving.is_closed
    else:
        driving.say()
        talk.receive(b"\0\4", "alice")
        actions = driving.leave()
        assert len(notes(actions, "rejected_input")) == 1
    assert published(actions) == [STOPPED]
    assert published(talk.run(1.0)) == [STOPPED] * (STOPS - 1)
    assert codec.SubsystemBound(TRACKS, "") in bob.heard
    bob.bind(TRACKS)


def test_only_the_binding_driver_switches_lights(talk, alice):
    alice.bind(LIGHT)
    update = codec.LightUpdate(LIGHT, True)
    assert published(alice.say(update)) == [update]
    assert published(talk.connect("bob").say(update)) == []


# Silence.


def test_silent_driver_is_halted_and_resumes_with_its_next_update(talk, driving):
    actions = talk.run(3.0)
    assert published(actions)[-STOPS:] == [STOPPED] * STOPS
    assert published(actions)[:-STOPS] == [Speeds(512, 512)] * 20
    assert len(notes(actions, SILENT_DRIVERS)) == 1
    assert [line.endswith("{tracks} safe mode") for line in driving.logged()] == [True]
    assert published(driving.say(FORWARD)) == [Speeds(512, 512)]  # at once, as it sends no keep-alives


def test_a_driver_that_drives_again_is_halted_again(talk, driving):
    talk.run(1.1)
    assert published(driving.say(FORWARD))[-1] == Speeds(512, 512)
    assert published(talk.run(1.1))[-1] == STOPPED


def test_a_driver_is_halted_right_after_the_timeout(talk, driving):
    talk.parameters.command_timeout = 0.33
    driving.alive()
    assert STOPPED not in published(talk.run(0.33))
    assert STOPPED in published(talk.run(0.01))


def test_a_silent_driver_is_eventually_dropped_and_its_subsystems_freed(talk, driving):
    actions = talk.run(4.5)
    assert driving.is_closed
    (sentence,) = notes(actions, DROPPED_DRIVERS)
    assert "alice" in sentence
    talk.connect("bob").bind(TRACKS)
    assert talk.session.peer == "bob"


def test_silent_driver_without_subsystems_stays_until_its_place_is_needed(talk):
    """Keep-alives are not required before driving."""
    idle = [talk.connect(f"d{number}") for number in range(MAX_DRIVERS)]
    for driver in idle[1:]:
        driver.alive()
    idle[0].leave()
    talk.run(5.0)
    assert not any(driver.is_closed for driver in idle[1:])
    talk.connect("late").alive()
    talk.run(0.5)
    assert all(driver.is_closed for driver in idle[1:])


def test_a_changed_driver_timeout_applies_at_once(talk, driving):
    talk.parameters.driver_timeout = 0.5
    talk.run(0.8)
    assert driving.is_closed


def test_only_drivers_without_a_whole_packet_drop_without_driver_timeout(talk, driving):
    talk.parameters.driver_timeout = 0.0
    mute, slow = talk.connect("mute"), talk.connect("slow")
    slow.alive()
    for byte in b"\0\x08":
        assert not mute.is_closed
        talk.receive(bytes([byte]), "slow")
        talk.run(0.5 * FIRST_MESSAGE_S + 0.1)
    assert (mute.is_closed, slow.is_closed, driving.is_closed) == (True, True, False)


def test_a_driver_that_loses_its_place_to_a_new_one_is_stopped(talk, driving):
    talk.parameters.driver_timeout = 0.0
    others = [talk.connect(f"d{number}") for number in range(MAX_DRIVERS - 1)]
    talk.run(0.9)
    for driver in others:
        driver.alive()
    assert talk.connect("carol").is_closed
    talk.now_s += 0.2
    actions = talk.take(talk.session.connected("dave", talk.now_s))
    assert driving.is_closed
    assert published(actions) == [STOPPED]


# Stalls, faults and shutdown.


def test_stall_stops_all_motors_until_new_packets_without_disconnecting(talk, driving):
    mute = talk.connect("mute")
    actions = talk.stall(30.0)
    assert published(actions) == [STOPPED]
    assert len(notes(actions, AFTER_STALLS)) == 1
    assert talk.session.silent_s(talk.now_s) == 0.0
    talk.run(0.5)
    assert published(driving.say(codec.KeepAlive(1))) == []
    assert published(driving.say(codec.SkidSteerUpdate(TRACKS, 8, 8))) == [Speeds(8, 8)]
    talk.run(0.9)
    assert [driving.is_closed, mute.is_closed] == [False, False]
    assert 0.0 < talk.session.silent_s(talk.now_s) < 2.0


def test_the_end_publishes_a_stop_a_few_times_and_disconnects_all_drivers(talk, driving):
    actions = talk.take(talk.session.end(talk.now_s))
    assert (published(actions), driving.is_closed, talk.session.is_over) == ([STOPPED], True, False)
    assert published(talk.run(1.0)) == [STOPPED] * (STOPS - 1)
    assert talk.session.is_over


def test_the_end_is_immediate_without_motion(talk, alice):
    assert published(talk.session.end(talk.now_s)) == []
    assert talk.session.is_over


def test_a_fault_stops_and_disconnects_and_drivers_may_reconnect(talk, driving):
    assert published(talk.take(talk.session.lost(talk.now_s))) == [STOPPED]
    assert (driving.is_closed, talk.session.is_open) == (True, False)
    talk.session.opened(talk.now_s)
    talk.connect("bob").bind(TRACKS)


# Sensors and the log.


def test_values_are_sent_once_to_all_and_unknown_ones_listed_as_null(talk, alice):
    bob = talk.connect("bob")
    alice.say(codec.QuerySubsystems())
    assert [sensor.type for sensor in alice.heard[0].sensors] == [0, 0]
    talk.values(_0=24_125)
    assert bob.heard == []
    talk.run(GATHER_S)
    assert bob.heard[0].sensors[0].value == 24_125
    assert bob.heard[1:] == [codec.SensorUpdate((codec.SensorReading(0, 24_125),))]
    talk.run(3.0)
    assert len(bob.heard) == 2
    talk.values(_0=None)
    alice.heard.clear()
    alice.say(codec.QuerySubsystems())
    assert alice.heard[0].sensors[0].type == 0


def test_simultaneous_values_share_a_packet_and_packets_are_rate_limited(talk, alice):
    talk.values(_0=1)
    talk.run(0.01)
    talk.values(_1=2)
    talk.values(_0=3)
    talk.run(0.01)
    assert alice.heard == [codec.SensorUpdate((codec.SensorReading(0, 3), codec.SensorReading(1, 2)))]
    talk.values(_0=4)
    talk.run(0.099)
    assert len(alice.heard) == 1
    talk.run(0.002)
    assert len(alice.heard) == 2


def test_a_stale_value_is_not_listed_as_current(talk, alice):
    talk.values(_0=24_000)
    for after_s, type_ in ((4.9, 1), (0.2, 0)):
        talk.parameters.driver_timeout = 0.0
        talk.run(after_s)
        alice.heard.clear()
        alice.say(codec.QuerySubsystems())
        assert alice.heard[0].sensors[0].type == type_


LIT, FAST = codec.LightUpdate(LIGHT, True), codec.SkidSteerUpdate(TRACKS, 2048, -512)
#: By the specification: each packet that moves, stops or lights. Its driver has bound the tracks, and not the light.
VERBS = {
    FORWARD: Speeds(512, 512), codec.SkidSteerUpdate(TRACKS, 0, 0): STOPPED, FAST: Speeds(2048, -512),
    codec.UnbindSubsystem(TRACKS): STOPPED, LIT: REFUSED_UPDATES,
}  # fmt: skip


@verbs(VERBS)
def test_each_verb_is_executed_or_refused(talk, alice, sent, meaning):
    alice.bind(TRACKS)
    if meaning == [STOPPED]:
        alice.say(FORWARD)
    assert by_session(alice.say(sent), REFUSED_UPDATES) == meaning


def test_updates_of_what_is_not_bound_are_counted_and_logged_once(talk, alice):
    actions = [each for _ in range(3) for each in alice.say(FORWARD)]
    assert by_session(actions, REFUSED_UPDATES) == [REFUSED_UPDATES] * 3
    (sentence,) = notes(actions, "")
    assert f"subsystem {TRACKS}, which it has not bound" in sentence


def test_a_value_of_an_unlisted_sensor_is_ignored(talk, alice):
    talk.values(_7=1)
    talk.run(1.0)
    assert alice.heard == []


def test_the_silence_of_drivers_counts_from_their_connection(talk):
    talk.run(9.0)
    talk.connect("mute")
    talk.run(2.0)
    assert talk.session.silent_s(talk.now_s) == pytest.approx(2.0)


# A robot behind a bridge.


def test_without_a_robot_drivers_are_disconnected_and_discovery_is_silent(talk, driving):
    actions = talk.follow(None)
    assert (published(actions), driving.is_closed) == ([STOPPED], True)
    assert any(ROBOT_GONE in each for each in notes(actions, ""))
    assert talk.connect("bob").is_closed
    assert talk.session.receive(codec.DISCOVERY_QUERY, ASKER, talk.now_s) == []
    talk.follow(LISTING)
    assert not talk.connect("carol").is_closed


def test_another_robot_disconnects_drivers_and_a_changed_holder_does_not(talk, driving):
    taken = Listing((SUBSYSTEMS[0], DrivenSubsystem(2, "beacon")), LISTING.sensors)
    talk.follow(taken)
    assert driving.is_closed


def test_values_before_the_first_list_are_kept():
    """Some robots send them only once."""
    talk = Talk(listing=None)
    talk.values(_0=1)
    talk.follow(LISTING)
    alice = talk.connect("alice")
    alice.say(codec.QuerySubsystems())
    assert alice.heard[0].sensors[0].value == 1


def test_a_subsystem_lost_by_the_bridge_is_lost_by_its_driver(talk, driving):
    theirs = DrivenSubsystem(
        codec.SubsystemType.SKID_STEER, "tracks", TRACK_MOTORS, is_available=False, other_driver="bob"
    )
    actions = talk.follow(Listing((SUBSYSTEMS[0], theirs), LISTING.sensors))
    assert (published(actions), driving.is_closed) == ([STOPPED], False)
    assert codec.SubsystemBound(TRACKS, "") in driving.heard
    assert published(driving.say(FORWARD, codec.BindSubsystem(TRACKS), codec.QuerySubsystems())) == []
    assert codec.BindFailure(TRACKS) in driving.heard
    (info,) = [packet for packet in driving.heard if isinstance(packet, codec.SubsystemInfo)]
    assert info.subsystems[TRACKS].driver == "bob"


def test_keep_alives_of_a_silent_robot_are_not_answered():
    """It may be silent from the start."""
    talk = Talk(is_silent=True)
    alice = talk.connect("alice")
    alice.say(codec.KeepAlive(1), codec.QuerySubsystems())
    assert set(alice.kinds()) == {codec.SensorInfo, codec.SubsystemInfo, codec.FirmwareInfo}
    talk.follow(LISTING)
    alice.say(codec.KeepAlive(2))
    assert alice.heard[-1] == codec.KeepAlive(2)
    talk.follow(LISTING, is_silent=True)
    alice.say(codec.KeepAlive(3))
    assert alice.heard[-1] == codec.KeepAlive(2)


# Discovery.


def test_a_discovery_request_is_answered_at_its_source(talk):
    actions = talk.session.receive(codec.DISCOVERY_QUERY, ASKER, talk.now_s)
    assert [action for action in actions if isinstance(action, Send)] == [Send(b"shelly", ASKER)]
    (sentence,) = notes(actions, "")
    assert "127.0.0.1:5000" in sentence


# Dialects and reports.


def test_robotd_stops_on_a_stale_keep_alive_and_announces_no_release():
    talk = Talk(dialect=RobotDialect.ROBOTD_1_2)
    alice, bob = talk.connect("alice").bind(TRACKS), talk.connect("bob")
    alice.say(FORWARD)
    assert published(alice.say(codec.KeepAlive(0))) == [STOPPED]
    alice.leave()
    assert any(line.endswith("[alice] lost connection") for line in bob.logged())
    assert codec.SubsystemBound not in bob.kinds()
    bob.bind(TRACKS)
    actions = bob.say(codec.BindSubsystem(9))
    assert bob.is_closed
    assert any("subsystem 9" in each for each in notes(actions, ""))


def test_holdings_name_the_drivers_and_their_subsystems(talk, driving):
    talk.connect("bob")
    assert (talk.session.peer, talk.session.holdings) == ("alice, bob", "alice: tracks; bob: nothing")
    assert (talk.session.state, talk.session.is_open) == ("listening", True)
    talk.run(0.5)
    assert talk.session.silent_s(talk.now_s) == pytest.approx(0.5)
    driving.alive()
    assert talk.session.silent_s(talk.now_s) == 0.0
    for driver in talk.drivers:
        driver.leave()
    assert (talk.session.peer, talk.session.holdings, talk.session.is_open) == ("", "", False)
    assert talk.session.silent_s(talk.now_s + 9.0) == 0.0
