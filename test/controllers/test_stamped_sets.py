# SPDX-License-Identifier: Apache-2.0
"""Messages of several topics, put together by their stamps."""

import itertools
from types import SimpleNamespace

import pytest

from drone_bridge.controllers.stamped_sets import KEPT, StampedSets

TOPICS = ("left", "right", "info")


class Message:
    def __init__(self, stamp, text=""):
        self.header = SimpleNamespace(stamp=SimpleNamespace(sec=int(stamp), nanosec=round(stamp % 1 * 1e9)))
        self.text = text


@pytest.fixture
def complete():
    """The stamps of the sets that were handed over, and each one's texts in the order of TOPICS."""
    return []


@pytest.fixture
def sets(complete):
    def take(messages):
        assert set(messages) == set(TOPICS)
        stamps = {(message.header.stamp.sec, message.header.stamp.nanosec) for message in messages.values()}
        assert len(stamps) == 1
        complete.append((stamps.pop()[0], "".join(messages[topic].text for topic in TOPICS)))

    return StampedSets(TOPICS, take)


def add(sets, stamp, *topics):
    for topic in topics:
        sets.add(topic, Message(stamp, topic[0]))


@pytest.mark.parametrize("order", list(itertools.permutations(TOPICS)))
def test_a_set_is_delivered_once_in_whatever_order_it_comes(sets, complete, order):
    add(sets, 1, *order)
    assert complete == [(1, "lri")]


def test_of_two_messages_with_the_same_stamp_the_newest_counts(sets, complete):
    sets.add("left", Message(1, "old"))
    sets.add("left", Message(1, "new"))
    add(sets, 1, "right", "info")
    assert complete == [(1, "newri")]


def test_stamps_that_run_back_start_over(sets, complete):
    add(sets, 100, "left")
    add(sets, 1, *TOPICS)
    add(sets, 2, *TOPICS)
    assert complete == [(1, "lri"), (2, "lri")]


def test_only_the_newest_incomplete_sets_are_kept(sets, complete):
    for stamp in range(KEPT + 1):
        add(sets, stamp, "left", "right")
    add(sets, 0, "info")  # too late; and this makes room at the cost of set 1
    assert complete == []
    add(sets, KEPT, "info")
    assert complete == [(KEPT, "lri")]
