# SPDX-License-Identifier: Apache-2.0
"""Rows of a client's session with a robot in one class: those in the docstrings, and what all of them promise."""

import itertools

import pytest
from robot_class_talk import ClientTalk, outcomes
from session_talk import sent
from test_answers import Vacuum

from drone_bridge.robot_class import client_session, obedience
from drone_bridge.robot_class.client_requests import row_of
from drone_bridge.session.arbiter import Rank

#: Situations in which a request is refused when it is called, and others.
REFUSALS = {
    "ends": {"no link", "stale"},
    "other": {"no link", "stale", "silence", "pending"},
    "moves": {"no link", "stale", "silence", "pending", "landing", "unproven", "disobeys"},
}
OTHERS = {"an answer is outstanding", "hold"}


def states(each):
    return "any" if each == client_session.ANY else ", ".join(sorted(each))


SHOWN = {
    client_session: [
        (event, states(before), then, {None: "as before", True: "yes"}.get(is_open, "no"))
        for event, (before, then, is_open) in client_session.ROWS.items()
    ],
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


@pytest.mark.parametrize("kind", REFUSALS)
def test_requests_are_sent_but_in_these_situations(kind):
    situations = sorted(REFUSALS["moves"] | OTHERS)
    for found in (set(each) for size in range(4) for each in itertools.combinations(situations, size)):
        is_pending, is_busy = (
            kind == "ends" and "pending" in found,
            kind != "ends" and "an answer is outstanding" in found,
        )
        then = "repeat" if is_pending else "wait" if is_busy else "send"
        assert row_of("called", kind, found)[0] == ("refuse" if found & REFUSALS[kind] else then)
        is_void = "stale" in found or (kind == "moves" and "hold" in found)
        assert row_of("its turn", kind, found)[0] == ("refuse" if is_void else "send")


def test_what_has_waited_on_hold_is_sent_once_but_no_motion():
    talk = ClientTalk(Vacuum)
    talk.connect(b"ok\n")
    talk.rank = Rank.HOLD
    assert talk.ask("clean") == talk.ask("beep") == [], "the rest of neutral is not answered yet"
    answers = [b"1\n", *[b"ok\n", b"1\n"] * 9]
    actions = [each for data in answers for each in (*talk.hear(data), *talk.run(0.2))]
    assert [each.request for each in sent(actions) if each.data == b"beep\n"] == [None], "its answer decides"
    refusal = "clean had to wait, and was not sent. Please call again."
    assert outcomes(actions) == [("clean", False, refusal), ("beep", True, "ok")]


def test_disobedience_is_found_once_until_the_robot_is_greeted_again():
    robot = obedience.Obedience()
    robot.started(0.0)
    assert robot.found == (0, "")
    for now_s, robot.reported, found in ((0.5, "up", ""), (2.0, "", ""), (2.0, "up", "up"), (2.1, "down", "")):
        assert robot.judge(now_s, is_connected=False) == "", "before its first greeting has ended"
        assert robot.judge(now_s, is_connected=True) == found
    assert robot.found == (1, "up")
