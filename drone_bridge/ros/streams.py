# SPDX-License-Identifier: Apache-2.0
"""TopicStream: polled subscription, whose messages wake no executor.

rclpy's executor rebuilds its wait set for each message, over all entities of its node. That costs 0.7 ms of CPU for a
command that only replaces a field, and limits a node with 800 subscriptions to 46 of 1,280 messages per second.
Subscriptions to streams therefore belong to the callback group `PolledCallbackGroup`, for which no executor waits.
Their owner polls them at its own rate: goals and controllers before they decide, the recorder and the page by a timer,
and a link's thread before it sends (`CommandStreams`, `SampledTopics`). Taking is safe in any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rclpy.callback_groups import CallbackGroup
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription

from drone_bridge.ros.distributions import SubscriptionEventCallbacks
from drone_bridge.ros.qos import stream

if TYPE_CHECKING:
    from rclpy.node import Node

    from drone_bridge.ros.node.configured_node import ConfiguredNode

#: Event callbacks of a polled subscription: none. An executor that waits for its events returns at once while a message
#: waits, without taking it: with rclpy's default events, the recorder would use a whole core.
UNWATCHED = SubscriptionEventCallbacks(use_default_callbacks=False)
#: Errors of a subscription that another thread or ROS's shutdown has destroyed.
SUBSCRIPTION_ERRORS = (rclpy_implementation.RCLError, InvalidHandle)
#: Limit of messages that one take skips, so that a fast publisher can't keep it busy.
MAX_PASSED_OVER = 100


class PolledCallbackGroup(CallbackGroup):
    """Callback group of polled subscriptions. No executor waits for them while `is_polled`."""

    def __init__(self, *, is_polled: bool = True) -> None:
        super().__init__()
        #: May be set by any thread. An executor applies it at its next wait.
        self.is_polled = is_polled

    def can_execute(self, entity: Any) -> bool:
        return not (self.is_polled and isinstance(entity, Subscription))

    def beginning_execution(self, entity: Any) -> bool:
        return True

    def ending_execution(self, entity: Any) -> None:
        pass


def arrived(subscription: Any, at_most: int) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the waiting messages of a subscription, or their bytes, each with its message info.

    A subscription that is being destroyed yields none.
    """
    try:
        with subscription.handle:
            for _ in range(at_most):  # bounded: a topic may be faster than its reader
                taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
                if not taken:
                    return
                yield taken
    except SUBSCRIPTION_ERRORS:
        return


def newest_of(subscription: Any) -> Any:
    """Return the newest waiting message of a subscription, or None. An override may have raised its depth."""
    newest = None
    for message, _ in arrived(subscription, MAX_PASSED_OVER):
        newest = message
    return newest


class TopicStream:
    """Polled newest message of a topic, best effort, from publishers of any QoS."""

    def __init__(self, node: Node, message_type: type, topic: str) -> None:
        self._subscription: Any = node.create_subscription(
            message_type, topic, ignore, stream(), callback_group=PolledCallbackGroup(), event_callbacks=UNWATCHED
        )

    def take(self) -> Any:
        """Return the newest message since the last call, or None."""
        return newest_of(self._subscription)


def ignore(_: Any) -> None:
    """Do nothing: the callback of a polled subscription."""


def subscribe_to_stream(
    node: ConfiguredNode,
    message_type: type,
    topic: str,
    group: PolledCallbackGroup,
    callback: Callable[[Any], None] = ignore,
) -> list[Any]:
    """Create the subscriptions to a stream, whose QoS can be overridden by parameters.

    If an override requests more than best effort and volatile, a second subscription receives from all publishers.
    """

    def subscribe(overridable: QoSOverridingOptions | None) -> Any:
        subscription = node.create_subscription(
            message_type,
            topic,
            callback,
            stream(),
            callback_group=group,
            event_callbacks=UNWATCHED,
            qos_overriding_options=overridable,
        )
        node.keep_subscription(subscription)
        return subscription

    first = subscribe(QoSOverridingOptions.with_default_policies())
    requested = first.qos_profile
    if requested.reliability == ReliabilityPolicy.BEST_EFFORT and requested.durability == DurabilityPolicy.VOLATILE:
        return [first]
    return [first, subscribe(None)]
