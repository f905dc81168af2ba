# SPDX-License-Identifier: Apache-2.0
"""Procedures in isolation."""

from types import SimpleNamespace

import pytest

from drone_bridge.dronegui.session.procedures import Procedures, Until


@pytest.fixture
def answers():
    return []


@pytest.fixture
def procedures(answers):
    return Procedures(lambda *answer: answers.append(answer))


def steps(*waits, end="done"):
    for wait in waits:
        _ = yield wait
    if isinstance(end, Exception):
        raise end
    return end


def test_conditions_that_hold_and_passed_deadlines_take_one_turn(procedures, answers):
    procedures.start(request := SimpleNamespace(name="land"), steps(Until(bool, 2.0), Until(lambda: True)))
    procedures.turn(1.9)
    assert (answers, list(procedures)) == ([], [request])
    procedures.turn(2.0)
    assert (answers, list(procedures)) == ([(request, True, "done")], [])


def test_a_fault_is_no_success_and_others_continue(procedures, answers):
    procedures.start("faulty", steps(Until(lambda: True), end=KeyError("x")))
    procedures.start("refused", steps(Until(lambda: True), end=ValueError("No.")))
    with pytest.raises(KeyError):
        procedures.turn(1.0)
    procedures.turn(2.0)
    assert answers == [("refused", False, "No.")]


def test_a_stall_extends_deadlines_but_shortens_none(procedures, answers):
    procedures.start("early", steps(Until(bool, 2.0)))
    procedures.start("late", steps(Until(bool, 9.0)))
    procedures.extend(5.0)
    procedures.turn(4.9)
    assert answers == []
    procedures.turn(8.9)
    assert answers == [("early", True, "done")]
