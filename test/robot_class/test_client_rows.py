# SPDX-License-Identifier: Apache-2.0
"""Rows of a client's session with a robot in one class: those in the docstrings, and what all of them promise."""

import itertools

import pytest
from robot_class_talk import ClientTalk, data_of
from test_answers import Vacuum

from drone_bridge.robot_class import client_requests, client_session, obedience
from drone_bridge.robot_class.client_requests import row_of

SITUATIONS = sorted({situation for _, _, situation, _, _ in client_requests.ROWS} - {"any"})


def states(each):
    return "any" if each == client_session.ANY else ", ".join(sorted(each))


SHOWN = {
    client_session: [
        (event, states(before), then, {None: "as before", True: "yes"}.get(is_open, "no"))
        for event, (before, then, is_open) in client_session.ROWS.items()
    ],
    client_requests: list(client_requests.ROWS),
    obedience: [
        (", ".join(each for each in row if row[each] == then), event, then)
        for event, row in obedience.ROWS.items()
        for then in dict.fromkeys(row.values())
    ],
}


@pytest.mark.parametrize("module", SHOWN)
def test_the_docstrings_have_the_rows(module):
    lines = module.__doc__.replace("\\\n", "").splitlines()
    rows = [tuple(cell.strip() for cell in line[1:-1].split(" | ")) for line in lines if line.startswith("| ")]
    assert rows[-len(SHOWN[module]) :] == SHOWN[module]


def test_what_ends_something_is_sent_at_once_but_without_a_link_or_when_stale():
    for found in (each for size in (1, 2, 3) for each in itertools.combinations(SITUATIONS, size)):
        is_refused = row_of("called", "ends", found)[0] not in ("send", "repeat")
        assert is_refused == ("no link" in found or "stale" in found)
        others = [row_of("called", each, found)[0] for each in ("moves", "other")]
        assert not is_refused or others == ["refuse", "refuse"]


def test_a_request_that_has_waited_is_sent_once():
    talk = ClientTalk(Vacuum)
    talk.connect(b"ok\n")
    assert data_of(talk.ask("beep")) == [], "the rest of neutral is not answered yet"
    answers = [b"1\n", *[b"ok\n", b"1\n"] * 9]
    assert data_of([each for data in answers for each in (*talk.hear(data), *talk.run(0.2))]).count(b"beep\n") == 1


def test_disobedience_is_found_once_until_the_robot_is_greeted_again():
    robot = obedience.Obedience()
    robot.started(0.0)
    assert robot.found == (0, "")
    for now_s, robot.reported, found in ((0.5, "up", ""), (2.0, "", ""), (2.0, "up", "up"), (2.1, "down", "")):
        assert robot.judge(now_s, is_connected=False) == "", "before its first greeting has ended"
        assert robot.judge(now_s, is_connected=True) == found
    assert robot.found == (1, "up")
