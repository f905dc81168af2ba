# SPDX-License-Identifier: Apache-2.0
"""Requests whose answers carry no id: no answer is taken for that of another one."""

import pytest

from drone_bridge.session.requests_in_turn import MAX_WAITING, RequestsInTurn
from drone_bridge.wire import LocalProtocolError


def test_one_is_on_its_way_at_a_time_and_each_is_sent_once():
    requests = RequestsInTurn(late_answer_s=2.0)
    for request in ("takeoff", "land"):
        requests.ask(request, timeout_s=10.0)
    assert [requests.due(now_s) for now_s in (0.0, 0.1)] == ["takeoff", None]
    assert requests.answered() == "takeoff"
    assert (requests.due(1.0), requests.answered(), requests.answered()) == ("land", "land", None)
    assert requests.is_idle


@pytest.mark.parametrize("comes", [True, False])
def test_after_a_timeout_the_next_one_waits_for_the_late_answer(comes):
    requests = RequestsInTurn(late_answer_s=2.0)
    for request in ("takeoff", "land"):
        requests.ask(request, timeout_s=10.0)
    requests.due(0.0)
    assert [requests.overdue(now_s) for now_s in (10.0, 10.5, 10.6)] == [None, "takeoff", None]
    assert requests.due(11.0) is None
    if comes:
        assert requests.answered() is None
        assert requests.due(11.0) == "land"
    else:
        assert requests.due(12.5) == "land"


def test_too_many_are_refused_and_the_end_names_those_without_an_answer():
    requests = RequestsInTurn(late_answer_s=2.0)
    for number in range(MAX_WAITING):
        requests.ask(number, 1.0)
    with pytest.raises(LocalProtocolError, match="wait for an answer already"):
        requests.ask(MAX_WAITING, 1.0)
    requests.due(0.0)
    assert requests.end() == list(range(MAX_WAITING))
    assert requests.is_idle
