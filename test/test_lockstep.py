# SPDX-License-Identifier: Apache-2.0
"""Waiting for the command that answers a frame: which one is taken, and what ends the waiting."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from patience import TIMEOUT_S

from drone_bridge.ros.lockstep import Lockstep
from drone_bridge.session.arbiter import Arrival

FRAME, OTHER = (1, 500), (1, 600)


class Waiting:
    """A lockstep and what it follows."""

    def __init__(self):
        self.arbiter = SimpleNamespace(newest=None)
        self.lockstep = Lockstep(self.arbiter)

    def put(self, arrival):
        self.arbiter.newest = arrival
        self.lockstep.look()

    def answer(self, stamp=FRAME):
        """Return what answers the frame already."""
        return self.lockstep.wait_for(stamp, 0.0)


@pytest.fixture
def waiting():
    return Waiting()


def test_only_the_command_of_the_frame_answers_it(waiting):
    assert waiting.answer() is None
    answer = Arrival("answer", 0.0, stamp=FRAME)
    waiting.put(answer)
    assert waiting.answer() is answer
    assert waiting.answer(OTHER) is None


def test_a_command_without_a_stamp_does_not_keep_a_frame_from_its_answer(waiting):
    answer = Arrival("answer", 0.0, stamp=FRAME)
    waiting.put(answer)
    waiting.put(Arrival("any time", 0.0))
    assert waiting.answer() is answer
    waiting.put(Arrival("next", 0.0, stamp=OTHER))
    assert waiting.answer() is None


@pytest.mark.parametrize("forget", [lambda waiting: waiting.put(None), lambda waiting: waiting.lockstep.restart()])
def test_what_is_forgotten_answers_nothing(waiting, forget):
    waiting.put(Arrival("answer", 0.0, stamp=FRAME))
    forget(waiting)
    assert waiting.answer() is None


def test_what_comes_meanwhile_ends_the_waiting(waiting):
    answer = Arrival("answer", 0.0, stamp=FRAME)
    with ThreadPoolExecutor(1) as thread:
        waited = thread.submit(waiting.lockstep.wait_for, FRAME, TIMEOUT_S)
        waiting.put(answer)
        assert waited.result() is answer


def test_the_end_of_the_link_ends_the_waiting_until_the_next_conversation(waiting):
    with ThreadPoolExecutor(1) as thread:
        waited = thread.submit(waiting.lockstep.wait_for, FRAME, 10 * TIMEOUT_S)
        waiting.lockstep.close()
        assert waited.result(TIMEOUT_S) is None
    answer = Arrival("answer", 0.0, stamp=FRAME)
    waiting.put(answer)
    assert waiting.answer() is None
    waiting.lockstep.restart()
    waiting.put(answer)
    assert waiting.answer() is answer
