# SPDX-License-Identifier: Apache-2.0
"""Noticing within a second that the node at the other end of a topic was killed or stopped, or the vehicle behind it.

DDS itself takes a participant that went without a word for dead after its lease, which is 20 s with Fast DDS. A topic
can have a lease of its own: the middleware of a live publisher renews it, whatever its node does meanwhile. Or it
leaves that to the node, which renews the lease of a topic for as long as its vehicle is heard.
"""

import contextlib
import math
from collections.abc import Callable
from typing import Any, Final

from rclpy.duration import Duration
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.publisher import Publisher
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
#: The least time between two renewals by a node.
RENEWAL_PERIOD_S: Final = 0.1


def with_lease(qos: QoSProfile) -> QoSProfile:
    """Give a publisher's QoS a lease, which makes no difference to those who expect none."""
    qos.liveliness = LivelinessPolicy.AUTOMATIC
    qos.liveliness_lease_duration = Duration(seconds=OFFERED_S)
    return qos


def with_vehicle_lease(qos: QoSProfile) -> QoSProfile:
    """Do the same with a lease that `VehicleLease` renews."""
    qos.liveliness = LivelinessPolicy.MANUAL_BY_TOPIC
    qos.liveliness_lease_duration = Duration(seconds=EXPECTED_S)
    return qos


class VehicleLease:
    """Renews the lease of a publisher when its vehicle is heard. For one thread."""

    def __init__(self, publisher: "Publisher[Any]") -> None:
        """`publisher` was made `with_vehicle_lease`."""
        self._publisher = publisher
        self._renewed_s = -math.inf

    def renew(self, now_s: float) -> None:
        """Note that the vehicle was heard just now, by time.monotonic."""
        if now_s - self._renewed_s >= RENEWAL_PERIOD_S:
            self._renewed_s = now_s
            with contextlib.suppress(rclpy_implementation.RCLError, InvalidHandle):  # ROS is already shutting down
                self._publisher.assert_liveliness()


class LeaseWatch:
    """Looks after the publishers of a topic that have a lease, once they have renewed it. For the executor.

    Others it does not see: those without a lease, and one that was killed within a moment of being discovered.
    """

    def __init__(
        self,
        node: LinkNode,
        message_type: type,
        topic: str,
        on_change: Callable[[], None],
        give_lease: Callable[[QoSProfile], QoSProfile] = with_lease,
    ) -> None:
        """Begin; `on_change` is called when `is_expired` may have changed. `give_lease` is what publishers use."""
        #: Whether there were such publishers, and none of them is alive.
        self.is_expired = False
        self._on_change = on_change
        qos = give_lease(QoSProfile(depth=1))
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
