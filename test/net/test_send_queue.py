# SPDX-License-Identifier: Apache-2.0
"""SendQueue: what its stream and a child process write of it, in any order."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drone_bridge.net.send_queue import SendQueue, StreamEntry

MESSAGE, NEXT = b"move 1.00\n", b"move 2.00\n"


class CountedQueue(SendQueue):
    """Queue whose counts are compared with its pieces after each change."""

    def _compare(self):
        assert self.size_bytes == sum(len(each.data) for each in self.pieces)
        assert self.limited == sum(each.is_limited for each in self.pieces)

    def put(self, *arguments, **options):
        super().put(*arguments, **options)
        self._compare()

    def _take(self, count):
        super()._take(count)
        self._compare()

    def drop_stale(self, *arguments, **options):
        dropped = super().drop_stale(*arguments, **options)
        self._compare()
        return dropped

    def clear(self):
        super().clear()
        self._compare()


@pytest.fixture
def queue():
    queue = CountedQueue()
    assert queue.drop_stale(1e9, oldest_s=1e9) == 0
    return queue


def drained(queue):
    """Write all that is queued."""
    data = b""
    while queue.pieces:
        first = queue.pieces[0].data
        data += first
        queue.written(len(first))
    return data


@given(cuts=st.sets(st.integers(1, len(MESSAGE) - 1)), written=st.integers(0, len(MESSAGE)), whole=st.booleans())
def test_a_begun_message_is_completed_once(cuts, written, whole):
    """The stream takes a part of a message in pieces; the child writes the rest, and neutral."""
    queue, entries = CountedQueue(), []
    queue.on_write = entries.append
    edges = [0, *sorted(cuts), len(MESSAGE)]
    for begin, end in pairwise(edges):
        queue.put(MESSAGE[begin:end], MESSAGE[end:])
    queue.put(NEXT)
    left = written
    while left:
        count = min(left, len(queue.pieces[0].data))
        queue.written(count)
        left -= count
    entry = queue.next_entry()
    assert entry == entries[-1]
    assert (entry.position, entry.has_begun) == (written, 0 < written < len(MESSAGE))
    assert entry.data == (MESSAGE[written:] or NEXT)
    rest = entry.data if entry.has_begun else b""
    queue.written_by_child(len(rest) + (len(NEXT) if whole else 0))
    assert entries[-1] == queue.next_entry()
    assert queue.next_entry().position == written + len(rest) + (len(NEXT) if whole else 0)
    assert not queue.next_entry().has_begun
    expected = NEXT if written else MESSAGE + NEXT
    assert drained(queue) == expected


@pytest.mark.parametrize("count", [1, 5])
def test_the_child_may_write_a_part_of_the_rest(queue, count):
    queue.put(MESSAGE)
    queue.written(4)
    queue.written_by_child(count)
    assert queue.next_entry() == StreamEntry(4 + count, MESSAGE[4 + count :], True)
    assert drained(queue) == MESSAGE[4 + count :]


def test_the_child_completes_a_message_whose_last_pieces_are_not_queued(queue):
    queue.put(MESSAGE[:4], MESSAGE[4:])
    queue.written(4)
    assert queue.next_entry() == StreamEntry(4, MESSAGE[4:], True)
    queue.written_by_child(len(MESSAGE) - 4)
    assert queue.next_entry() == StreamEntry(len(MESSAGE), b"", False)


def test_stale_pieces_are_dropped_but_the_rest_of_a_begun_one(queue):
    queue.put(MESSAGE, since_s=1.0)
    queue.put(NEXT, since_s=2.0)
    queue.put(b"neutral", since_s=3.0)
    queue.written(4)
    assert queue.drop_stale(9.0, oldest_s=3.0) == 1
    assert drained(queue) == MESSAGE[4:] + b"neutral"


def test_a_stale_piece_of_a_begun_message_is_kept(queue):
    queue.put(MESSAGE[:4], MESSAGE[4:], since_s=1.0)
    queue.written(4)
    queue.put(MESSAGE[4:], since_s=1.0)
    assert queue.drop_stale(9.0, oldest_s=2.0) == 0
    assert drained(queue) == MESSAGE[4:]


def test_all_pieces_of_a_begun_message_are_kept(queue):
    for begin in (0, 4, 7):
        queue.put(MESSAGE[begin : begin + 4 if not begin else begin + 3], MESSAGE[begin + (3 if begin else 4) :])
    queue.put(NEXT)
    queue.written(2)
    assert queue.drop_stale(9.0, oldest_s=2.0) == 1
    assert drained(queue) == MESSAGE[2:]


def test_a_message_in_pieces_is_dropped_as_a_whole(queue):
    queue.put(MESSAGE[:4], MESSAGE[4:], since_s=1.0)
    assert queue.drop_stale(9.0, oldest_s=2.0) == 0, "its rest follows"
    queue.put(MESSAGE[4:], since_s=3.0)
    queue.put(NEXT, since_s=3.0)
    assert queue.drop_stale(9.0, oldest_s=2.0) == 2
    assert drained(queue) == NEXT


@pytest.mark.parametrize("is_leaving", [False, True])
def test_a_message_that_is_always_wanted_outlasts_those_around_it(queue, is_leaving):
    queue.put(MESSAGE, since_s=1.0)
    queue.put(b"land\n", since_s=1.0, until_s=math.inf)
    queue.put(NEXT, since_s=1.0)
    assert queue.drop_stale(9.0, oldest_s=2.0, is_leaving=is_leaving) == 2
    assert drained(queue) == b"land\n"


@pytest.mark.parametrize(("at_s", "is_leaving", "dropped"), [(4.9, False, 0), (5.0, False, 1), (4.9, True, 1)])
def test_a_message_with_a_time_is_dropped_after_it_or_at_the_end(queue, at_s, is_leaving, dropped):
    queue.put(MESSAGE, until_s=5.0)
    queue.put(NEXT)
    assert queue.drop_stale(4.8) == 0
    assert queue.drop_stale(at_s, is_leaving=is_leaving) == dropped
    assert drained(queue) == (NEXT if dropped else MESSAGE + NEXT)


def test_no_piece_is_left_of_an_ended_stream(queue):
    queue.put(MESSAGE)
    queue.written(4)
    queue.put(NEXT, until_s=5.0)
    queue.clear()
    assert queue.next_entry() == StreamEntry(4, b"", False)


def test_each_message_is_decided_once(queue):
    decided = []
    for name, until_s in (("written", None), ("stale", 5.0), ("by the child", None), ("left", None)):
        queue.put(MESSAGE, until_s=until_s, decided=lambda is_sent, name=name: decided.append((name, is_sent)))
    queue.written(4)
    assert decided == []
    queue.drop_stale(5.0)
    queue.written(len(MESSAGE) - 4)
    queue.written(2)
    queue.written_by_child(len(MESSAGE) - 2)
    queue.clear()
    assert decided == [("stale", False), ("written", True), ("by the child", True), ("left", False)]


def test_a_message_behind_another_changes_no_entry(queue):
    entries = []
    queue.on_write = entries.append
    queue.put(MESSAGE)
    queue.put(NEXT)
    assert entries == [StreamEntry(0, MESSAGE, False)]
