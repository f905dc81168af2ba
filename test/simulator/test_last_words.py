# SPDX-License-Identifier: Apache-2.0
"""Last words of simulator_bridge: zero at the end, and nothing in a stall."""

from random import Random

from last_words import each_conversation, sent_by_end, words_of
from simulator_talk import EAST, NORTH, SET, STOPPED, SimulatorTalk

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute


@each_conversation
def test_last_words_are_what_end_sends(seed):
    chance = Random(seed)
    talk = SimulatorTalk()
    talk.connect()
    for _ in range(chance.randrange(12)):
        talk.arbiter.command, talk.arbiter.arrived_s = chance.choice((None, NORTH, EAST, STOPPED)), talk.now_s
        talk.take(talk.session.commanded(talk.now_s))
        talk.run(chance.uniform(0.0, 0.3))
    words = words_of(talk.session)
    velocities = [each for each in talk.of(sim.SetEntity) if each.attribute == Attribute.VELOCITY]
    ended = sent_by_end(talk.session, talk.now_s)
    if words:
        assert words == ended
        assert talk.session.last_words() is None
    else:
        assert tuple(velocities[-1].value) == SET[STOPPED]


def test_a_stalled_bridge_sends_no_requests():
    talk = SimulatorTalk()
    talk.connect()
    talk.arbiter.command, talk.arbiter.arrived_s = NORTH, talk.now_s
    talk.take(talk.session.commanded(talk.now_s))
    assert talk.session.last_words().neutral == ()
