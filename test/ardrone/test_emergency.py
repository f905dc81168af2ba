# SPDX-License-Identifier: Apache-2.0
"""The emergency bit and the level: their rows, the tables in their docstrings, and edges as a drone sees them."""

import itertools
import random

import pytest

from drone_bridge.ardrone.session import emergency as bits
from drone_bridge.ardrone.session import requests

PERIOD_S = 0.033
DOWN = {bits.RESETTING, bits.PRESSED}
#: All bits, events, what is shown, and who waits.
SITUATIONS = [
    {other}.union(*(row[column] for row in bits.ROWS))
    for column, other in enumerate((bits.DOUBTED, bits.CALLED, bits.UNKNOWN, bits.NOBODY))
]


def rows_in(module):
    """Return the rows of the table in a docstring, as lists of cells."""
    rows = [line[2:-2].split(" | ") for line in module.__doc__.splitlines() if line.startswith("| ")]
    return rows[1:]


def test_the_docstrings_have_the_rows():
    shown = [(*(", ".join(sorted(each)) for each in row[:4]), row.then or "as before", row.answer) for row in bits.ROWS]
    assert [tuple(cell.strip() for cell in row) for row in rows_in(bits)] == shown
    levels = {(level, phase): then for level, phases, then in rows_in(requests) for phase in phases.split(", ")}
    assert levels == {(level, phase): then for level, row in requests.LEVELS.items() for phase, then in row.items()}


def test_a_press_begins_by_a_call_and_never_ends_a_shown_emergency():
    for bit, event, shown, waits in itertools.product(*SITUATIONS):
        row = bits.row_of(bit, event, shown, waits)
        if row.then == bits.RESETTING:
            assert (bit, event) == (bits.UP, bits.RESET_CALLED)
        elif row.then in DOWN:
            assert bit not in DOWN  # each press has an edge of its own
            assert shown not in (bits.SHOWN, bits.SHOWN_BEFORE)
            assert event == bits.CALLED or (event, shown, waits) == (bits.REPORTED, bits.NOT_SHOWN, bits.WAITS)


class Toggled:
    """Bit, and a drone that toggles its emergency at each edge that it gets."""

    def __init__(self, seed=0):
        self.bit, self.now_s, self.sent = bits.EmergencyBit(), 10.0, []
        self.is_pressed = self.is_emergency = False
        self.chance = random.Random(seed)

    def call(self, event, shown=None):
        return self.bit.on(event, self.now_s, shown or (bits.SHOWN if self.is_emergency else bits.NOT_SHOWN))

    def report(self, waits=bits.WAITS):
        self.bit.on(bits.REPORTED, self.now_s, bits.SHOWN if self.is_emergency else bits.NOT_SHOWN, waits)

    def send(self, count=1):
        for _ in range(count):
            is_set = self.bit.in_packet(self.now_s)
            self.now_s += PERIOD_S
            self.sent.append((self.now_s, is_set))
            self.is_emergency ^= is_set and not self.is_pressed
            self.is_pressed = is_set
        return self


@pytest.mark.parametrize("seed", range(20))
def test_each_press_has_an_edge_of_its_own(seed):
    """Whatever is called, and whatever navdata shows."""
    talk = Toggled(seed)
    for _ in range(400):
        event = talk.chance.choice((bits.CALLED, bits.RESET_CALLED, bits.RELEASED))
        if talk.chance.random() < 0.1:
            talk.call(event, talk.chance.choice((bits.SHOWN, bits.NOT_SHOWN, bits.UNKNOWN)))
        if talk.chance.random() < 0.1:
            talk.report(talk.chance.choice((bits.WAITS, bits.TOO_OLD)))
        talk.send()
    runs = [(is_set, [time for time, _ in run]) for is_set, run in itertools.groupby(talk.sent, lambda each: each[1])]
    assert sum(is_set for is_set, _ in runs) > 10
    assert all(len(times) >= 3 for is_set, times in runs[1:-1] if not is_set)
    presses_s = [times[-1] - times[0] for is_set, times in runs if is_set]
    assert bits.PRESS_S / 2 < max(presses_s) < bits.PRESS_S


def test_an_emergency_during_a_reset_is_pressed_once_navdata_decides():
    talk = Toggled()
    talk.is_emergency = True
    talk.call(bits.RESET_CALLED)
    talk.send()
    assert not talk.is_emergency
    assert not talk.call(bits.CALLED, bits.SHOWN)  # by navdata from before the edge
    talk.send()
    assert not talk.bit.is_down
    talk.report()
    assert talk.send(4).is_emergency
    assert [is_set for _, is_set in talk.sent] == [True, False, False, False, True, True]


def test_a_second_call_does_not_prolong_the_press():
    talk = Toggled()
    talk.call(bits.CALLED)
    talk.send()
    talk.now_s += 0.3
    talk.call(bits.CALLED, bits.NOT_SHOWN)
    talk.send()
    talk.now_s += 0.2
    talk.send()
    assert [is_set for _, is_set in talk.sent] == [True, True, False]


def test_a_call_in_a_shown_emergency_presses_nothing_and_reset_waits_for_its_end():
    talk = Toggled()
    assert not talk.call(bits.CALLED)
    assert talk.call(bits.RESET_CALLED) == bits.JUST_CALLED
    talk.send().report()
    assert talk.call(bits.CALLED) == bits.OFF
    assert talk.send(20).is_emergency


@pytest.mark.parametrize("bit", [bits.UP, bits.RESETTING, bits.PRESSED, bits.DOUBTED])
def test_after_a_stall_the_bit_is_up_until_navdata_decides(bit):
    talk = Toggled()
    talk.bit.state = bit
    talk.bit.on(bits.STALLED, talk.now_s)
    assert not talk.send(20).is_emergency
    talk.report(bits.WAITS)
    assert talk.send().is_emergency


def test_a_call_after_a_stall_presses_at_once_unless_it_joins_another_one():
    for waits in (bits.NOBODY, bits.WAITS, bits.TOO_OLD):
        talk = Toggled()
        talk.bit.on(bits.STALLED, talk.now_s)
        talk.bit.on(bits.CALLED, talk.now_s, bits.UNKNOWN, waits)
        assert talk.send().is_emergency == (waits == bits.NOBODY)
