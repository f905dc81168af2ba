# SPDX-License-Identifier: Apache-2.0
"""Last words of ardrone_bridge: hover, without a level, and what the drone makes of them."""

from ardrone_talk import Talk, commands_in

from drone_bridge.ardrone.codec import COMMANDS, PROGRESSIVE, Pcmd, Ref
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.session.session import Send


def moving():
    talk = Talk().flying()
    talk.pilot.wanted = Shares(pitch=0.5)
    talk.run(1.0)
    assert not talk.drone.flight.is_hovering
    return talk


def words_of(talk):
    words = talk.session.last_words()
    assert (words.leaves, words.to) == ((), COMMANDS)
    return words.neutral


def test_a_moving_drone_is_left_hovering_with_its_level():
    talk = moving()
    data = words_of(talk)[0]
    assert commands_in(Send(data, COMMANDS)) == [Pcmd()]
    talk.drone.receive(data, talk.now_s)
    assert talk.drone.flight.is_hovering
    assert talk.drone.ref == Ref(True)


def test_they_are_what_the_end_sends():
    talk = moving()
    data = words_of(talk)[0]
    assert talk.session.end(talk.now_s)[0].data == data


def test_a_hovering_drone_needs_none():
    talk = Talk().flying()
    talk.run(0.5)
    assert talk.session.last_words() is None
    assert Talk().session.last_words() is None


def test_a_pressed_emergency_is_released():
    talk = moving()
    talk.is_linked = False
    talk.ask("emergency")
    assert commands_in(Send(words_of(talk)[0], COMMANDS)) == [Pcmd(), Ref()]


def test_commands_after_words_that_were_sent_are_not_late():
    talk = moving()
    for data in words_of(talk):
        talk.drone.receive(data, talk.now_s)
    talk.session.neutral_sent(talk.now_s)
    talk.stall(0.5)
    talk.run(0.5)
    assert talk.drone.counts.get("late", 0) == 0
    assert not talk.drone.flight.is_hovering
    assert PROGRESSIVE in [each.flags for each in talk.sent()[-5:] if isinstance(each, Pcmd)]
