# SPDX-License-Identifier: Apache-2.0
"""Subscriptions that receive from all publishers of a topic, and each message once."""

from types import SimpleNamespace

import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from drone_bridge.tools.shared import topic_offers
from drone_bridge.tools.shared.topic_offers import DuplicateFilter, TopicOffers, is_latched


def publisher(reliable, latched):
    profile = QoSProfile(
        depth=1,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )
    return SimpleNamespace(qos_profile=profile)


def requested(offers):
    return [
        (is_latched(each), each.reliability == ReliabilityPolicy.RELIABLE, each.depth) for each in offers.requests(5)
    ]


@pytest.mark.parametrize(
    ("publishers", "expected"),
    [
        ([], []),
        ([(True, True)], [(True, True, 5)]),
        ([(True, False)], [(False, True, 5)]),
        ([(True, False), (False, False)], [(False, False, 5)]),
        ([(True, True), (False, False)], [(True, True, 5), (False, False, 5)]),
        ([(False, True), (True, True), (True, False)], [(True, False, 5), (False, True, 5)]),
    ],
)
def test_each_durability_has_a_subscription(publishers, expected):
    assert requested(TopicOffers.of([publisher(*each) for each in publishers])) == expected


def test_later_publishers_only_weaken():
    strict, loose = TopicOffers(latched_reliable=True), TopicOffers(latched_reliable=False, volatile_reliable=True)
    assert strict.joined(loose) == loose.joined(strict) == loose
    assert loose.joined(TopicOffers()) == loose


def test_a_copy_is_recognized_and_nothing_else():
    once = DuplicateFilter()
    first = {"source_timestamp": 7}
    assert [once.is_new(b"a", first), once.is_new(b"a", first)] == [True, False]
    assert once.is_new(b"b", first), "of another publisher at the same moment"
    assert once.is_new(b"a", {"source_timestamp": 8}), "published again"
    assert [once.is_new(b"a", {}) for _ in range(2)] == [True, True], "unknown time"
    assert not once.is_new(b"a", first)


def test_the_filter_is_bounded():
    once = DuplicateFilter()
    for number in range(3 * topic_offers.COMPARED):
        assert once.is_new(b"a", {"source_timestamp": 1 + number})
    assert len(once._seen) == topic_offers.COMPARED
