# SPDX-License-Identifier: Apache-2.0
"""DuplicateNodes: which of two runs of one name gives way, and how long both warn."""

from random import Random

import pytest

from drone_bridge.session.duplicate_nodes import SETTLED_S, SIGN_S, DuplicateNodes

ACTIVE = {"is_active": True, "is_settled": True}


@pytest.mark.parametrize(
    ("age_s", "run", "is_active", "is_settled", "gives_way"),
    [
        (0.0, "a", True, True, True),
        (2.9, "a", True, True, True),
        (2.9, "c", True, True, True),
        (3.0, "a", True, True, False),
        (1.0, "a", True, False, True),
        (1.0, "c", True, False, False),
        (3.0, "a", True, False, False),
        (1.0, "a", False, True, False),
        (1.0, "b", True, True, False),
    ],
)
def test_only_a_run_in_its_first_3_s_gives_way(age_s, run, is_active, is_settled, gives_way):
    duplicates = DuplicateNodes("b", 50.0)
    assert duplicates.is_settled(50.0 + age_s) is (age_s >= SETTLED_S)
    assert duplicates.sign(run, 50.0 + age_s, is_active=is_active, is_settled=is_settled) is gives_way
    assert duplicates.first == (run if gives_way else "")


def test_a_run_that_gave_way_waits_until_that_one_reports_its_end():
    duplicates = DuplicateNodes("b", 50.0)
    assert duplicates.sign("a", 51.0, **ACTIVE)
    for now_s in (54.0, 4000.0):
        duplicates.sign("c", now_s, is_active=False, is_settled=True)
        assert duplicates.count(now_s + SIGN_S) == 1, "silence"
        assert duplicates.first == "a"
        assert not duplicates.sign("a", now_s + 2 * SIGN_S, **ACTIVE)
        assert duplicates.first == "a"
    for run in "cda":
        duplicates.sign(run, 4008.0, is_active=False, is_settled=True)
    assert duplicates.first == ""
    assert duplicates.count(4008.0) == 3, "with c and d"


def test_signs_count_for_3_s_and_few_are_kept():
    duplicates = DuplicateNodes("b", 50.0)
    for run, now_s in (("b", 60.0), ("a", 60.0), ("c", 61.0)):
        assert not duplicates.sign(run, now_s, **ACTIVE)
    assert [duplicates.count(now_s) for now_s in (62.9, 63.0, 64.0)] == [3, 2, 1]
    for number in range(1000):
        duplicates.sign(str(number), 70.0, **ACTIVE)
    assert duplicates.count(70.0) == 18


@pytest.mark.parametrize("lead_s", [0.0, 0.4, 1.7, 2.9, 3.1, 60.0])
@pytest.mark.parametrize(("first", "later"), ["ab", "ba"])
def test_of_two_runs_that_receive_each_other_one_goes_on(first, later, lead_s):
    """Each publishes at its start and every second. A sign arrives within 0.5 s, at a run that has started."""
    chance, starts = Random(lead_s), {first: 0.0, later: lead_s}
    runs, stopped = {each: DuplicateNodes(each, at) for each, at in starts.items()}, set()
    sent = [
        (at + second, run, other)
        for run, other in (first + later, later + first)
        for at in (starts[run],)
        for second in range(90)
    ]
    arrivals = sorted((at + chance.uniform(0.0, 0.5), at, run, other) for at, run, other in sent)
    for now_s, sent_at, run, other in arrivals:
        if now_s >= starts[other] and run not in stopped and other not in stopped:
            settled = runs[run].is_settled(sent_at)
            if runs[other].sign(run, now_s, is_active=True, is_settled=settled):
                stopped.add(other)
    assert len(stopped) == 1
    assert lead_s < SETTLED_S or stopped == {later}
