# SPDX-License-Identifier: Apache-2.0
"""Recorder: node that discovers topics and records them."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rclpy.node import Node, TopicEndpointInfo
from rclpy.qos import QoSProfile

from drone_bridge.programs.options import suggestion
from drone_bridge.ros.process import log_pipe
from drone_bridge.ros.service_responses import resend_lost_responses
from drone_bridge.ros.steady_timer import steady_timer
from drone_bridge.ros.streams import UNWATCHED, PolledCallbackGroup, arrived, ignore
from drone_bridge.tools.record.arrival import ArrivalClock
from drone_bridge.tools.record.bag import WrittenTopic
from drone_bridge.tools.record.settings import RecorderSettings
from drone_bridge.tools.shared.discovery import DISCOVERY_S
from drone_bridge.tools.shared.interfaces import (
    BULKY_TYPES,
    UnknownTypeError,
    import_interface,
    message_text,
    type_hash,
)
from drone_bridge.tools.shared.topic_offers import DuplicateFilter, TopicOffers, is_latched

DISCOVERY_PERIOD_S = 0.2
#: Discovery period of further publishers on recorded topics, which takes 25 us per topic.
REVIEW_PERIOD_S = 1.0
# Polling period. All messages that have arrived are taken at once.
TAKING_PERIOD_S = 0.05
#: Period of looks after the log writer, which is started again.
LOG_WRITER_PERIOD_S = 1.0
MAX_TOPICS = 4096
# Queue depth of a topic, for the polling period and for stalls of the process.
SUBSCRIPTION_DEPTH = 1000
BULKY_DEPTH = 100

Sink = Callable[[WrittenTopic, int, int, bytes], object]
"""Receiver of a topic, receive and publish time (ns since the epoch), and the serialized message."""


@dataclass(slots=True)
class RecordedTopic:
    """Topic with its subscriptions."""

    topic: WrittenTopic
    message_class: Any
    offers: TopicOffers = field(default_factory=TopicOffers)
    """QoS of all publishers so far"""
    subscriptions: dict[bool, Any] = field(default_factory=dict)
    """By whether it receives latched messages; that one is first"""
    once: DuplicateFilter = field(default_factory=DuplicateFilter)
    arrived_ns: int = 0
    """Arrival time of the last message"""


class Recorder(Node):
    """Node that subscribes to selected topics as they appear, and passes their raw messages to a sink."""

    def __init__(self) -> None:
        super().__init__("recorder")
        resend_lost_responses(self)
        self.recorded: dict[str, RecordedTopic] = {}
        self._refused: set[tuple[str, str]] = set()
        self._simulated = bool(self.get_parameter("use_sim_time").value)

    def record(self, settings: RecorderSettings, sink: Sink) -> None:
        """Start discovering and recording topics."""
        self._settings = settings
        self._sink = sink
        if self._simulated:
            self.get_logger().info("Waiting for /clock.")
        self._clock_of_arrival = ArrivalClock(self._simulated_ns if self._simulated else None)
        # Polling, since rclpy does not expose the guard condition of the graph.
        self._polled = PolledCallbackGroup()
        self._reviewed_s = time.monotonic()
        self._missed_s = self._reviewed_s + DISCOVERY_S
        self._timer = steady_timer(self, DISCOVERY_PERIOD_S, self._discover)
        steady_timer(self, TAKING_PERIOD_S, self.take_all)
        steady_timer(self, LOG_WRITER_PERIOD_S, log_pipe.respawn_writer)  # other nodes' watchdogs do that

    def stop(self) -> None:
        """Stop discovery. Subscribed topics are still received."""
        self.destroy_timer(self._timer)

    def take_all(self) -> int:
        """Pass on all messages that have arrived. Return their number."""
        count = 0
        for recorded in self.recorded.values():
            for subscription in recorded.subscriptions.values():
                for data, info in arrived(subscription, SUBSCRIPTION_DEPTH):
                    self._take(recorded, data, info)
                    count += 1
        return count

    @property
    def topics(self) -> list[WrittenTopic]:
        """Recorded topics, sorted by name."""
        return [self.recorded[name].topic for name in sorted(self.recorded)]

    def _simulated_ns(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _discover(self) -> None:
        if self._simulated and self._simulated_ns() == 0:
            return  # otherwise latched messages would be dated 1970
        is_review = time.monotonic() - self._reviewed_s > REVIEW_PERIOD_S - DISCOVERY_PERIOD_S
        present: set[tuple[str, str]] = set()
        for name, _ in self.get_topic_names_and_types():
            if not self._is_wanted(name) or (name in self.recorded and not is_review):
                continue
            publishers = self.get_publishers_info_by_topic(name)
            present.update((name, publisher.topic_type) for publisher in publishers)
            if not publishers:
                continue
            if name in self.recorded:
                self._review(self.recorded[name], publishers)
            else:
                self._begin(name, publishers)
        if is_review:
            self._reviewed_s = time.monotonic()
            self._report_missing()
            self._refused &= present  # drop topics that have left, so that the set can't grow without bound

    def _report_missing(self) -> None:
        """Report, once, requested topics without a publisher: misspelt names, or a bag given after --topics."""
        missing = self._settings.topics - self.recorded.keys()
        if missing and self._reviewed_s > self._missed_s:
            self._missed_s = math.inf
            there = [name for name, _ in self.get_topic_names_and_types() if self.count_publishers(name)]
            for name in sorted(missing):
                self.get_logger().warning(f"No node publishes {name} yet{suggestion(name, there) or '.'}")

    def _is_wanted(self, name: str) -> bool:
        if self._settings.exclude and self._settings.exclude.search(name):
            return False
        if self._settings.topics:
            return name in self._settings.topics
        hidden = any(token.startswith("_") for token in name.split("/"))
        return not hidden

    def _begin(self, name: str, publishers: Sequence[TopicEndpointInfo]) -> None:
        """Record a topic, with the first of its types that is installed."""
        if len(self.recorded) >= MAX_TOPICS:
            self._refuse(name, publishers[0].topic_type, f"there are {MAX_TOPICS} already")
            return
        for type_name in dict.fromkeys(publisher.topic_type for publisher in publishers):
            try:
                definition = message_text(type_name)
                message_class = import_interface(type_name)
            except UnknownTypeError as error:
                self._refuse(name, type_name, str(error))
                continue
            offers = [publisher.qos_profile for publisher in publishers if publisher.topic_type == type_name]
            topic = WrittenTopic(name, type_name, definition, type_hash(type_name), offers)
            self.recorded[name] = RecordedTopic(topic, message_class, arrived_ns=self._clock_of_arrival.now_ns())
            self.get_logger().debug(f"Recording '{name}' ({type_name}).")
            self._review(self.recorded[name], publishers)
            return

    def _review(self, recorded: RecordedTopic, publishers: Sequence[TopicEndpointInfo]) -> None:
        """Adapt to new publishers, and report those that can't be recorded."""
        topic = recorded.topic
        for publisher in publishers:
            if publisher.topic_type != topic.type_name:
                self._refuse(topic.name, publisher.topic_type, f"the topic is recorded as '{topic.type_name}'")
        ours = [each for each in publishers if each.topic_type == topic.type_name]
        offers = recorded.offers.joined(TopicOffers.of(ours))
        if offers == recorded.offers:
            return
        recorded.offers = offers
        depth = BULKY_DEPTH if topic.type_name in BULKY_TYPES else SUBSCRIPTION_DEPTH
        before = recorded.subscriptions
        recorded.subscriptions = {}
        for request in offers.requests(depth):
            latched = is_latched(request)
            present_one = before.get(latched)
            if present_one and present_one.qos_profile.reliability == request.reliability:
                recorded.subscriptions[latched] = present_one
                continue
            if present_one:
                self.get_logger().info(
                    f"A publisher of '{topic.name}' offers weaker QoS than was requested. Subscribing again with it; "
                    "messages of this moment may be missing."
                )
                for data, info in arrived(present_one, SUBSCRIPTION_DEPTH):
                    self._take(recorded, data, info)
                self.destroy_subscription(present_one)
            recorded.subscriptions[latched] = self._subscribe(recorded, request)

    def _refuse(self, name: str, type_name: str, reason: str) -> None:
        if (name, type_name) not in self._refused:
            self._refused.add((name, type_name))
            self.get_logger().warning(f"Not recording '{name}' as '{type_name}': {reason}".rstrip(".") + ".")

    def _subscribe(self, recorded: RecordedTopic, request: QoSProfile) -> Any:
        return self.create_subscription(
            recorded.message_class,
            recorded.topic.name,
            ignore,
            request,
            raw=True,
            event_callbacks=UNWATCHED,
            callback_group=self._polled,
        )

    def _take(self, recorded: RecordedTopic, data: bytes, info: Mapping[str, Any]) -> None:
        """Pass on a message, unless the other subscription has received it as well."""
        topic = recorded.topic
        if True in recorded.subscriptions and not recorded.once.is_new(data, info):
            return
        received_ns = 0 if self._simulated else info["received_timestamp"]
        recorded.arrived_ns = self._clock_of_arrival.of_message_ns(received_ns, recorded.arrived_ns)
        # The publisher's clock may be arbitrary.
        publish_ns = info["source_timestamp"]
        is_time = 0 < publish_ns < 2**63
        self._sink(topic, recorded.arrived_ns, publish_ns if is_time else recorded.arrived_ns, data)
