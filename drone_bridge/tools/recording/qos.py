# SPDX-License-Identifier: Apache-2.0
"""Quality of service: what to request for what publishers offer, and how a bag notes an offer."""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TypeVar

from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime

# Enough for a burst, such as the latched transforms of many nodes at once.
SUBSCRIPTION_DEPTH = 100
Policy = TypeVar("Policy", bound=Enum)


def request_for(offers: Sequence[QoSProfile]) -> QoSProfile:
    """Return the strictest profile that every one of the offers, at least one, satisfies."""
    reliable = all(offer.reliability == ReliabilityPolicy.RELIABLE for offer in offers)
    latched = all(offer.durability == DurabilityPolicy.TRANSIENT_LOCAL for offer in offers)
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=SUBSCRIPTION_DEPTH,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


def for_bag(offers: Iterable[QoSProfile]) -> list[Qos]:
    """Return the different ones among the offers, as rosbags writes them."""
    return list(dict.fromkeys(_for_bag(offer) for offer in offers))


def _for_bag(offer: QoSProfile) -> Qos:
    return Qos(
        history=_policy(QosHistory, offer.history),
        depth=offer.depth,
        reliability=_policy(QosReliability, offer.reliability),
        durability=_policy(QosDurability, offer.durability),
        deadline=_time(offer.deadline),
        lifespan=_time(offer.lifespan),
        liveliness=_policy(QosLiveliness, offer.liveliness),
        liveliness_lease_duration=_time(offer.liveliness_lease_duration),
        avoid_ros_namespace_conventions=offer.avoid_ros_namespace_conventions,
    )


def _policy(kind: type[Policy], value: int) -> Policy:
    """Both sides number the policies as rmw does."""
    return kind(int(value)) if int(value) in {member.value for member in kind} else kind["UNKNOWN"]


def _time(duration: Duration) -> QosTime:
    return QosTime(*divmod(duration.nanoseconds, 10**9))
