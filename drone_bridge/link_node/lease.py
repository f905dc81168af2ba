# SPDX-License-Identifier: Apache-2.0
"""Noticing within a second that the node at the other end of a topic was killed or stopped.

DDS itself takes a participant that went without a word for dead after its lease, which is 20 s with Fast DDS. A topic
can have a lease of its own: the middleware of a live publisher renews it, whatever its node does meanwhile.
"""

import contextlib
from collections.abc import Callable
from typing import Any, Final

from rclpy.duration import Duration
from rclpy.qos import LivelinessPolicy, QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

try:
    from rclpy.event_handler import SubscriptionEventCallbacks, UnsupportedEventTypeError
except ImportError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks, UnsupportedEventTypeError

from drone_bridge.link_node.link_node import LinkNode

#: What a publisher promises; its middleware renews it every two thirds of this.
OFFERED_S: Final = 0.4
#: After so long without that it is dead to a `LeaseWatch`; the rest is for a machine that is busy.
EXPECTED_S: Final = 1.0


def with_lease(qos: QoSProfile) -> QoSProfile:
    """Give a publisher's QoS a lease, which makes no difference to those who expect none."""
    qos.liveliness = LivelinessPolicy.AUTOMATIC
    qos.liveliness_lease_duration = Duration(seconds=OFFERED_S)
    return qos


class LeaseWatch:
    """Looks after the publishers of a topic that have a lease, once they have renewed it. For the executor.

    Others it does not see: those without a lease, and one that was killed within a moment of being discovered.
    """

    def __init__(self, node: LinkNode, message_type: type, topic: str, on_change: Callable[[], None]) -> None:
        """Begin; `on_change` is called when `is_expired` may have changed."""
        #: Whether there were such publishers, and none of them is alive.
        self.is_expired = False
        self._on_change = on_change
        qos = with_lease(QoSProfile(depth=1))
        qos.liveliness_lease_duration = Duration(seconds=EXPECTED_S)
        events = SubscriptionEventCallbacks(liveliness=self._changed, use_default_callbacks=False)
        # A middleware that knows no leases finds out in its own time.
        with contextlib.suppress(UnsupportedEventTypeError):
            subscription = node.create_subscription(
                message_type,
                topic,
                lambda _: None,
                qos,
                event_callbacks=events,
                qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            )
            node.keep_subscription(subscription)

    def _changed(self, info: Any) -> None:
        self.is_expired = not info.alive_count
        self._on_change()
