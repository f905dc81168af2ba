# SPDX-License-Identifier: Apache-2.0
"""What makes an AR.Drone fly away, and what the session does: the rows of docs/ardrone.md, with options both ways."""

import random
from types import SimpleNamespace

import pytest
from ardrone_talk import OtherClient, Talk
from session_talk import notes

from drone_bridge.ar_drone.flight import FlightPhase
from drone_bridge.ar_drone.flight_state import MAJOR_STATE_SHIFT
from drone_bridge.ardrone import codec
from drone_bridge.ardrone.codec.commands import read_line
from drone_bridge.ardrone.codec.navdata import demo_option, write_navdata
from drone_bridge.ardrone.session.emergency import PRESS_S
from drone_bridge.ardrone.session.settings import WantedSetting
from drone_bridge.ardrone.vehicle.device import EmulatedArdrone, FirmwareBehaviour
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.net.link_loop import OUTDATED
from drone_bridge.session.session import EMERGENCY_AGE_S, Send

FORWARD = Shares(pitch=0.5)
#: In a command with number 1.
FIRST = b"=1,"


@pytest.fixture
def talk():
    return Talk().flying()


def say_last_words(talk):
    """Let the child of the bridge stop the drone, as in a stall."""
    if words := talk.session.last_words():
        for data in words.neutral:
            talk.drone.receive(data, talk.now_s)
        talk.session.neutral_sent(talk.now_s)


def cut_motors(talk):
    """Call emergency, and wait until it is confirmed."""
    assert talk.ask("emergency")
    talk.run(3.0)


def presses(talk, begin=0):
    """Return the number of edges of the emergency bit."""
    bits = [each.is_emergency for each in talk.sent(talk.actions[begin:]) if isinstance(each, codec.Ref)]
    return sum(now and not before for before, now in zip([False, *bits], bits, strict=False))


# A new client sends the level 0, and lands a flying drone.


@pytest.mark.parametrize("bootstrapped", [True, False])
def test_a_new_bridge_does_not_land_a_flying_drone(bootstrapped):
    talk = Talk().put_in_the_air()
    talk.drone.is_bootstrapped = bootstrapped
    talk.connected()
    talk.run(3.0)
    assert talk.drone.flight.phase is FlightPhase.FLYING
    assert talk.session.requests.level is True
    assert all(each.is_flying for each in talk.sent() if isinstance(each, codec.Ref))


def test_a_new_bridge_stops_a_drone_that_its_predecessor_left_moving():
    talk = Talk().put_in_the_air()
    talk.drone.is_bootstrapped = True
    OtherClient(talk).send(codec.Pcmd(codec.PROGRESSIVE, pitch=-1.0), codec.Ref(True))
    talk.open()
    talk.run(1.0)
    assert talk.drone.flight.is_hovering


@pytest.mark.parametrize("loops", [True, False])
def test_a_new_bridge_leaves_a_drone_on_the_ground_that_reports_looping(loops):
    before = Talk(loops_when_landed=loops).flying()
    land = before.ask("land")
    before.run(8.0)
    assert land.outcome.is_success
    assert before.flights() == [False, True, False]
    assert before.drone.flight.phase is FlightPhase.LANDED
    again = Talk()
    again.drone, again.now_s = before.drone, before.now_s
    again.connected()
    again.run(3.0)
    assert again.session.requests.level is False
    assert again.drone.flight.phase is FlightPhase.LANDED
    assert again.ask("flat_trim").outcome.is_success
    assert again.ask("takeoff").outcome is None  # it takes off


def test_an_adopted_level_is_the_drones_own_where_its_states_differ():
    for state, level in ((codec.State(0), False), (codec.State.START_BUTTON, True), (codec.State.FLYING, True)):
        talk = Talk().open()
        demo = demo_option(
            codec.Demo(codec.FlightState.GOING_TO_FIX << MAJOR_STATE_SHIFT, 90, 0.0, 0.0, 0.0, 0, 0.0, 0.0, 0.0)
        )
        talk.take(
            talk.session.receive(write_navdata(codec.Navdata(state, 1, options=(demo,))), codec.NAVDATA, talk.now_s)
        )
        assert talk.session.requests.level is level


# The drone takes off again while the level is repeated.


@pytest.mark.parametrize("again", [True, False])
def test_after_a_landing_of_its_own_the_drone_stays_on_the_ground(again):
    talk = Talk(takes_off_again=again).flying()
    talk.drone.land_itself()
    talk.run(15.0)
    assert talk.drone.flight.phase is FlightPhase.LANDED
    assert talk.session.requests.level is False
    assert talk.flights() == [False, True, False]


def test_a_landing_by_another_client_is_not_countermanded(talk):
    talk.run(0.3)
    other = OtherClient(talk)
    other.send(codec.Ref())
    talk.run(10.0)
    assert talk.drone.flight.phase is FlightPhase.LANDED


def test_a_takeoff_that_the_drone_refuses_is_withdrawn():
    talk = Talk().connected()
    talk.drone.flight.take_off = lambda: None  # as while it initialises
    request = talk.ask("takeoff")
    talk.run(6.0)
    assert not request.outcome.is_success
    del talk.drone.flight.take_off
    talk.run(3.0)
    assert talk.drone.flight.phase is FlightPhase.LANDED


def test_a_takeoff_whose_answer_is_lost_is_not_repeated_later():
    talk = Talk().connected()
    talk.is_linked = False
    request = talk.ask("takeoff")
    talk.run(6.0)
    assert not request.outcome.is_success
    talk.is_linked = True
    talk.run(3.0)
    assert talk.drone.flight.phase is FlightPhase.LANDED


# The emergency bit toggles.


@pytest.mark.parametrize("ignored", [True, False])
def test_emergency_cuts_the_motors_by_one_press(ignored):
    talk = Talk(fly_ignored_while_pressed=ignored).flying()
    begin = len(talk.actions)
    request = talk.ask("emergency")
    talk.run(3.0)
    assert request.outcome.is_success
    assert talk.drone.flight.phase is FlightPhase.EMERGENCY
    assert presses(talk, begin) == 1
    assert talk.session.requests.level is False


def test_a_second_emergency_presses_nothing_and_keeps_the_motors_off(talk):
    for _ in range(2):
        assert talk.ask("emergency") is not None
    talk.run(1.0)
    third = talk.ask("emergency")
    assert third.outcome.is_success
    talk.run(2.0)
    assert talk.drone.flight.phase is FlightPhase.EMERGENCY
    assert presses(talk) == 1


def test_emergency_in_a_fault_of_the_drones_own_presses_nothing(talk):
    talk.drone.enter_emergency(codec.State.CUTOUT)
    talk.run(0.2)
    assert talk.ask("emergency").outcome.is_success
    talk.run(1.0)
    assert presses(talk) == 0
    assert talk.drone.state & codec.State.EMERGENCY
    assert "propeller" in talk.session.problems[1]


def test_emergency_without_navdata_is_sent_once_and_unconfirmed(talk):
    talk.lose_navdata()
    talk.run(2.0)
    request = talk.ask("emergency")
    talk.run(PRESS_S + 3.0)
    assert "unconfirmed" in request.outcome.sentence
    assert not request.outcome.is_success
    assert talk.drone.flight.phase is FlightPhase.EMERGENCY
    assert presses(talk) == 1
    assert not talk.drone.ref.is_emergency  # released


def test_emergency_before_any_navdata_is_sent():
    talk = Talk().put_in_the_air()
    talk.drone.is_bootstrapped = True
    talk.lose_navdata()
    talk.open()
    talk.run(0.5)
    talk.ask("emergency")
    talk.run(2.0)
    assert talk.drone.flight.phase is FlightPhase.EMERGENCY


def test_an_old_emergency_is_not_carried_out(talk):
    talk.now_s += EMERGENCY_AGE_S + 0.1
    request = talk.ask("emergency")
    request.asked_s = talk.now_s - EMERGENCY_AGE_S - 0.1
    actions = talk.session.ask(request, talk.now_s)
    assert not any(each.is_success for each in actions if hasattr(each, "is_success"))


@pytest.mark.parametrize(("age_s", "is_cut"), [(EMERGENCY_AGE_S - 0.1, True), (EMERGENCY_AGE_S + 0.1, False)])
@pytest.mark.parametrize("has_last_words", [True, False])
@pytest.mark.parametrize("when", ["before it was taken", "as its first packet was sent", "while its packets got lost"])
def test_an_emergency_passes_a_stall_of_up_to_3_s(talk, when, has_last_words, age_s, is_cut):
    talk.loses = lambda data: True
    request = SimpleNamespace(name="emergency", asked_s=talk.now_s, outcome=None)
    end_s = talk.now_s + age_s
    if when != "before it was taken":
        actions = talk.take(talk.session.ask(request, talk.now_s))
        if when == "as its first packet was sent":
            for sent in [each for each in actions if isinstance(each, Send)]:
                talk.session.unsent(sent, OUTDATED, talk.now_s)
        else:
            talk.run(0.1)
    if has_last_words:
        talk.session.neutral_sent(talk.now_s)
    talk.loses = lambda data: False
    talk.stall(end_s - talk.now_s)
    if when == "before it was taken":
        talk.take(talk.session.ask(request, talk.now_s))
    talk.run(2.0)
    assert (talk.drone.flight.phase is FlightPhase.EMERGENCY) == is_cut
    assert request.outcome.is_success == is_cut
    assert not talk.drone.ref.is_emergency  # released
    assert presses(talk) <= 2


@pytest.mark.parametrize("seconds", [0.35, EMERGENCY_AGE_S - 0.1, EMERGENCY_AGE_S + 0.1])
@pytest.mark.parametrize("has_last_words", [True, False])
def test_an_emergency_that_arrived_before_a_stall_is_not_pressed_again(talk, has_last_words, seconds):
    emergency = talk.ask("emergency")
    talk.drone._clients.clear()  # no navdata shows it before the stall
    talk.run(0.05)
    if has_last_words:
        say_last_words(talk)
    talk.stall(seconds)
    talk.run(2.0)
    assert emergency.outcome.is_success
    assert talk.drone.state & codec.State.EMERGENCY
    assert presses(talk) == 1


@pytest.mark.parametrize(("seconds", "is_cut"), [(0.4, True), (EMERGENCY_AGE_S - 0.1, True), (5.0, False)])
@pytest.mark.parametrize("has_last_words", [True, False])
def test_an_emergency_during_a_reset_has_its_own_edge_after_a_stall(has_last_words, seconds, is_cut):
    talk = Talk(emergency_on_ground=True).flying()
    cut_motors(talk)
    talk.lose_navdata()  # so that the press of the reset is still down
    talk.ask("reset")
    talk.run(0.1)
    emergency = talk.ask("emergency")
    if has_last_words:
        say_last_words(talk)
    talk.loses = lambda data: False
    talk.stall(seconds)
    talk.run(2.0)
    assert bool(talk.drone.state & codec.State.EMERGENCY) == is_cut
    assert emergency.outcome.is_success  # the drone is on the ground


def test_an_emergency_after_a_stall_is_not_pressed_again_without_navdata(talk):
    """It may have reached the drone."""
    talk.lose_navdata()
    emergency = talk.ask("emergency")
    talk.run(0.1)
    talk.stall(1.0)
    talk.run(3.0)
    assert "unconfirmed" in emergency.outcome.sentence
    assert talk.drone.flight.phase is FlightPhase.EMERGENCY
    assert presses(talk) == 1


def test_an_emergency_right_after_a_stall_ignores_navdata_from_before_it(talk):
    """Another client has ended the emergency meanwhile, and flies."""
    cut_motors(talk)
    talk.drone.is_emergency = False
    talk.put_in_the_air()
    talk.stall(1.0)
    emergency = talk.ask("emergency")
    assert emergency.outcome is None
    talk.run(2.0)
    assert talk.drone.flight.phase is FlightPhase.EMERGENCY
    assert emergency.outcome.is_success


@pytest.mark.parametrize("seconds", [0.35, EMERGENCY_AGE_S - 0.5])
@pytest.mark.parametrize("has_last_words", [True, False])
@pytest.mark.parametrize("is_seen", [True, False])
def test_an_emergency_that_is_called_again_right_after_a_stall_is_not_ended(talk, is_seen, has_last_words, seconds):
    talk.ask("emergency")
    if not is_seen:
        talk.drone._clients.clear()
    talk.run(0.05)
    if has_last_words and talk.session.last_words():
        say_last_words(talk)
    talk.stall(seconds)
    again = talk.ask("emergency")
    talk.run(2.0)
    assert again.outcome.is_success
    assert talk.drone.state & codec.State.EMERGENCY
    assert presses(talk) == 1


def test_land_right_after_a_stall_is_not_confirmed_by_navdata_from_before_it():
    """The drone has taken off meanwhile."""
    talk = Talk().connected()
    talk.put_in_the_air()
    talk.stall(1.0)
    land = talk.ask("land")
    assert land.outcome is None
    talk.run(5.0)
    assert land.outcome.sentence == "The drone lands."


def test_reset_ends_an_emergency_by_one_press_and_is_refused_in_flight(talk):
    begin = len(talk.actions)
    assert "emergency" in talk.ask("reset").outcome.sentence
    talk.run(0.5)
    assert presses(talk, begin) == 0
    assert talk.drone.flight.phase is FlightPhase.FLYING
    cut_motors(talk)
    reset = talk.ask("reset")
    talk.run(2.0)
    assert reset.outcome.is_success
    assert talk.drone.flight.phase is FlightPhase.LANDED
    assert presses(talk, begin) == 2


def test_reset_presses_nothing_by_navdata_that_may_have_changed(talk):
    """Another client has ended the emergency meanwhile, and flies."""
    cut_motors(talk)
    begin = len(talk.actions)
    talk.stall(1.0)
    talk.now_s += 0.001
    assert "navdata" in talk.ask("reset").outcome.sentence
    assert "navdata" in talk.ask("takeoff").outcome.sentence
    talk.run(0.5)
    talk.lose_navdata()
    talk.run(0.7)
    assert talk.session.state == "connected"
    assert "navdata" in talk.ask("reset").outcome.sentence
    talk.run(1.0)
    assert presses(talk, begin) == 0


@pytest.mark.parametrize("on_ground", [True, False])
def test_reset_without_an_emergency_presses_nothing(on_ground):
    talk = Talk(emergency_on_ground=on_ground).connected()
    assert talk.ask("reset").outcome.is_success
    talk.run(2.0)
    assert presses(talk) == 0
    assert not talk.drone.state & codec.State.EMERGENCY


def test_an_emergency_right_after_a_reset_has_its_own_edge():
    talk = Talk(emergency_on_ground=True).connected()
    cut_motors(talk)
    reset = talk.ask("reset")
    talk.run(2.0, until=lambda: reset.outcome)
    emergency = talk.ask("emergency")
    talk.run(2.0)
    assert talk.drone.is_emergency
    assert emergency.outcome.sentence == "The motors are off."


def test_an_emergency_on_the_ground_that_the_drone_ignores_is_confirmed():
    talk = Talk(emergency_on_ground=False).connected()
    emergency = talk.ask("emergency")
    assert "in progress" in talk.ask("takeoff").outcome.sentence
    talk.run(2.0)
    assert emergency.outcome.is_success
    assert "motors stand" in emergency.outcome.sentence
    assert presses(talk) == 1


# Silence.


@pytest.mark.parametrize("lands", [True, False])
@pytest.mark.parametrize("any_number", [True, False])
def test_a_bridge_that_was_killed_and_started_again_finds_its_drone(lands, any_number):
    talk = Talk(lands_when_lost=lands, any_number_after_loss=any_number).flying()
    talk.is_linked = False
    talk.run(3.0)
    drone, again = talk.drone, Talk()
    again.drone, again.now_s = drone, talk.now_s
    again.connected()
    again.run(8.0)
    assert (drone.flight.phase is FlightPhase.LANDED) == lands
    assert not drone.state & codec.State.WATCHDOG
    land = again.ask("land")
    again.until(FlightPhase.LANDED)
    assert land.outcome.is_success


@pytest.mark.parametrize("lands", [True, False])
@pytest.mark.parametrize("watchdog_s", [0.05, 0.25])
def test_after_a_stall_nothing_is_asserted_until_the_drone_reports(lands, watchdog_s):
    talk = Talk(lands_when_lost=lands, watchdog_s=watchdog_s).flying()
    talk.pilot.wanted = FORWARD
    talk.run(1.0)
    talk.stall(9.0)
    begin = len(talk.actions)
    talk.run(0.1)
    assert talk.sent(talk.actions[begin:])
    talk.pilot.wanted = None
    talk.run(3.0)
    assert (talk.drone.flight.phase is FlightPhase.LANDED) == lands
    assert talk.session.requests.level is not lands


def test_send_rates_between_the_drones_watchdog_and_its_limit_never_hover():
    talk = Talk(watchdog_s=0.05).flying()
    talk.pilot.wanted = FORWARD
    talk.run(0.5)
    assert not talk.drone.state & codec.State.WATCHDOG
    talk.run(2.0)
    assert not talk.drone.state & codec.State.WATCHDOG


def test_a_link_that_is_lost_for_a_while_is_taken_up_again(talk):
    talk.pilot.wanted = FORWARD
    talk.run(1.0)
    talk.is_linked = False
    talk.run(5.0)
    assert talk.drone.flight.is_hovering
    talk.is_linked = True
    talk.pilot.wanted = None
    talk.run(2.0)
    assert talk.session.requests.level is True
    assert talk.drone.flight.phase is FlightPhase.FLYING


# Numbers, and other clients.


@pytest.mark.parametrize("any_number", [True, False])
def test_lost_first_packets_do_not_leave_the_drone_deaf(any_number):
    talk = Talk(any_number_after_loss=any_number)
    other = OtherClient(talk)
    for _ in range(500):
        other.send(codec.Pcmd())
    count = 0

    def loses(data):
        nonlocal count
        count += data.startswith(b"AT")
        return data.startswith(b"AT") and count <= 5

    talk.loses = loses
    talk.connected()
    assert not talk.drone.state & codec.State.WATCHDOG
    assert talk.ask("takeoff")
    talk.run(8.0, until=lambda: talk.drone.flight.is_hovering)


@pytest.mark.parametrize("lost_s", [0.0, 1.5])
def test_numbers_start_over_when_another_client_has_higher_ones(lost_s):
    talk = Talk(any_number_after_loss=False).flying()
    other = OtherClient(talk)
    other.connection.next_sequence = 1_000_000
    other.send(codec.Ref(True))
    talk.loses = lambda data: data.startswith(b"AT")
    talk.run(lost_s)
    talk.loses = lambda data: False
    talk.pilot.wanted = FORWARD
    talk.run(0.5)
    assert not talk.drone.flight.is_hovering


class NoEcho(EmulatedArdrone):
    """Drone that does not echo the bit to fly."""

    @property
    def state(self):
        return super().state & ~codec.State.START_BUTTON


@pytest.mark.parametrize("kind", [NoEcho, EmulatedArdrone])
def test_numbers_do_not_start_over_in_flight_while_the_drone_obeys(kind):
    talk = Talk(drone=kind(behaviour=FirmwareBehaviour(acknowledges_refused=False))).flying()
    talk.session.add_setting(WantedSetting(codec.setting("no:such_key", 1)), talk.now_s)
    actions = talk.run(8.0)
    assert notes(actions, "refused_settings")
    assert not any(FIRST in each.data for each in actions if isinstance(each, Send))


class NeverStartsOver(codec.DroneConnection):
    """A drone for which number 1 is late as any other, as at a public simulator."""

    def restart(self):
        pass

    def next_event(self):
        if not self._lines:
            return codec.NEED_DATA
        number, command = read_line(self._lines.popleft())
        if number <= self._newest:
            return codec.LateCommand(number, self._newest)
        self._newest = number
        return command


def test_a_drone_that_never_starts_over_obeys_all_the_same():
    """Also while it acknowledges no setting, and after stalls."""
    talk = Talk(WantedSetting(codec.setting("no:such_key", 1)), acknowledges_refused=False, any_number_after_loss=False)
    talk.drone._connection = NeverStartsOver()
    talk.open()
    for name, phase in (("takeoff", FlightPhase.FLYING), ("land", FlightPhase.LANDED), ("takeoff", FlightPhase.FLYING)):
        talk.run(3.0)
        talk.ask(name)
        talk.until(phase)
        talk.stall(0.5)
    talk.pilot.wanted = FORWARD
    talk.run(0.5)
    assert not talk.drone.flight.is_hovering
    talk.ask("emergency")
    talk.run(0.1)
    assert talk.drone.flight.phase is FlightPhase.EMERGENCY


@pytest.mark.parametrize("newest_only", [True, False])
def test_second_navdata_client_does_not_silence_the_bridge_for_long(newest_only):
    talk = Talk(serves_newest_only=newest_only).flying()
    OtherClient(talk).ask()
    talk.run(1.0)
    assert talk.session.state == "connected"
    assert talk in talk.drone.clients
    assert talk.session.requests.level is True


def test_losses_of_a_third_change_nothing():
    talk, by_chance = Talk(), random.Random(7)
    talk.loses = lambda data: by_chance.random() < 1 / 3
    talk.flying()
    land = talk.ask("land")
    talk.until(FlightPhase.LANDED)
    assert land.outcome.is_success
