# SPDX-License-Identifier: Apache-2.0
"""GuiSession of dronegui_server in isolation, with a fake clock."""

import json
from dataclasses import replace

import pytest
from session_talk import SessionTalk, documents, notes, published
from verbs import by_session, verbs

from drone_bridge.dronegui.codec import MAX_FEATURES, Controls, Demo, Feature, FlightState, OtherNavdata, VisionDetect
from drone_bridge.dronegui.vehicle.device import CONTROLLER_TIMEOUT_S, GuiDialect
from drone_bridge.dronegui.vehicle.session.flying import DOUBTFUL, FlyingState
from drone_bridge.dronegui.vehicle.session.gui import (
    LATE,
    LEVEL,
    REFUSED,
    START_S,
    UNANSWERED,
    UNSENT,
    GuiParameters,
    GuiSession,
)
from drone_bridge.dronegui.vehicle.session.hover import HOVER, RETRY_S
from drone_bridge.session.operator_command import OPERATORS_LOST
from drone_bridge.session.session import AFTER_STALLS, SETTLING_S, Answer, Call, Send
from drone_bridge.wire.addresses import AllowedPeers

OPERATOR, OTHER, ELSEWHERE = ("192.0.2.1", 40000), ("192.0.2.2", 40000), ("198.51.100.1", 40000)
OWN, NAVDATA_PORT = ("127.0.0.1", 5561), 5561
FORWARD = Controls(hover=False, pitch=-0.5, roll=0.25)
BRIDGE, SECOND_BRIDGE = b"a bridge", b"another one"
DONE, NO_ANSWER = Answer(True, "done"), Answer(False, "/takeoff has not answered within 15.0 s", has_come=False)
UNCALLED = Answer(False, "no node offers /takeoff", was_called=False, has_come=False)


class Talk(SessionTalk):
    """Session of a GUI, with its vehicle and operator."""

    def __init__(self, allowed=("any",)):
        self.is_held = self.is_neutral_last = False
        self.publishers = {BRIDGE}
        self.flying = FlyingState("/flying", lambda: frozenset(self.publishers))
        self.seq = 0
        super().__init__(
            GuiSession(
                GuiParameters(),
                AllowedPeers(allowed),
                (GuiDialect(is_bootstrapped=True), OWN[0]),
                self.flying,
                is_held=lambda: self.is_held,
                is_neutral_last=lambda: self.is_neutral_last,
            )
        )

    def hear(self, data, source=OPERATOR):
        return list(self.session.receive(data, source, self.now_s))

    def say(self, source=OPERATOR, seq=None, **state):
        self.seq = self.seq + 1 if seq is None else seq
        full = {"take_off": False, "reset": False, "hover": False, "roll": 0, "pitch": 0, "yaw": 0, "gas": 0, **state}
        return self.hear(json.dumps({"seq": self.seq, "state": full}).encode(), source)

    def forward(self, source=OPERATOR):
        return self.say(source, pitch=-0.5, roll=0.25)

    def press(self, button):
        return [*self.say(**{button: True}), *self.say()]

    def answer(self, name, answer=DONE, tag=None):
        return list(self.session.answered(name, tag, answer, self.now_s))

    def fly(self, is_flying):
        """Receive a message on flying. None: none."""
        return [] if is_flying is None else list(self.flying.received(is_flying, self.now_s))

    def send_navdata(self):
        """Send data from topics, a period of navdata later; return the data for the GUI's own machine."""
        self.now_s += 1 / 15
        return documents(self.session.send_navdata(demo, self.now_s), OWN)


def demo(state):
    return Demo(ctrl_state=None if state is None else state << 16, altitude=1000)


def calls(actions):
    made = [action for action in actions if isinstance(action, Call)]
    return [call.name if call.tag is None else (call.name, call.tag) for call in made]


def presses(actions):
    return [call for call in calls(actions) if isinstance(call, str)]


@pytest.fixture
def talk():
    return Talk()


# Steering.


def test_nothing_is_published_before_a_packet(talk):
    assert (talk.run(60.0), talk.session.state, talk.session.is_open) == ([], "waiting for a peer", False)


def test_a_state_is_published_at_once_then_repeated_and_ends_in_one_zero(talk):
    actions = talk.forward()
    assert published(actions) == [FORWARD]
    assert notes(actions, "connections") == [""]
    assert notes(actions, "") == ["Controlled by 192.0.2.1:40000."]
    assert (talk.session.state, talk.session.peer, talk.session.is_open) == ("serving", "192.0.2.1:40000", True)
    assert published(talk.run(0.5)) == [FORWARD] * 10
    actions = talk.run(59.0)
    assert published(actions) == [LEVEL]
    (lost,) = notes(actions, OPERATORS_LOST)
    assert lost.startswith("192.0.2.1:40000 was silent for 0.5 s")
    assert talk.session.state == "serving"
    talk.run(1.0)
    assert (talk.session.state, talk.session.is_open) == ("waiting for a peer", False)


@pytest.mark.parametrize("state", [{"hover": True, "pitch": -1}, {}])
def test_hover_and_level_state_are_zero_and_later_silence_is_no_loss(talk, state):
    assert published(talk.say(**state)) == [LEVEL]
    assert notes(talk.run(60.0), OPERATORS_LOST) == []


def test_what_is_refused_keeps_no_state_in_force(talk):
    talk.forward()
    talk.now_s += 0.4
    assert "pitch is 'full'" in notes(talk.hear(b'{"seq": 9, "state": {"pitch": "full"}}'), "rejected_input")[0]
    late = notes(talk.say(seq=1, pitch=-1) and talk.say(seq=0, pitch=-1), LATE)
    assert len(late) == 1
    talk.run(0.4)
    talk.say(seq=0, pitch=-1)
    assert published(talk.run(0.2))[-1] == LEVEL


def test_who_is_not_allowed_changes_nothing():
    talk = Talk(allowed=("192.0.2.1",))
    actions = talk.forward(ELSEWHERE)
    (refusal,) = notes(actions, "refused_peers")
    assert "198.51.100.1:40000" in refusal
    assert "allowed_peers" in refusal
    assert (published(actions), talk.session.is_open) == ([], False)


def test_who_has_the_higher_number_takes_over(talk):
    talk.forward()
    actions = talk.say(OTHER, seq=100, pitch=-1)
    assert published(actions) == [Controls(hover=False, pitch=-1.0)]
    assert notes(actions, "") == ["Controlled by 192.0.2.2:40000."]
    assert notes(talk.say(OPERATOR, seq=3), LATE)
    assert talk.session.peer == "192.0.2.2:40000"


@pytest.mark.parametrize("leave", ["end", "lost"])
def test_whatever_ends_zero_comes_before_hover_is_let_go(talk, leave):
    talk.forward()
    talk.say(hover=True)
    actions = getattr(talk.session, leave)(talk.now_s)
    assert published(actions[:1]) == [LEVEL]
    assert calls(actions[1:]) == [(HOVER, False)]
    assert (talk.session.is_open, talk.session.is_over) == (False, leave == "end")
    assert talk.run(60.0) == []


def test_who_never_commanded_leaves_without_a_command(talk):
    assert (talk.session.end(talk.now_s), talk.session.is_over, talk.session.state) == ([], True, "closed")


# Stalls of this process.


def test_after_a_stall_no_packet_is_followed_until_what_waited_is_read(talk):
    talk.stall(3.0)
    actions = [*talk.say(take_off=True), *talk.say(reset=True), *talk.forward(), *talk.hear(b"?")]
    assert (published(actions), calls(actions), len(notes(actions, AFTER_STALLS))) == ([], [], 4)
    talk.now_s += SETTLING_S
    assert published(talk.forward()) == [FORWARD]


@pytest.mark.parametrize("stop", [{"hover": True, "roll": 1}, {}])
def test_a_stop_right_after_a_stall_ends_a_state_from_before(talk, stop):
    talk.forward()
    talk.stall(0.35)
    assert published([*talk.say(**stop), *talk.run(0.04)]) == [LEVEL]


def test_a_state_of_before_a_stall_ends_with_it_and_that_is_no_silence(talk):
    talk.forward()
    actions = [*talk.stall(3.0), *talk.run(1.0)]
    assert published(actions) == [LEVEL]
    assert (notes(actions, OPERATORS_LOST), len(notes(actions, AFTER_STALLS))) == ([], 1)
    assert talk.session.silent_s(talk.now_s) == 1.0


# Buttons.


def test_a_press_is_called_once_however_long_it_lasts_or_is_repeated(talk):
    actions = [action for _ in range(10) for action in talk.say(take_off=True)]
    assert presses([*actions, *talk.run(10.0), *talk.say()]) == ["takeoff"]
    assert presses(talk.press("take_off")) == ["takeoff"]


def test_take_off_toggles_by_what_succeeded_where_nothing_says_more(talk):
    talk.press("take_off")
    assert notes(talk.answer("takeoff"), "") == ["takeoff: done"]
    assert presses(talk.press("take_off")) == ["land"]
    talk.answer("land", Answer(False, "no"))
    assert presses(talk.press("take_off")) == ["land"]
    talk.answer("land")
    assert presses(talk.press("take_off")) == ["takeoff"]


def later(talk):
    """Let the operator be heard for longer than a start lasts."""
    for _ in range(3):
        talk.say()
        talk.now_s += START_S / 2
    return talk


# Meaning of reset.


#: By the document: each button, what is known of the flight, and whether the drone is held.
VERBS = {
    ("take_off", False, False): "takeoff", ("take_off", None, False): "takeoff", ("take_off", True, False): "land",
    ("take_off", False, True): REFUSED, ("take_off", None, True): REFUSED, ("take_off", True, True): "land",
    ("reset", False, False): "reset", ("reset", None, False): "emergency", ("reset", True, False): "emergency",
    ("reset", False, True): REFUSED, ("reset", None, True): "emergency", ("reset", True, True): "emergency",
    ("hover", None, False): [HOVER, HOVER],
}  # fmt: skip


@verbs(VERBS)
def test_each_button_is_executed_or_refused(talk, sent, meaning):
    button, is_flying, talk.is_held = sent
    later(talk).fly(is_flying)
    done = by_session(talk.press(button), REFUSED)
    assert [each for each in done if isinstance(each, str)] == meaning


@pytest.mark.parametrize("is_flying", [None, True])
def test_reset_of_a_program_that_has_just_started_is_withheld_once(talk, is_flying):
    talk.fly(is_flying)
    actions = talk.press("reset")
    assert (presses(actions), len(notes(actions, REFUSED))) == ([], 1)
    assert presses(talk.run(10.0)) == []
    assert presses(talk.press("reset")) == ["emergency"]


def test_a_program_that_is_started_again_and_again_cuts_no_motors(talk):
    """By its numbers, from the same port or another one."""
    later(talk)
    talk.fly(True)
    for source in (OPERATOR, (OPERATOR[0], 40001), OPERATOR, OPERATOR):
        talk.run(0.6)  # it starts
        actions = [*talk.say(source, seq=1, reset=True), *talk.say(source), *talk.run(0.1), *talk.say(source)]
        assert (presses(actions), len(notes(actions, REFUSED))) == ([], 1)
    assert presses(talk.press("reset")) == ["emergency"]


def test_a_sender_that_joins_with_higher_numbers_has_just_started(talk):
    later(talk)
    talk.fly(True)
    talk.seq += 1000
    assert presses(talk.say(OTHER, reset=True)) == []
    talk.say(OTHER)
    assert presses(talk.say(OTHER, reset=True)) == ["emergency"]
    talk.say(OPERATOR)
    assert presses(talk.say(OPERATOR, reset=True)) == ["emergency"]  # it is not a new sender


def test_operators_with_any_ports_and_numbers_can_cut_the_motors(talk):
    talk.fly(True)
    for port in range(50000, 50020):
        talk.say((OPERATOR[0], port))
    found = [
        presses([*talk.say((OPERATOR[0], 50100 + 2 * n), reset=True), *talk.say((OPERATOR[0], 50101 + 2 * n))])
        for n in range(2)
    ]
    assert found == [[], ["emergency"]]
    always = Talk()
    always.fly(True)
    for _ in range(3):
        always.say(seq=1)
        always.now_s += START_S / 2
    assert presses(always.say(seq=1, reset=True)) == ["emergency"]


def test_a_controller_that_goes_on_may_number_a_press_1(talk):
    """As dronegui_bridge does, so that no other controller prevents an emergency."""
    later(talk).fly(True)
    assert presses(talk.say(seq=1, reset=True)) == ["emergency"]


@pytest.mark.parametrize(
    ("answer", "counter", "sentence"),
    [
        (Answer(False, "it is held"), REFUSED, "takeoff was refused: it is held"),
        (UNCALLED, REFUSED, "takeoff was refused: no node offers /takeoff"),
        (NO_ANSWER, UNANSWERED, "takeoff was pressed, but /takeoff has not answered within 15.0 s."),
    ],
)
def test_a_press_that_comes_to_nothing_is_counted_and_not_repeated(talk, answer, counter, sentence):
    talk.press("take_off")
    actions = talk.answer("takeoff", answer)
    assert notes(actions, counter) == [sentence]
    assert presses([*actions, *talk.run(60.0)]) == []
    assert presses(talk.press("take_off")) == ["takeoff"]  # it was not believed to fly


# Whether it flies.


def test_node_started_in_flight_does_not_assume_a_landing(talk):
    talk.fly(True)
    talk.publishers = {SECOND_BRIDGE}
    assert len(notes(talk.fly(False), DOUBTFUL)) == 1
    assert presses(talk.press("take_off")) == ["land"]
    talk.answer("land")
    assert presses(talk.press("take_off")) == ["takeoff"]


def test_who_was_there_when_it_took_off_is_believed_and_navdata_always(talk):
    talk.fly(True)
    assert talk.fly(False) == []
    assert talk.flying.is_flying is False
    talk.fly(True)
    talk.publishers = {SECOND_BRIDGE}
    talk.fly(False)
    show(talk, FlightState.LANDED)
    assert talk.flying.is_flying is False


def test_a_press_counts_for_nothing_where_flying_is_said(talk):
    talk.fly(False)
    talk.press("take_off")
    talk.answer("takeoff")
    assert talk.flying.is_flying is False


def test_a_press_counts_for_nothing_where_navdata_shows_the_drone(talk):
    show(talk, FlightState.FLYING)
    talk.answer("land")
    assert talk.flying.is_flying


def show(talk, state):
    talk.session.forward(Demo(ctrl_state=state << 16), b"{}", talk.now_s)


def test_navdata_of_a_flight_vouches_for_nobody_who_came_later(talk):
    show(talk, FlightState.FLYING)
    talk.publishers = {SECOND_BRIDGE}
    show(talk, FlightState.FLYING)
    assert len(notes(talk.fly(False), DOUBTFUL)) == 1


def test_a_newcomer_is_believed_that_it_flies(talk):
    talk.fly(True)
    talk.publishers = {SECOND_BRIDGE}
    assert talk.fly(True) == []
    assert talk.fly(False) == []


def test_a_doubt_does_not_end_by_a_take_off(talk):
    talk.fly(True)
    talk.publishers = {SECOND_BRIDGE}
    for _ in range(2):
        assert len(notes(talk.fly(False), DOUBTFUL)) == 1
        talk.answer("takeoff")


def test_what_navdata_shows_outlives_its_unknown_states(talk):
    show(talk, FlightState.HOVERING)
    talk.session.forward(Demo(), b"{}", talk.now_s)
    assert talk.flying.is_flying


def test_the_state_in_navdata_is_what_is_known_of_it(talk):
    def state():
        return (talk.send_navdata()[0].get("ctrl_state", -1 << 16)) >> 16

    assert state() == -1
    talk.fly(False)
    assert state() == FlightState.LANDED
    talk.fly(True)
    talk.say(hover=True)
    assert state() == FlightState.HOVERING
    talk.say()
    assert state() == FlightState.FLYING
    talk.press("take_off")
    talk.answer("land")
    assert state() == FlightState.LANDING
    talk.fly(False)
    assert state() == FlightState.LANDED
    talk.fly(True)
    later(talk).press("reset")
    talk.fly(False)
    assert state() == FlightState.DEFAULT
    talk.fly(True)
    assert state() == FlightState.FLYING
    talk.fly(False)
    assert state() == FlightState.LANDED
    talk.press("reset")  # on the ground
    assert state() == FlightState.LANDED


# Hover.


def test_hover_is_called_when_it_changes(talk):
    assert calls(talk.say(hover=True)) == [(HOVER, True)]
    assert calls([*talk.say(hover=True), *talk.run(0.3)]) == []
    assert calls(talk.say()) == [(HOVER, False)]


@pytest.mark.parametrize("wanted", [True, False])
def test_a_call_of_hover_that_came_to_nothing_is_repeated_a_second_later(talk, wanted):
    def go_on(seconds):
        return [each for _ in range(round(10 * seconds)) for each in (*talk.say(hover=wanted), *talk.run(0.1))]

    talk.say(hover=not wanted)
    for answer, counted in ((UNCALLED, 0), (NO_ANSWER, 0), (Answer(False, "no"), 1)):
        talk.say(hover=wanted)
        assert len(notes(talk.answer(HOVER, answer, tag=wanted), REFUSED)) == counted
        assert calls(go_on(RETRY_S - 0.1)) == []
        assert calls(go_on(0.3)) == [(HOVER, wanted)]
    talk.answer(HOVER, tag=wanted)
    assert calls(go_on(2 * RETRY_S)) == []


def test_another_state_of_hover_is_called_at_once_whatever_failed(talk):
    talk.say(hover=True)
    talk.answer(HOVER, Answer(False, "no"), tag=True)
    assert calls(talk.say()) == [(HOVER, False)]
    talk.answer(HOVER, Answer(False, "no"), tag=False)
    assert calls(talk.say(hover=True)) == [(HOVER, True)]


def test_a_bridge_that_restarts_has_forgotten_hover(talk):
    talk.say(hover=True)
    talk.answer(HOVER, tag=True)
    talk.session.forget_hover(talk.now_s)
    assert calls([*talk.say(hover=True), *talk.say(hover=True)]) == [(HOVER, True)]


def test_displaced_hover_call_is_not_repeated(talk):
    talk.say(hover=True)
    talk.answer(HOVER, replace(NO_ANSWER, was_displaced=True), tag=True)
    assert calls([*talk.say(hover=True), *talk.run(0.3)]) == []


def test_unanswered_hover_call_is_not_repeated_once_unwanted(talk):
    talk.say(hover=True)
    talk.say()
    talk.answer(HOVER, NO_ANSWER, tag=True)
    assert calls([*talk.say(), *talk.run(0.3)]) == []


@pytest.mark.parametrize("leave", ["silence", "end", "lost"])
def test_hover_that_may_be_held_is_let_go(talk, leave):
    """A call without a response may have been carried out."""
    talk.say(hover=True)
    talk.is_neutral_last = True
    talk.run(1.0)
    talk.answer(HOVER, NO_ANSWER, tag=True)
    talk.is_neutral_last = False  # another program commands the drone
    actions = talk.run(1.0) if leave == "silence" else getattr(talk.session, leave)(talk.now_s)
    assert calls(actions) == [(HOVER, False)]


def test_silent_operators_hover_lasts_until_another_command_or_its_return(talk):
    talk.forward()
    assert calls(talk.run(0.502)) == [(HOVER, True)]  # because zero has just been sent
    talk.is_neutral_last = True
    assert calls(talk.run(10.0)) == []
    talk.is_neutral_last = False
    assert calls(talk.run(10.0)) == [(HOVER, False)]
    talk.is_neutral_last = True
    assert calls(talk.run(0.1)) == [(HOVER, True)]
    assert calls(talk.forward()) == [(HOVER, False)]


def test_an_operator_does_not_let_go_of_the_hover_of_a_held_drone(talk):
    talk.is_held = True
    assert calls([*talk.forward(), *talk.forward()]) == [(HOVER, True)]
    talk.is_held = False
    assert calls(talk.forward()) == [(HOVER, False)]


# Navdata.


def test_bridge_block_is_relayed_unchanged_to_own_host_and_controller(talk):
    datagram = b'{"type": "checksum",  "value": 1}'
    block = OtherNavdata("checksum", {"value": 1})
    assert talk.session.forward(block, datagram, talk.now_s) == [Send(datagram, OWN, UNSENT, ("other_navdata",))]
    talk.forward()
    actions = talk.session.forward(block, datagram, talk.now_s)
    sent = [(action.data, action.to) for action in actions]
    assert sent == [(datagram, OWN), (datagram, (OPERATOR[0], NAVDATA_PORT))]
    talk.run(CONTROLLER_TIMEOUT_S + 0.1)
    assert len(talk.session.forward(block, datagram, talk.now_s)) == 1


def test_topics_make_navdata_at_its_rate(talk):
    sent = []
    for _ in range(300):
        talk.now_s += 0.01
        sent += documents(talk.session.send_navdata(lambda state: Demo(altitude=1000), talk.now_s), OWN)
    assert 44 <= len(sent) <= 46
    assert sent[0] == {"type": "demo", "altitude": 1000.0}


def test_a_demo_that_is_early_is_not_even_made(talk):
    talk.send_navdata()
    assert talk.session.send_navdata(pytest.fail, talk.now_s) == []


def test_no_demo_is_sent_where_a_bridge_has_its_own(talk):
    assert talk.session.send_navdata(lambda state: None, talk.now_s) == []


def test_a_demo_that_is_sent_is_published_for_diagnostics(talk):
    actions = talk.session.send_navdata(lambda state: Demo(altitude=1000), talk.now_s)
    assert published(actions) == [Demo(altitude=1000)]
    assert [action.if_sent for action in actions if isinstance(action, Send)] == [("navdata",)]


def test_detections_are_sent_on_arrival_and_unsendable_ones_counted(talk):
    found = VisionDetect((Feature(500, 250, 120, 80, 150),))
    assert documents(talk.session.send_detections(found, talk.now_s), OWN)[0]["features"][0]["dist"] == 150
    too_many = VisionDetect(found.features * (MAX_FEATURES + 1))
    actions = talk.session.send_detections(too_many, talk.now_s)
    assert (documents(actions, OWN), len(notes(actions, "unencodable_messages"))) == ([], 1)
