# SPDX-License-Identifier: Apache-2.0
"""The node that finds topics and records them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]  # Humble has it nowhere else
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from rclpy.topic_endpoint_info import TopicEndpointInfo

try:
    from rclpy.event_handler import SubscriptionEventCallbacks, UnsupportedEventTypeError
except ImportError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks, UnsupportedEventTypeError

from drone_bridge.ros.rclpy_hooks import resend_lost_responses
from drone_bridge.tools.bags.flights import BULKY_TYPES
from drone_bridge.tools.interfaces import UnknownTypeError, import_interface
from drone_bridge.tools.recording.bag import Topic
from drone_bridge.tools.recording.definitions import find_definition
from drone_bridge.tools.recording.settings import Settings

DISCOVERY_PERIOD_S = 0.2
# A flight log waits for nothing: it takes what has arrived all at once, which costs less processor time.
FLIGHT_LOG_PERIOD_S = 0.5
FLIGHT_LOG_DISCOVERY_PERIOD_S = 1.0
FLIGHT_LOG_DEPTH = 1000  # messages of one topic within that period
MAX_TOPICS = 4096
# Enough for a burst, such as the latched transforms of many nodes at once.
SUBSCRIPTION_DEPTH = 100
# Before Iron a callback gets the message alone.
HAS_MESSAGE_INFO = hasattr(Subscription, "CallbackType")

Sink = Callable[[Topic, int, int, bytes], object]
"""Takes a topic, receive and publish time (ns since the epoch), and the serialized message."""


class _Polled(CallbackGroup):
    """Subscriptions that no executor waits for."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        pass


@dataclass(slots=True)
class RecordedTopic:
    """A topic with the subscription that feeds it."""

    topic: Topic
    message_class: Any
    request: QoSProfile
    subscription: Any


class Recorder(Node):
    """Subscribes to all wanted topics as they appear, and passes the raw messages on."""

    def __init__(self) -> None:
        super().__init__("recorder")
        resend_lost_responses(self)
        self.recorded: dict[str, RecordedTopic] = {}
        self._refused: set[tuple[str, str]] = set()
        self._simulated = bool(self.get_parameter("use_sim_time").value)

    def record(self, settings: Settings, sink: Sink) -> None:
        """Start discovering and recording topics."""
        self._settings = settings
        self._sink = sink
        if self._simulated:
            self.get_logger().info("Waiting for /clock.")
        # rclpy does not expose the graph's guard condition, so poll: 25 us per topic.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._polled = _Polled() if settings.is_flight_log else None
        period_s = FLIGHT_LOG_DISCOVERY_PERIOD_S if settings.is_flight_log else DISCOVERY_PERIOD_S
        self._timer = self.create_timer(period_s, self._discover, clock=steady)
        if self._polled:
            self.create_timer(FLIGHT_LOG_PERIOD_S, self.take_all, clock=steady)

    def stop(self) -> None:
        """Stop looking for topics; those that are recorded are still received."""
        self.destroy_timer(self._timer)

    def take_all(self) -> None:
        """Pass on what has arrived on topics that no executor waits for."""
        if not self._polled:
            return
        for recorded in self.recorded.values():
            subscription = recorded.subscription
            with subscription.handle:
                while taken := subscription.handle.take_message(subscription.msg_type, True):
                    subscription.callback(*taken if HAS_MESSAGE_INFO else taken[:1])

    @property
    def topics(self) -> list[Topic]:
        """The topics that are recorded, by name."""
        return [self.recorded[name].topic for name in sorted(self.recorded)]

    def _discover(self) -> None:
        if self._simulated and self.get_clock().now().nanoseconds == 0:
            return  # latched messages would be stamped with the year 1970
        present: set[tuple[str, str]] = set()
        for name, _ in self.get_topic_names_and_types():
            if not self._is_wanted(name):
                continue
            publishers = self.get_publishers_info_by_topic(name)
            present.update((name, publisher.topic_type) for publisher in publishers)
            if not publishers:
                continue
            if name in self.recorded:
                self._review(self.recorded[name], publishers)
            else:
                self._begin(name, publishers)
        # What has left is forgotten, so that the set can't grow forever.
        self._refused &= present

    def _is_wanted(self, name: str) -> bool:
        if self._settings.exclude and self._settings.exclude.search(name):
            return False
        if self._settings.topics:
            return name in self._settings.topics
        hidden = any(token.startswith("_") for token in name.split("/"))
        return not hidden

    def _begin(self, name: str, publishers: Sequence[TopicEndpointInfo]) -> None:
        """Record a topic with the first of its types that is known here."""
        if len(self.recorded) >= MAX_TOPICS:
            self._refuse(name, publishers[0].topic_type, f"there are {MAX_TOPICS} already")
            return
        for type_name in dict.fromkeys(publisher.topic_type for publisher in publishers):
            if self._polled and type_name in BULKY_TYPES:
                continue
            try:
                definition = find_definition(type_name)
                message_class = import_interface(type_name)
            except UnknownTypeError as error:
                self._refuse(name, type_name, str(error))
                continue
            offers = offers_of(publishers, type_name)
            topic = Topic(name, definition, offers)
            request = request_for(offers)
            subscription = self._subscribe(topic, message_class, request)
            self.recorded[name] = RecordedTopic(topic, message_class, request, subscription)
            self.get_logger().debug(f"Recording '{name}' ({type_name}).")
            self._review(self.recorded[name], publishers)
            return

    def _review(self, recorded: RecordedTopic, publishers: Sequence[TopicEndpointInfo]) -> None:
        """Adapt to publishers that came later, and name those that can't be recorded."""
        topic = recorded.topic
        recorded_type = topic.definition.type_name
        for publisher in publishers:
            if publisher.topic_type != recorded_type and not self._polled:
                self._refuse(topic.name, publisher.topic_type, f"the topic is recorded as '{recorded_type}'")
        request, before = request_for([recorded.request, *offers_of(publishers, recorded_type)]), recorded.request
        if (request.reliability, request.durability) == (before.reliability, before.durability):
            return
        recorded.request = request
        self.get_logger().info(
            f"A publisher of '{topic.name}' offers weaker QoS than was requested. Subscribing again with it; "
            "messages of this moment may be missing."
        )
        self.destroy_subscription(recorded.subscription)
        recorded.subscription = self._subscribe(topic, recorded.message_class, recorded.request)

    def _refuse(self, name: str, type_name: str, reason: str) -> None:
        if (name, type_name) not in self._refused:
            self._refused.add((name, type_name))
            self.get_logger().warning(f"Not recording '{name}' as '{type_name}': {reason}".rstrip(".") + ".")

    def _subscribe(self, topic: Topic, message_class: Any, request: QoSProfile) -> Any:
        sink = self._sink
        clock = self.get_clock() if self._simulated else None

        def on_message(data: bytes, info: dict[str, int]) -> None:
            log_ns = clock.now().nanoseconds if clock else info["received_timestamp"] or time.time_ns()
            # The publisher's clock can have any value.
            publish_ns = info["source_timestamp"]
            sink(topic, log_ns, publish_ns if 0 < publish_ns < 2**63 else log_ns, data)

        def on_message_alone(data: bytes) -> None:
            log_ns = clock.now().nanoseconds if clock else time.time_ns()
            sink(topic, log_ns, log_ns, data)

        def on_lost(event: Any) -> None:
            topic.lost += event.total_count_change

        callback: Any = on_message if HAS_MESSAGE_INFO else on_message_alone

        if self._polled:
            request = QoSProfile(depth=FLIGHT_LOG_DEPTH, durability=request.durability, reliability=request.reliability)
            if request.durability == DurabilityPolicy.VOLATILE:  # acknowledging them would cost as much as all the rest
                request.reliability = ReliabilityPolicy.BEST_EFFORT
            return self.create_subscription(
                message_class, topic.name, callback, request, raw=True, callback_group=self._polled
            )

        def subscribe(**events: Callable[[Any], None]) -> Any:
            return self.create_subscription(
                message_class,
                topic.name,
                callback,
                request,
                raw=True,
                event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False, **events),
            )

        try:
            return subscribe(message_lost=on_lost)
        except UnsupportedEventTypeError:
            return subscribe()


def offers_of(publishers: Sequence[TopicEndpointInfo], type_name: str) -> list[QoSProfile]:
    """Return what the publishers of one type offer."""
    return [publisher.qos_profile for publisher in publishers if publisher.topic_type == type_name]


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
