# SPDX-License-Identifier: Apache-2.0
"""How a link's thread answers services: always, whatever happens to the link."""

import asyncio

import pytest

from drone_bridge.bridges.answers import MAX_UNANSWERED, MAX_WAITING, Answer, Errands


class Given(list):
    """Answers, without an executor."""

    def give(self, future, answer):
        self.append((future, answer))


def errands():
    given = Given()
    opened = Errands(given, "robot")
    opened.open()
    return opened, given


def test_an_errand_is_done_once_and_answered():
    opened, given = errands()
    errand = opened.submit("dig")
    assert opened.take() == [errand]
    assert opened.take() == []
    opened.answer(errand, "dug")
    opened.close("The end.")
    assert given == [(errand.answer, "dug")]


def test_all_errands_are_answered_when_the_link_ends_those_that_were_begun_included():
    opened, given = errands()
    begun = opened.submit("dig")
    opened.take()
    waiting = opened.submit("dive")
    opened.close("The end.")
    assert given == [(errand.answer, Answer(False, "The end.")) for errand in (begun, waiting)]
    with pytest.raises(ValueError, match="There is no connection to the robot now"):
        opened.submit("dig")


def test_there_is_an_end_to_waiting():
    opened, _ = errands()
    for _ in range(MAX_WAITING):
        opened.submit("dig")
    with pytest.raises(ValueError, match=f"{MAX_WAITING} requests are waiting already"):
        opened.submit("dig")


def test_there_is_an_end_to_errands_without_an_answer():
    opened, _ = errands()
    for _ in range(MAX_UNANSWERED):
        errand = opened.submit("dig")
        opened.take()
    with pytest.raises(ValueError, match=f"{MAX_UNANSWERED} requests have no answer yet"):
        opened.submit("dig")
    opened.answer(errand, "dug")
    opened.submit("dig")


def test_an_answer_that_comes_at_once_needs_no_second_turn():
    opened, given = errands()

    def do():
        (errand,) = opened.take()
        opened.answer(errand, errand.task + " is done")

    assert asyncio.run(opened.run("digging", do, patience_s=0.0)) == "digging is done"
    assert given == []
