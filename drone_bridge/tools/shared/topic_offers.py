# SPDX-License-Identifier: Apache-2.0
"""TopicOffers: QoS offered by the publishers of a topic, and the subscriptions that receive from all of them.

A subscription that requests latched messages (transient local) receives nothing from volatile publishers, and one that
does not request them misses those published before. So a topic with both kinds of publishers needs one of each. Both
receive the later messages of latched publishers, of which `DuplicateFilter` passes on the first copy.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rclpy.node import TopicEndpointInfo
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

#: Number of messages of a topic that are compared. Copies arrive within the same moment, or after a new subscription.
COMPARED = 2000


@dataclass(frozen=True, slots=True)
class TopicOffers:
    """QoS of a topic's publishers, as far as it determines the subscriptions."""

    latched_reliable: bool | None = None
    """Whether all latched publishers are reliable; None if there are none."""
    volatile_reliable: bool | None = None
    """Whether all other publishers are reliable; None if there are none."""

    @classmethod
    def of(cls, publishers: Sequence[TopicEndpointInfo]) -> "TopicOffers":
        """Combine the publishers of one type."""
        latched = [each for each in publishers if each.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL]
        volatile = [each for each in publishers if each.qos_profile.durability != DurabilityPolicy.TRANSIENT_LOCAL]
        return cls(_all_reliable(latched), _all_reliable(volatile))

    def joined(self, later: "TopicOffers") -> "TopicOffers":
        """Return the offers of these publishers and later ones."""
        return TopicOffers(
            _weaker(self.latched_reliable, later.latched_reliable),
            _weaker(self.volatile_reliable, later.volatile_reliable),
        )

    def requests(self, depth: int) -> list[QoSProfile]:
        """Return the strictest profiles that together receive from all publishers, the latched one first."""
        kinds = ((self.latched_reliable, True), (self.volatile_reliable, False))
        return [request(reliable, latched, depth) for reliable, latched in kinds if reliable is not None]


def request(reliable: bool, latched: bool, depth: int) -> QoSProfile:
    """Return the profile of a subscription."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


def is_latched(profile: QoSProfile) -> bool:
    """Return whether a profile offers or requests earlier messages."""
    return bool(profile.durability == DurabilityPolicy.TRANSIENT_LOCAL)


class DuplicateFilter:
    """Filter for the copies of messages that several subscriptions to a topic receive."""

    def __init__(self) -> None:
        self._order: deque[tuple[int, int]] = deque(maxlen=COMPARED)
        self._seen: set[tuple[int, int]] = set()

    def is_new(self, data: bytes, info: Mapping[str, Any]) -> bool:
        """Return whether this is the first copy. `info` is the middleware's message info."""
        published_ns: int = info.get("source_timestamp", 0)
        if published_ns <= 0:
            return True  # unknown, so that equal messages can't be told apart
        key = (published_ns, hash(data))
        if key in self._seen:
            return False
        if len(self._order) == COMPARED:
            self._seen.discard(self._order[0])
        self._order.append(key)
        self._seen.add(key)
        return True


def _all_reliable(publishers: Sequence[TopicEndpointInfo]) -> bool | None:
    reliable = [each.qos_profile.reliability == ReliabilityPolicy.RELIABLE for each in publishers]
    return all(reliable) if reliable else None


def _weaker(first: bool | None, second: bool | None) -> bool | None:
    return second if first is None else first if second is None else first and second
