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
    assert (answers, procedures.is_running("land")) == ([], True)
    procedures.turn(2.0)
    assert (answers, procedures.is_running("land")) == ([(request, True, "done")], False)


def test_a_fault_is_no_success_and_others_continue(procedures, answers):
    procedures.start(SimpleNamespace(name="faulty"), steps(Until(lambda: True), end=KeyError("x")))
    procedures.start(refused := SimpleNamespace(name="refused"), steps(Until(lambda: True), end=ValueError("No.")))
    with pytest.raises(KeyError):
        procedures.turn(1.0)
    procedures.turn(2.0)
    assert answers == [(refused, False, "No.")]


def test_the_end_fails_all_requests_but_those_of_one_name(procedures, answers):
    requests = [SimpleNamespace(name=name) for name in ("land", "takeoff")]
    for each in requests:
        procedures.start(each, steps(Until(bool, 2.0)))
    procedures.end("No.", but="land")
    procedures.turn(2.0)
    assert answers == [(requests[1], False, "No."), (requests[0], True, "done")]
