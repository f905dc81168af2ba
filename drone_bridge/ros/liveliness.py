# SPDX-License-Identifier: Apache-2.0
"""Noticing within a second that the node at the other end of a topic was killed or stopped, or the vehicle behind it.

DDS itself takes 20 s, with Fast DDS, to give up a participant that vanished. A topic can have a liveliness of its own,
which the middleware of a live publisher asserts, whatever its node is doing (AUTOMATIC), or which the node asserts for
as long as it hears its vehicle (MANUAL_BY_TOPIC).
"""

import contextlib
import math
from collections.abc import Callable
from typing import Any

from rclpy.duration import Duration
from rclpy.publisher import Publisher
from rclpy.qos import LivelinessPolicy, QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

try:
    from rclpy.event_handler import SubscriptionEventCallbacks, UnsupportedEventTypeError
except ImportError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks, UnsupportedEventTypeError

from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.topics import PUBLISHER_ERRORS

#: What a publisher promises; its middleware asserts it every two thirds of this.
OFFERED_S = 0.4
#: After this long without an assertion a `LivelinessWatch` considers it dead; the margin is for busy machines.
EXPECTED_S = 1.0
#: The least time between two assertions by a node.
ASSERTION_PERIOD_S = 0.1


def with_liveliness(qos: QoSProfile) -> QoSProfile:
    """Give a publisher's QoS a liveliness, which subscribers that request none ignore."""
    qos.liveliness = LivelinessPolicy.AUTOMATIC
    qos.liveliness_lease_duration = Duration(seconds=OFFERED_S)
    return qos


def with_vehicle_liveliness(qos: QoSProfile) -> QoSProfile:
    """Do the same with one that `VehicleLiveliness` asserts."""
    qos.liveliness = LivelinessPolicy.MANUAL_BY_TOPIC
    qos.liveliness_lease_duration = Duration(seconds=EXPECTED_S)
    return qos


class VehicleLiveliness:
    """Asserts the liveliness of a publisher when its vehicle is heard. For one thread."""

    def __init__(self, publisher: "Publisher[Any]") -> None:
        """`publisher` was made `with_vehicle_liveliness`."""
        self._publisher = publisher
        self._asserted_s = -math.inf

    def renew(self, now_s: float) -> None:
        """Note that the vehicle was heard just now, by time.monotonic."""
        if now_s - self._asserted_s >= ASSERTION_PERIOD_S:
            self._asserted_s = now_s
            with contextlib.suppress(*PUBLISHER_ERRORS):
                self._publisher.assert_liveliness()


class LivelinessWatch:
    """Watches the publishers of a topic that were alive at least once. For the executor.

    It does not see publishers without a liveliness, nor one that was killed right after being discovered.
    """

    def __init__(
        self,
        node: LinkNode,
        message_type: type,
        topic: str,
        on_change: Callable[[], None],
        give_liveliness: Callable[[QoSProfile], QoSProfile] = with_liveliness,
    ) -> None:
        """Begin; `on_change` is called when `is_expired` may have changed. `give_liveliness` is what publishers use."""
        #: Whether there were such publishers, and none of them is alive.
        self.is_expired = False
        self._on_change = on_change
        qos = give_liveliness(QoSProfile(depth=1))
        qos.liveliness_lease_duration = Duration(seconds=EXPECTED_S)
        events = SubscriptionEventCallbacks(liveliness=self._changed, use_default_callbacks=False)
        # A middleware without it finds out in its own time.
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
