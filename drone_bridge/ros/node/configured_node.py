# SPDX-License-Identifier: Apache-2.0
"""ConfiguredNode: a lifecycle node whose publishers, subscriptions, clients and timers end at cleanup."""

import contextlib
import copy
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.client import Client
from rclpy.guard_condition import GuardCondition
from rclpy.lifecycle import LifecycleNode
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.timer import Timer

from drone_bridge.ros.publishers import NO_EVENTS
from drone_bridge.ros.service_responses import resend_if_lost
from drone_bridge.ros.steady_timer import steady_timer
from drone_bridge.ros.subscriptions import subscribe
from drone_bridge.ros.ticker import Ticker


class ConfiguredNode(LifecycleNode):
    """Lifecycle node that creates what `clean_up` destroys."""

    def __init__(self, name: str, **options: Any) -> None:
        """Create the node. The options are rclpy's, such as `namespace` and `parameter_overrides`."""
        #: Callbacks that undo configure, in reverse order.
        self.cleanup = contextlib.ExitStack()
        self._kept_subscriptions: list[Any] = []
        super().__init__(name, **options)

    @abstractmethod
    def ticker_failed(self, trace: str) -> None:
        """Log the traceback of a function of `make_ticker`. Called in its thread."""

    def clean_up(self) -> None:
        """Undo configure, even if incomplete."""
        self.cleanup.close()
        while self._kept_subscriptions:
            self.destroy_subscription(self._kept_subscriptions.pop())

    def make_publisher(self, message_type: type, topic: str, qos: QoSProfile | int) -> "Publisher[Any]":
        """Create a publisher whose QoS can be overridden by parameters."""
        options = QoSOverridingOptions.with_default_policies()
        publisher: Publisher[Any] = self.create_publisher(
            message_type,
            topic,
            copy.copy(qos),  # an override modifies the profile, which may be shared
            event_callbacks=NO_EVENTS,
            qos_overriding_options=options,
        )
        self.cleanup.callback(self.destroy_publisher, publisher)
        return publisher

    def make_subscription(
        self,
        message_type: type,
        topic: str,
        callback: Callable[[Any], Any],
        depth: QoSProfile | int,
        callback_group: CallbackGroup | None = None,
    ) -> None:
        """Create a subscription whose QoS can be overridden by parameters. It also receives from weaker publishers."""
        options = QoSOverridingOptions.with_default_policies()
        group, keep = callback_group, self.keep_subscription
        subscribe(self, message_type, topic, callback, depth, callback_group=group, overridable=options, keep=keep)

    def keep_subscription(self, subscription: Any) -> None:
        """Register a subscription to be destroyed at cleanup, unless `end_subscriptions` does that before."""
        self._kept_subscriptions.append(subscription)

    def end_subscriptions(self, topic: str) -> None:
        """Destroy the subscriptions to a topic, including those of `make_subscription`. For the executor."""
        name = self.resolve_topic_name(topic)
        for subscription in tuple(self._kept_subscriptions):
            if subscription.topic_name == name:
                self._kept_subscriptions.remove(subscription)
                self.destroy_subscription(subscription)

    def make_client(self, service_type: type, name: str) -> "Client[Any, Any]":
        client: Client[Any, Any] = self.create_client(service_type, name)
        self.cleanup.callback(self.destroy_client, client)
        return client

    def make_guard_condition(self, callback: Callable[[], None]) -> GuardCondition:
        """Create a guard condition. Any thread may trigger it; the callback runs in the executor."""
        guard = self.create_guard_condition(callback)
        self.cleanup.callback(self.destroy_guard_condition, guard)
        return guard

    def make_timer(self, period_s: float, callback: Callable[[], None]) -> Timer:
        """Create a timer of real time, independent of simulated time."""
        timer = steady_timer(self, period_s, callback)
        self.cleanup.callback(self.destroy_timer, timer)
        return timer

    def make_ticker(self, name: str, period_s: float, call: Callable[[], None]) -> None:
        """Call a function periodically in a separate thread, cheaper than a timer. It must not block."""
        ticker = Ticker(f"{self.get_name()} {name}", period_s, call, self.ticker_failed)
        self.cleanup.callback(ticker.stop)

    def create_service(self, *what: Any, **options: Any) -> Any:
        """Create a service that loses no response, at any time. See `service_responses`."""
        service = super().create_service(*what, **options)
        resend_if_lost(self, service)
        return service
