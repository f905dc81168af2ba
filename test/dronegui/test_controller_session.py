# SPDX-License-Identifier: Apache-2.0
"""DroneGuiControllerSession of dronegui_bridge in isolation, with a fake clock."""

import json
import math
from types import SimpleNamespace

import pytest
from fake_pilot import FakePilot
from session_talk import SessionTalk, notes, published

from drone_bridge.ar_drone.flight_state import FlyingReport
from drone_bridge.dronegui.codec import FIRST_SEQ, Demo, FlightState, OtherNavdata, VisionDetect
from drone_bridge.dronegui.session import controller, requests
from drone_bridge.dronegui.session.buttons import PACKETS_PER_LEVEL
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.session.arbiter import Rank
from drone_bridge.session.continuous_pose import POSE_RESTARTS, ContinuousPose
from drone_bridge.session.session import EMERGENCY_AGE_S, FINAL_REPEATS, Landing, Note, Outcome, Send
from drone_bridge.session.tilt_pilot import ESTIMATED

GUI, STRANGER = ("127.0.0.1", 3456), ("127.0.0.2", 3456)
REFUSAL = "Nobody listens at 127.0.0.1:5560."
FORWARD = Shares(pitch=0.5)
HOVER = {"take_off": False, "reset": False, "hover": True, "roll": 0.0, "pitch": 0.0, "yaw": 0.0, "gas": 0.0}
#: Numbers before that of a packet that must get through.
URGENT = (1, 1)
COMMANDS = ("takeoff", "land", "reset")
BROKEN = ", as its press was broken off"
LANDS_IT = 'If it flies, "Land" in the GUI lands it.'


class Talk(SessionTalk):
    """Session of a controller, with its parameters, pilot and GUI."""

    def __init__(self, *, receives_navdata=True, **parameters):
        self.parameters = controller.DroneGuiControllerParameters(**parameters)
        self.pilot, self.is_hover_held, self.port_problem = FakePilot(), False, ""
        self.reported = []
        feedback = SimpleNamespace(measured=lambda measured, now_s: self.reported.append((measured, now_s)))
        self.actions = []
        super().__init__(
            controller.DroneGuiControllerSession(
                "127.0.0.1:5560",
                self.pilot,
                feedback,
                parameters=self.parameters,
                is_hover_held=lambda: self.is_hover_held,
                gui_host=lambda: GUI[0],
                port_problem=(lambda: self.port_problem) if receives_navdata else None,
            )
        )
        self.watch = self.session._watch

    def take(self, actions):
        self.actions += actions
        return list(actions)

    def open(self):
        return self.take(self.session.opened(self.now_s))

    def settle(self, seconds=2.0):
        """Wait without navdata, until listening and the first packets are over."""
        return self.run(seconds)

    def hear(self, document, source=GUI):
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        return self.take(self.session.receive(data, source, self.now_s))

    def show(self, state, **values):
        """Receive navdata with a state of the drone."""
        return self.hear({"type": "demo", "ctrl_state": state << 16, **values})

    def show_on(self, state, seconds):
        """Receive navdata 20 times per second."""
        actions = []
        for _ in range(round(20 * seconds)):
            actions += [*self.show(state), *self.run(0.05)]
        return actions

    def ask(self, name, asked_s=None):
        request = SimpleNamespace(name=name, asked_s=self.now_s if asked_s is None else asked_s)
        return self.take(self.session.ask(request, self.now_s))

    def say(self, is_flying):
        """Let a person state whether the drone flies."""
        request = SimpleNamespace(name="assume_flying", asked_s=self.now_s)
        return self.take(self.session.assume_flying(is_flying, request, self.now_s))

    def refuse(self):
        return self.take(self.session.refused(REFUSAL, self.now_s))

    def lose(self):
        self.session.fresh_since_s = self.now_s
        return self.take(self.session.lost(self.now_s))

    def open_again(self, seconds=1.0):
        self.now_s += seconds
        self.session.fresh_since_s = self.now_s
        return [*self.open(), *self.run(0.01)]


def datagrams(actions):
    return [json.loads(action.data) for action in actions if isinstance(action, Send)]


def packets(actions):
    """Return the packets, without copies numbered 1."""
    return [each for each in datagrams(actions) if each["seq"] != FIRST_SEQ]


def numbers(actions):
    return [each["seq"] for each in datagrams(actions)]


def states(actions):
    return [packet["state"] for packet in packets(actions)]


def presses(actions):
    """Return the pressed buttons in order."""
    found, before = [], frozenset()
    for state in states(actions):
        down = frozenset(name for name in ("take_off", "reset") if state[name])
        found += sorted(down - before)
        before = down
    return found


def outcomes(actions):
    return [(action.is_success, action.sentence) for action in actions if isinstance(action, Outcome)]


def outcome(actions):
    (only,) = outcomes(actions)
    return only


def refusal(actions):
    is_success, sentence = outcome(actions)
    assert not is_success
    return sentence


def success(actions):
    is_success, sentence = outcome(actions)
    assert is_success
    return sentence


def flying(actions):
    return [message.is_flying for message in published(actions) if isinstance(message, FlyingReport)]


@pytest.fixture
def talk():
    """Bridge that sends, and that has listened without result."""
    talk = Talk()
    talk.open()
    talk.settle()
    return talk


@pytest.fixture
def taking_off(talk):
    """Bridge with navdata of a drone on the ground that is asked to take off."""
    talk.show(FlightState.LANDED)
    talk.ask("takeoff")
    return talk


@pytest.fixture
def blind():
    """Bridge without navdata, for a drone that is on the ground by assume_flying."""
    talk = Talk(receives_navdata=False)
    talk.open()
    talk.settle()
    talk.say(is_flying=False)
    talk.watch.assume(False)  # as after a press of reset
    return talk


# Packets.


def test_packets_are_numbered_from_1_and_commands_follow():
    talk = Talk()
    actions = talk.open()
    talk.pilot.wanted = FORWARD
    actions += talk.run(0.6)
    assert numbers(actions) == [*URGENT, *range(2, 15)]
    assert states(actions)[:2] == [HOVER, {**HOVER, "hover": False, "pitch": -0.5}]
    assert notes(actions, "connections") == ["Sending to 127.0.0.1:5560."]
    assert (talk.session.state, talk.session.is_open) == ("sending", True)


def test_without_a_command_and_while_hover_is_held_it_hovers(talk):
    assert states(talk.run(0.1)) == [HOVER] * 2
    talk.pilot.wanted = FORWARD
    assert [state["pitch"] for state in states(talk.run(0.1))] == [-0.5] * 2
    talk.is_hover_held = True
    actions = talk.run(0.1)
    assert states(actions) == [HOVER] * 2
    assert len(notes(actions, "hover_packets")) == 2


def test_velocities_that_are_estimated_are_counted(talk):
    assert notes(talk.run(0.1), ESTIMATED) == []
    talk.pilot.wanted, talk.pilot.notes = FORWARD, [Note(ESTIMATED)]
    assert len(notes(talk.run(0.1), ESTIMATED)) == 2


def test_a_command_that_cant_be_encoded_is_hover_and_counted(talk):
    talk.pilot.wanted = Shares(pitch=math.nan)
    actions = talk.run(0.05)
    assert (states(actions), len(notes(actions, "unencodable_messages"))) == ([HOVER], 1)


def test_packets_to_a_closed_port_are_still_sent_and_counted(talk):
    actions = talk.refuse()
    assert len(notes(actions, controller.UNHEARD)) == 1
    assert len(packets(talk.run(1.0))) == 20


def test_the_end_is_hover_three_times(talk):
    talk.pilot.wanted = FORWARD
    talk.run(0.1)
    actions = [*talk.session.end(talk.now_s), *talk.session.tick(talk.now_s)]  # which is too early
    assert states(actions) == [HOVER]
    actions += talk.run(10.0)
    assert states(actions) == [HOVER] * FINAL_REPEATS
    assert (talk.session.is_over, talk.session.is_open, talk.session.state) == (True, False, "closed")
    assert talk.session.refused(REFUSAL, talk.now_s) == []  # it may have closed before us


def test_a_bridge_without_a_link_ends_at_once():
    talk = Talk()
    assert (talk.session.end(talk.now_s), talk.session.is_over) == ([], True)


def test_lost_link_ends_with_hover_and_numbers_continue_after_it(talk):
    talk.pilot.wanted = FORWARD
    seq = packets(talk.run(0.05))[-1]["seq"]
    assert states(talk.session.lost(talk.now_s)) == [HOVER] * FINAL_REPEATS
    assert talk.session.state == "waiting for a peer"
    assert talk.run(10.0) == []
    restarts = talk.pilot.restarts
    actions = talk.open()
    assert talk.pilot.restarts == restarts + 1
    assert numbers([*actions, *talk.run(0.1)]) == [*URGENT, *(seq + FINAL_REPEATS + each for each in (1, 2, 3))]


@pytest.mark.parametrize("what", ["hover", "hold", "press", "unsent"])
def test_what_must_get_through_another_controllers_numbers_is_packet_1(talk, what):
    for is_on in (True, False):
        before = talk.run(0.1)
        talk.is_hover_held = what == "hover" and is_on
        talk.pilot.rank = Rank.HOLD if what == "hold" and is_on else Rank.COMMAND
        asked = talk.ask("emergency") if what == "press" and is_on else []
        if what == "unsent" and is_on:
            (sent, *_) = [action for action in before if isinstance(action, Send)]
            talk.take(talk.session.unsent(sent, "Nothing can be sent.", talk.now_s))
        after = [*asked, *talk.run(0.1)]
        newest = numbers(before)[-1]
        is_last = what in ("press", "unsent") and not is_on
        expected = [*(() if is_last else URGENT), newest + 1, newest + 2]
        assert numbers(after)[: len(expected)] == expected


# Navdata.


def test_navdata_is_published_unchanged(talk):
    talk.hear(b'{"type": "demo", "altitude": 400}')
    assert controller.NavdataBlock(
        Demo(altitude=400.0), b'{"type": "demo", "altitude": 400}', "127.0.0.1:3456"
    ) in published(talk.actions)
    assert notes(talk.actions, "navdata") == [""]
    actions = [*talk.hear({"features": []}), *talk.hear({"type": "checksum", "value": 1})]
    blocks = [message.block for message in published(actions)]
    assert blocks == [VisionDetect(), OtherNavdata("checksum", {"value": 1})]
    assert (len(notes(actions, "detections")), len(notes(actions, "other_navdata"))) == (1, 1)


def test_navdata_is_fed_back_while_it_is_received(talk):
    for document, source in (({"type": "demo", "altitude": 400}, STRANGER), (b"{}x", GUI), ({"features": []}, GUI)):
        talk.hear(document, source)
    assert talk.reported == []
    talk.hear({"type": "demo", "altitude": 400})
    assert [(measured.height, now_s) for measured, now_s in talk.reported] == [(0.4, talk.now_s)]


def test_garbage_and_foreign_packets_have_no_effect(talk):
    assert "is not JSON" in notes(talk.hear(b"{}x"), "rejected_input")[0]
    actions = talk.hear({"type": "demo", "ctrl_state": 3 << 16}, STRANGER)
    (refusal,) = notes(actions, controller.FOREIGN_NAVDATA)
    assert "127.0.0.2:3456" in refusal
    assert (published(actions), talk.session.received_s, talk.watch.is_flying(talk.now_s)) == ([], None, None)


def test_whether_it_flies_is_published_when_that_is_known_and_changes(talk):
    assert flying(talk.show(FlightState.LANDED)) == [False]
    assert flying(talk.show(FlightState.LANDED)) == []
    assert flying(talk.show(FlightState.TAKING_OFF)) == [True]
    talk.run(10.0)
    assert flying(talk.show(FlightState.LANDING)) == []


def test_only_a_gui_that_has_sent_navdata_can_be_silent(talk):
    assert talk.session.silent_s(talk.now_s) == 0.0
    talk.show(FlightState.LANDED)
    talk.run(7.0)
    assert talk.session.silent_s(talk.now_s) == 7.0


# Problems, for diagnostics.


def test_missing_navdata_is_a_problem_after_the_timeout():
    talk = Talk()
    talk.open()
    talk.run(0.9)
    assert talk.session.problems == ("", "")
    talk.run(0.2)
    navdata, _ = talk.session.problems
    assert "port 5561" in navdata
    assert "assume_flying" in navdata
    talk.say(is_flying=False)
    assert "port 5561" in talk.session.problems[0]
    assert "assume_flying" not in talk.session.problems[0]
    talk.show(FlightState.LANDED)
    assert talk.session.problems == ("", "")
    talk.session.end(talk.now_s)
    talk.run(10.0)
    assert talk.session.problems == ("", "")


def test_disabled_navdata_is_no_problem_but_reported_once():
    talk = Talk(receives_navdata=False)
    actions = talk.open()
    unknown = "assume_flying"
    assert any(unknown in each for each in notes(actions, ""))
    assert not any(unknown in each for each in notes(Talk().open(), ""))
    talk.say(is_flying=False)
    assert not any(unknown in each for each in notes(talk.open(), ""))
    talk.run(10.0)
    assert talk.session.problems == ("", "")


def test_an_emergency_is_a_problem_until_reset(talk):
    talk.show(FlightState.DEFAULT)
    assert "motors are off" in talk.session.problems[1]
    talk.run(10.0)
    assert talk.session.problems[1] == ""  # as far as is visible
    talk.show(FlightState.DEFAULT)
    assert "motors are off" in talk.session.problems[1]
    talk.show(FlightState.LANDED)
    assert talk.session.problems == ("", "")


# Presses.


def test_press_lasts_press_time_and_is_released_before_the_response(blind):
    blind.parameters.press_time = 0.49
    actions = [*blind.ask("takeoff"), *blind.run(0.62)]
    assert outcomes(actions) == []
    actions += blind.run(0.05)
    assert [state["take_off"] for state in states(actions)] == [True] * 10 + [False] * PACKETS_PER_LEVEL
    assert "not confirmed" in success(actions)


def test_commands_continue_during_a_press(blind):
    blind.pilot.wanted = FORWARD
    actions = [*blind.ask("reset"), *blind.run(0.3)]
    assert {(state["reset"], state["pitch"], state["hover"]) for state in states(actions)} == {(True, -0.5, False)}


def test_a_press_to_a_closed_port_is_cancelled_at_once(blind):
    """A GUI that starts while the button is down would mistake the rest for a press of its own."""
    for packets_down, sentence in ((0, "take_off was not pressed"), (2, "The effect of take_off is unknown")):
        blind.watch.assume(False)
        actions = [*blind.ask("takeoff"), *blind.run(packets_down * 0.05)]
        assert [state["take_off"] for state in states(actions)] == [True] * packets_down
        actions = [*blind.refuse(), *blind.run(1.0)]
        assert presses(actions) == []
        assert refusal(actions) == f"{sentence}{BROKEN if packets_down else ''}: {REFUSAL}"


def test_a_press_ends_with_the_link_and_is_answered(blind):
    for name, began in (("reset", True), ("reset", False)):
        blind.ask(name)
        if began:
            blind.run(0.05)
        actions = blind.take(blind.session.lost(blind.now_s))
        assert states(actions) == [HOVER] * FINAL_REPEATS
        assert ("effect of reset is unknown" if began else "reset was not pressed") in refusal(actions)
        blind.open()
        assert presses(blind.run(1.0)) == []
        blind.say(is_flying=False)


@pytest.mark.parametrize("name", ["takeoff", "land", "reset", "emergency"])
@pytest.mark.parametrize("doubt", ["link", "port", "stall", "unsent", "end"])
def test_after_any_doubt_about_a_press_it_is_released_and_its_effect_unknown(blind, name, doubt):
    """Otherwise land would be refused in the air, or the next press have the opposite effect."""
    blind.say(name in ("land", "emergency"))
    sent = [action for action in [*blind.ask(name), *blind.run(0.05)] if isinstance(action, Send)][-1]
    doubts = {
        "link": blind.lose,
        "port": blind.refuse,
        "stall": lambda: blind.stall(EMERGENCY_AGE_S + 0.1),
        "unsent": lambda: blind.take(blind.session.unsent(sent, "Nothing can be sent.", blind.now_s + 3.1)),
        "end": lambda: blind.take(blind.session.end(blind.now_s)),
    }
    actions = [*doubts[doubt](), *blind.run(1.0)]
    is_pressed_again = name == "emergency" and doubt in ("port", "end")
    assert presses(actions) == ["reset"] * is_pressed_again
    assert "unknown" in refusal(actions)
    assert blind.watch.is_flying(blind.now_s) is None


def test_navdata_determines_the_state_regardless_of_presses(taking_off):
    taking_off.run(0.1)
    taking_off.show(FlightState.TAKING_OFF)
    refusal(taking_off.lose())
    assert taking_off.watch.is_flying(taking_off.now_s) is True


def test_requests_are_refused_while_nothing_is_sent(blind):
    blind.session.lost(blind.now_s)
    for name in ("takeoff", "reset"):
        assert f"{name} can't be carried out because nothing is being sent" in refusal(blind.ask(name))


# Take-off and landing, confirmed by navdata.


def test_takeoff_succeeds_when_the_drone_takes_off(talk):
    talk.show(FlightState.LANDED)
    actions = [*talk.ask("takeoff"), *talk.show_on(FlightState.LANDED, 0.2)]
    assert outcomes([*actions, *talk.show_on(FlightState.TAKING_OFF, 0.2)]) == []  # it is still pressed
    actions = talk.show_on(FlightState.TAKING_OFF, 1.0)
    assert outcome(actions)[0]


def test_land_succeeds_when_the_drone_lands(talk):
    talk.show(FlightState.FLYING)
    actions = [*talk.ask("land"), *talk.show_on(FlightState.FLYING, 1.0)]
    assert presses(actions) == ["take_off"]
    assert outcomes(actions) == []
    actions = talk.show(FlightState.LANDING)
    assert outcome(actions)[0]
    assert outcome(talk.ask("land"))[0]


def test_takeoff_is_refused_with_motors_off_or_a_low_battery(talk):
    talk.show(FlightState.DEFAULT)
    assert "call reset" in refusal(talk.ask("takeoff"))
    talk.show(FlightState.LANDED)
    talk.pilot.limits.takeoff_refusal = "The battery is low."
    assert refusal(talk.ask("takeoff")) == "The battery is low."
    talk.pilot.limits.takeoff_refusal = ""
    assert presses([*talk.ask("takeoff"), *talk.run(0.1)]) == ["take_off"]


def test_takeoff_and_land_fail_if_the_drone_does_not_follow(taking_off):
    assert outcomes(taking_off.show_on(FlightState.LANDED, 5.4)) == []
    sentence = refusal(taking_off.show_on(FlightState.LANDED, 0.3))
    assert "landed" in sentence
    assert "another controller" in sentence
    taking_off.show(FlightState.FLYING)
    actions = [*taking_off.ask("land"), *taking_off.show_on(FlightState.FLYING, 6.0)]
    assert (presses(actions), "flying" in refusal(actions)) == (["take_off"], True)


def test_commands_reach_no_vehicle_only_while_the_guis_port_refuses(talk):
    talk.run(60.0)
    assert talk.session.undeliverable(talk.now_s) is None
    talk.refuse()
    assert talk.session.undeliverable(talk.now_s) == REFUSAL
    talk.run(controller.REFUSED_S + 0.1)
    assert talk.session.undeliverable(talk.now_s) is None


def test_a_drone_that_lands_does_not_take_off(taking_off):
    assert outcomes(taking_off.show_on(FlightState.LANDING, 1.0)) == []


def test_navdata_that_ends_confirms_nothing(taking_off):
    assert "sends no navdata" in refusal(taking_off.run(6.0))


def test_the_first_press_waits_for_navdata_which_may_report_flight():
    for shown, button in ((FlightState.HOVERING, []), (FlightState.LANDED, ["take_off"])):
        talk = Talk()
        talk.open()
        talk.say(is_flying=False)
        assert outcomes([*talk.ask("takeoff"), *talk.run(0.8)]) == []
        actions = [*talk.show(shown), *talk.run(0.5)]
        assert presses(talk.actions) == button
        assert ("The drone is flying" in outcome(actions)[1]) if not button else not outcomes(actions)


def test_a_takeoff_in_progress_is_not_repeated():
    talk = Talk()
    talk.open()
    talk.say(is_flying=False)
    talk.ask("takeoff")
    assert "in progress" in refusal(talk.ask("takeoff"))


# Without navdata.


def test_a_new_process_presses_nothing(talk):
    for name in ("takeoff", "land"):
        sentence = refusal(talk.ask(name))
        for words in ("port 5561", "take_off", "assume_flying", LANDS_IT):
            assert words in sentence
    assert presses(talk.run(1.0)) == []


def test_a_fresh_gui_is_bootstrapped_after_assume_flying_false(talk):
    assert outcome(talk.say(is_flying=True))[0]
    assert "takeoff will press reset" in success(talk.say(is_flying=False))
    actions = [*talk.ask("takeoff"), *talk.run(0.7)]
    assert (presses(actions), outcomes(actions)) == (["reset"], [])
    actions = [*talk.show_on(FlightState.LANDED, 0.7), *talk.show_on(FlightState.TAKING_OFF, 0.1)]
    assert (presses(actions), outcome(actions)[0]) == (["take_off"], True)


def test_a_bootstrap_that_reveals_flight_presses_no_further_button(talk):
    talk.say(is_flying=False)
    talk.ask("takeoff")
    talk.run(0.7)
    assert "The drone is flying" in refusal(talk.show(FlightState.HOVERING))
    assert presses(talk.run(1.0)) == []


def test_without_navdata_from_a_gui_that_should_send_it_nothing_takes_off(talk):
    """Its landing could not be confirmed."""
    talk.say(is_flying=False)
    actions = [*talk.ask("takeoff"), *talk.run(5.0)]
    assert presses(actions) == ["reset"]
    for words in ("port 5561", "Stream Navdata", "receive_navdata"):
        assert words in refusal(actions)
    actions = [*talk.ask("takeoff"), *talk.run(5.0)]
    assert presses(actions) == []
    talk.hear({"type": "demo", "altitude": 1})  # without a state
    assert presses([*talk.ask("takeoff"), *talk.run(1.0)]) == ["take_off"]


def test_an_unconfirmed_landing_fails_and_leaves_the_state_unknown(talk):
    talk.say(is_flying=True)
    actions = [*talk.ask("land"), *talk.run(1.0)]
    sentence = refusal(actions)
    for words in ("not confirmed", "port 5561", "Land", "Stream Navdata", "assume_flying"):
        assert words in sentence
    assert flying(actions) == []
    for name in ("land", "takeoff"):
        assert "call assume_flying" in refusal(talk.ask(name))


def test_a_gui_without_navdata_is_flown_on_assumptions(blind):
    assert "assumed to be on the ground" in refusal(blind.ask("land"))
    assert outcome([*blind.ask("takeoff"), *blind.run(2.0)])[0]
    assert "assumed to be flying" in refusal(blind.ask("takeoff"))
    actions = [*blind.ask("land"), *blind.run(1.0)]
    assert "receive_navdata is false" in success(actions)
    assert flying(actions) == [False]
    blind.say(is_flying=False)
    actions = [*blind.ask("takeoff"), *blind.run(2.0)]  # a fresh GUI is bootstrapped
    assert (presses(actions), outcome(actions)[0]) == (["reset", "take_off"], True)


def test_an_unconfirmed_emergency_fails_and_leaves_the_state_unknown(talk):
    talk.say(is_flying=True)
    sentence = refusal([*talk.ask("emergency"), *talk.run(1.0)])
    for words in (
        "reset was pressed and released",
        "unknown whether the motors are off",
        "port 5561",
        "call emergency",
    ):
        assert words in sentence
    assert "It is unknown whether" in refusal(talk.ask("land"))


@pytest.mark.parametrize(
    ("state", "is_success"),
    [
        (FlightState.DEFAULT, True),
        (FlightState.LANDED, True),
        (FlightState.FLYING, False),
        (FlightState.LANDING, False),
    ],
)
def test_an_emergency_is_answered_by_navdata(talk, state, is_success):
    talk.show(FlightState.FLYING)
    actions = [*talk.ask("emergency"), *talk.show_on(FlightState.FLYING, 0.8)]
    assert outcomes(actions) == []
    actions = talk.show_on(state, 1.0)
    assert outcome(actions)[0] is is_success
    assert f"navdata reports {state}." in outcome(actions)[1].lower()


def test_a_state_from_before_an_emergency_does_not_answer_it(talk):
    talk.show(FlightState.LANDED)
    actions = [*talk.ask("emergency"), *talk.run(0.9), *talk.hear({"type": "vision"}), *talk.run(2.0)]
    assert "unknown whether the motors are off" in refusal(actions)


def test_a_reset_on_the_ground_changes_nothing(talk):
    talk.say(is_flying=False)
    talk.ask("reset")
    talk.run(1.0)
    assert talk.watch.is_flying(talk.now_s) is False


def test_navdata_overrides_a_person_s_statement(talk):
    talk.show(FlightState.TAKING_OFF)
    assert "navdata reports taking off" in refusal(talk.say(is_flying=False))
    assert talk.watch.is_flying(talk.now_s)


# A disconnected GUI.


def navdata_ceases(talk):
    """The GUI is killed, or the drone considers it disconnected, without a report."""
    talk.show(FlightState.FLYING)
    talk.run(talk.parameters.navdata_timeout + 0.1)


def port_refuses(talk):
    """The GUI is killed, and its port refuses a packet immediately."""
    talk.show(FlightState.HOVERING)
    talk.run(0.05)
    assert_lost(talk)


def port_refuses_without_navdata(talk):
    """As for a GUI without navdata: the press was the source of the state."""
    talk.watch.assume(True)
    assert_lost(talk)


def assert_lost(talk):
    lost = "It is no longer known"
    assert [line for line in notes(talk.refuse(), "") if line.startswith(lost)]


ENDS = (navdata_ceases, port_refuses, port_refuses_without_navdata)


@pytest.mark.parametrize("ends", ENDS)
def test_state_is_unknown_after_the_gui_is_gone_until_a_person_states_it(talk, ends):
    """A person may have landed it with the GUI's own Land: the next press of take_off would be a take-off.

    People also press reset to make a fresh GUI request navdata, and in the air it stops the motors.
    """
    ends(talk)
    assert talk.watch.is_flying(talk.now_s) is None
    for name in COMMANDS:
        sentence = refusal(talk.ask(name))
        assert sentence.startswith("It is unknown whether the drone flies")
        assert LANDS_IT in sentence
    assert "call emergency" in sentence
    assert presses(talk.run(1.0)) == []
    assert "It is unknown" in refusal(talk.ask("land"))
    talk.say(is_flying=True)
    assert "assumed to be flying" in refusal(talk.ask("takeoff"))
    assert "call emergency" in refusal(talk.ask("reset"))
    assert presses([*talk.ask("land"), *talk.run(0.1), *talk.ask("emergency"), *talk.run(0.1)]) == ["take_off", "reset"]


def test_navdata_restores_the_state(talk):
    port_refuses(talk)
    talk.show(FlightState.LANDED)
    assert "is on the ground, by its navdata" in refusal(talk.ask("land"))
    assert presses([*talk.ask("takeoff"), *talk.run(0.1)]) == ["take_off"]


def test_navdata_without_a_state_does_not_keep_an_old_one(talk):
    talk.say(is_flying=True)
    navdata_ceases(talk)
    talk.hear({"type": "demo", "altitude": 1})
    assert "navdata has no known state" in refusal(talk.ask("land"))


def new(talk):
    pass


def gui_was_restarted(talk):
    talk.refuse()


def flies(talk):
    talk.show(FlightState.HOVERING)


def is_assumed_to_fly(talk):
    talk.say(is_flying=True)


@pytest.mark.parametrize("become", [new, gui_was_restarted, flies, is_assumed_to_fly, *ENDS])
def test_reset_cuts_no_motors_but_emergency_does(talk, become):
    """As after a bridge was killed in flight and restarted."""
    become(talk)
    actions = [*talk.ask("reset"), *talk.run(0.5)]
    assert presses(actions) == []
    assert "call emergency" in refusal(actions)
    assert presses([*talk.ask("emergency"), *talk.run(0.8)]) == ["reset"]


def test_reset_is_pressed_if_the_drone_is_seen_or_stated_on_the_ground(talk):
    talk.say(is_flying=False)
    assert presses([*talk.ask("reset"), *talk.run(0.8)]) == ["reset"]
    talk.refuse()
    talk.show(FlightState.LANDED)
    assert presses([*talk.ask("reset"), *talk.run(0.8)]) == ["reset"]


def test_a_new_bridge_listens_for_navdata_before_reset():
    talk = Talk()
    talk.open()
    assert presses([*talk.ask("reset"), *talk.run(0.5)]) == []
    assert "call emergency" in refusal(talk.show(FlightState.FLYING))


# Emergencies.


@pytest.mark.parametrize("is_held", [False, True])
def test_an_emergency_passes_hold_and_lost_feedback_at_once(talk, is_held):
    talk.show(FlightState.FLYING)
    talk.run(2.0)
    talk.pilot.rank = Rank.HOLD if is_held else Rank.COMMAND
    assert presses([*talk.ask("emergency"), *talk.run(0.05)]) == ["reset"]


@pytest.mark.parametrize(("age_s", "is_cut"), [(EMERGENCY_AGE_S - 0.1, True), (EMERGENCY_AGE_S + 0.1, False)])
@pytest.mark.parametrize("when", ["before it was taken", "as its first packet was sent"])
def test_an_emergency_passes_a_stall_of_up_to_3_s(talk, when, age_s, is_cut):
    asked_s = talk.now_s
    actions = []
    for sent in talk.ask("emergency") if when == "as its first packet was sent" else ():
        if isinstance(sent, Send):
            actions += talk.session.unsent(sent, "It was left out.", asked_s + age_s)
    actions += talk.stall(age_s)
    if when == "before it was taken":
        actions += talk.ask("emergency", asked_s)
    actions += talk.show_on(FlightState.DEFAULT, 1.0)
    assert presses(actions) == ["reset"] * is_cut
    assert outcome(actions)[0] or ("call emergency again" in refusal(actions) and not is_cut)


def test_an_emergency_begins_again_while_nobody_listens_for_3_s(talk):
    actions = talk.ask("emergency")
    for _ in range(70):
        actions += [*talk.run(0.05), *talk.refuse()]
    assert "press of reset was broken off" in refusal(actions)
    actions = talk.ask("emergency")
    for _ in range(20):
        actions += [*talk.run(0.05), *talk.refuse()]
    assert outcomes(actions) == []
    assert [state["reset"] for state in states(talk.run(0.5))] == [True] * 10


def test_emergencies_share_one_press(talk):
    actions = [*talk.ask("emergency"), *talk.ask("emergency"), *talk.run(0.2), *talk.ask("emergency"), *talk.run(1.0)]
    assert (presses(actions), len(outcomes(actions))) == (["reset"], 3)
    assert presses([*talk.ask("emergency"), *talk.run(1.0)]) == ["reset"]  # a later one has its own


@pytest.mark.parametrize("seconds", [0.0, 0.3, 2.0])
def test_an_emergency_ends_a_takeoff_that_has_not_begun(talk, seconds):
    """While reset is down as its bootstrap, and during the wait for navdata after that."""
    talk.say(is_flying=False)
    talk.ask("takeoff")
    talk.run(seconds)
    actions = talk.ask("emergency")
    assert refusal(actions) == requests.CUT_SINCE
    assert "is in progress" in refusal(talk.ask("takeoff"))
    later = talk.run(6.0)
    assert set(presses([*actions, *later])) <= {"reset"}
    assert "reset" in presses(talk.actions)
    assert outcome(later)


def test_emergency_is_answered_on_link_loss_and_not_kept_for_the_next(talk):
    talk.ask("emergency")
    assert "call emergency again" in refusal(talk.lose())
    assert presses(talk.open_again()) == []
    talk.lose()
    assert "nothing is being sent" in refusal(talk.ask("emergency"))
    assert presses(talk.open_again()) == []


def test_the_loss_is_reported_once(talk):
    port_refuses(talk)
    assert notes(talk.refuse(), "") == []


def test_silent_gui_is_bootstrapped_again_after_earlier_navdata(talk):
    """It may be another one."""
    navdata_ceases(talk)
    talk.say(is_flying=False)
    assert presses([*talk.ask("takeoff"), *talk.run(0.1)]) == ["reset"]


# Stalls of this process, and a lost link.


def stalls(talk):
    talk.stall(0.4)


def loses_its_link(talk):
    """Too short for earlier navdata to become stale."""
    talk.lose()
    talk.open_again(0.2)


@pytest.mark.parametrize("interrupt", [stalls, loses_its_link])
def test_requests_from_before_an_interruption_are_refused(talk, interrupt):
    """Otherwise it would be done at any later time, with the opposite effect."""
    for name in COMMANDS:
        talk.say(is_flying=name == "land")
        asked_s = talk.now_s - 0.01
        interrupt(talk)
        actions = [*talk.ask(name, asked_s), *talk.run(2.0)]
        assert (refusal(actions), presses(actions)) == (requests.STALE, [])
    request = SimpleNamespace(name="assume_flying", asked_s=asked_s)
    assert refusal(talk.session.assume_flying(True, request, talk.now_s)) == requests.STALE
    assert talk.watch.is_flying(talk.now_s) is False


@pytest.mark.parametrize("interrupt", [stalls, loses_its_link])
def test_landing_before_an_interruption_is_executed_after_new_navdata(talk, interrupt):
    for is_seen in (False, True):
        talk.show(FlightState.HOVERING)
        asked_s = talk.now_s - 0.01
        interrupt(talk)
        if is_seen:
            talk.show(FlightState.HOVERING)
        actions = [*talk.ask("land", asked_s), *talk.run(1.5)]
        assert presses(actions) == (["take_off"] if is_seen else [])
        assert is_seen or refusal(actions) == requests.STALE


@pytest.mark.parametrize("interrupt", [stalls, loses_its_link])
def test_navdata_from_before_an_interruption_is_discarded(talk, interrupt):
    """The drone may have been landed meanwhile."""
    talk.show(FlightState.HOVERING)
    interrupt(talk)
    assert talk.watch.is_flying(talk.now_s) is None
    actions = [*talk.ask("land"), *talk.run(0.5)]
    assert (presses(actions), outcomes(actions)) == ([], [])
    assert "is on the ground, by its navdata" in refusal(talk.show(FlightState.LANDED))


def test_a_stall_cancels_a_press_before_its_first_packet(blind):
    blind.ask("reset")
    actions = blind.stall(3.0)
    assert refusal(actions) == f"reset was not pressed: {requests.STALLED}"
    assert presses(blind.run(1.0)) == []


def test_after_a_stall_navdata_is_received_before_conclusions(taking_off):
    taking_off.show_on(FlightState.LANDED, 1.0)
    assert outcomes(taking_off.stall(3.0)) == []
    assert taking_off.session.problems == ("", "")
    assert taking_off.session.silent_s(taking_off.now_s) == 0.0
    assert outcome(taking_off.show(FlightState.FLYING))[0]


def test_an_emergency_cancels_a_press_of_take_off_before_its_first_packet(taking_off):
    assert presses([*taking_off.ask("emergency"), *taking_off.run(6.0)]) == ["reset"]


def test_a_hold_cancels_a_press_of_take_off_before_its_first_packet(taking_off):
    taking_off.pilot.rank = Rank.HOLD
    actions = taking_off.run(2.0)
    assert presses(actions) == []
    assert requests.HELD_SINCE in refusal(actions)


def test_a_hold_cancels_no_landing(talk):
    talk.show(FlightState.HOVERING)
    talk.ask("land")
    talk.pilot.rank = Rank.HOLD
    assert presses(talk.show_on(FlightState.HOVERING, 1.0)) == ["take_off"]


# Limits.


def test_a_required_landing_presses_the_button_and_is_reported(talk):
    talk.show(FlightState.HOVERING)
    talk.pilot.rank = Rank.LANDING
    actions = talk.show_on(FlightState.HOVERING, 3.0)
    assert (presses(actions), outcomes(actions)) == (["take_off"], [])
    actions = talk.show_on(FlightState.LANDING, 1.5)
    assert any("the drone lands" in each for each in notes(actions, ""))


@pytest.mark.parametrize("state", [FlightState.LANDED, FlightState.DEFAULT])
def test_a_required_landing_on_the_ground_presses_no_button(talk, state):
    talk.show(state)
    talk.pilot.rank = Rank.LANDING
    actions = talk.show_on(state, 3 * requests.LAND_PERIOD_S)
    assert (presses(actions), notes(actions, "")) == ([], [])


def test_a_landing_without_navdata_is_impossible_and_is_not_said(talk):
    assert talk.session.landing(talk.now_s) is Landing.UNKNOWN_FLIGHT
    talk.show(FlightState.FLYING)
    talk.pilot.rank = Rank.LANDING
    assert talk.session.landing(talk.now_s) is Landing.LANDS
    talk.run(1.1)  # the press that began with navdata is over
    silent = talk.run(60.0)
    assert presses(silent) == []
    assert talk.session.landing(talk.now_s) is Landing.UNKNOWN_FLIGHT
    talk.show(FlightState.LANDED)
    assert talk.session.landing(talk.now_s) is Landing.GROUNDED
    talk.show(FlightState.FLYING)
    talk.lose()
    assert talk.session.landing(talk.now_s) is Landing.DISCONNECTED


def test_a_landing_without_navdata_presses_once_after_assume_flying(talk):
    talk.show(FlightState.FLYING)
    talk.run(5.0)
    talk.pilot.rank = Rank.LANDING
    assert presses(talk.run(2.0)) == []
    talk.say(is_flying=True)
    assert talk.session.landing(talk.now_s) is Landing.LANDS
    assert presses(talk.run(60.0)) == ["take_off"]
    assert talk.session.landing(talk.now_s) is Landing.UNKNOWN_FLIGHT


def test_of_requests_pending_at_a_hold_only_a_landing_presses():
    talk = Talk()
    talk.open()
    talk.say(is_flying=False)
    talk.ask("takeoff")
    talk.pilot.rank = Rank.HOLD
    assert refusal(talk.run(2.0)) == requests.HELD_SINCE
    talk.show(FlightState.HOVERING)
    assert presses([*talk.ask("land"), *talk.run(0.1)]) == ["take_off"]


def test_a_heading_that_begins_again_goes_on_for_pilot_and_limits():
    talk = Talk()
    talk.session._pose = ContinuousPose(ObservedMotion(lambda: talk.now_s), 5.0, 1.0)
    talk.open()
    talk.hear({"type": "demo", "psi": -70000})
    talk.run(60.0)  # a new battery
    actions = talk.hear({"type": "demo", "psi": 0})
    assert len(notes(actions, POSE_RESTARTS)) == 1
    assert [measured.yaw for measured, _ in talk.reported] == [pytest.approx(math.radians(70))] * 2


def test_a_session_has_no_problems_before_its_first_turn():
    assert not any(Talk().session.problems)
