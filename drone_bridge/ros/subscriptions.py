# SPDX-License-Identifier: Apache-2.0
"""Subscriptions that receive from every publisher of their topic, regardless of its QoS.

A subscription that requests earlier messages (transient local) or retransmission (reliable) gets nothing from a
publisher that does not offer that. A second subscription with a weaker request receives from such publishers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rclpy.callback_groups import CallbackGroup
from rclpy.qos import DurabilityPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy

from drone_bridge.ros.distributions import SubscriptionEventCallbacks, UnsupportedEventTypeError

if TYPE_CHECKING:
    from rclpy.node import Node
    from rclpy.qos_overriding_options import QoSOverridingOptions


_CONSEQUENCES = {
    QoSPolicyKind.DURABILITY: "without durability transient_local, so that earlier messages are not received",
    QoSPolicyKind.RELIABILITY: "without reliability reliable, so that lost messages are not sent again",
}


def subscribe(
    node: Node,
    message_type: type,
    topic: str,
    callback: Callable[[Any], Any],
    qos: QoSProfile | int,
    *,
    callback_group: CallbackGroup | None = None,
    overridable: QoSOverridingOptions | None = None,
    keep: Callable[[Any], None] = lambda subscription: None,
) -> None:
    """Subscribe to all publishers of a topic, with a QoS or depth, and with a weaker QoS for weaker publishers.

    The weaker subscription is created, and logged, when such a publisher is discovered. From then on, messages of
    stronger publishers arrive twice. `keep` gets each subscription; `overridable` applies to the first one.
    """
    made: set[tuple[DurabilityPolicy, ReliabilityPolicy]] = set()

    def create(wanted: QoSProfile, events: Any) -> Any:
        return node.create_subscription(
            message_type,
            topic,
            callback,
            copy.copy(wanted),  # an override modifies the profile, which may be shared
            callback_group=callback_group,
            event_callbacks=events,
            qos_overriding_options=None if made else overridable,  # these parameters exist once per topic
        )

    def add(wanted: QoSProfile) -> None:
        def on_incompatible(info: Any) -> None:
            less = _without(subscription.qos_profile, info.last_policy_kind)
            if less and (less.durability, less.reliability) not in made:
                name = node.resolve_topic_name(topic)
                node.get_logger().info(f"{name} is published {_CONSEQUENCES[info.last_policy_kind]}.")
                add(less)

        try:
            # No other events: each one makes every wait of an executor slower.
            events = SubscriptionEventCallbacks(incompatible_qos=on_incompatible, use_default_callbacks=False)
            subscription = create(wanted, events)
        except UnsupportedEventTypeError:  # where every subscription matches every publisher
            subscription = create(wanted, None)
        made.add((subscription.qos_profile.durability, subscription.qos_profile.reliability))
        keep(subscription)

    add(QoSProfile(depth=qos) if isinstance(qos, int) else qos)


def _without(qos: QoSProfile, kind: QoSPolicyKind) -> QoSProfile | None:
    """Return the profile with a weaker request for a policy. Return None for an unknown policy."""
    less = copy.copy(qos)
    if kind == QoSPolicyKind.DURABILITY:
        less.durability = DurabilityPolicy.VOLATILE
    elif kind == QoSPolicyKind.RELIABILITY:
        less.reliability = ReliabilityPolicy.BEST_EFFORT
    else:
        return None
    return less
