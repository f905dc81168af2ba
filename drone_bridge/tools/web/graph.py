# SPDX-License-Identifier: Apache-2.0
"""Graph: topics of the ROS graph as channels of a Foxglove server. Messages are forwarded unchanged.

A topic without viewers has no subscription, so that bridges can skip unused outputs. A latched topic has one
subscription per viewer, which DDS fills with earlier messages. Any other topic has one for all viewers. If the
publishers of a topic differ in that, it has both, and each viewer gets the first copy of a message.

All methods run on the executor's thread. Images and latched messages are taken on arrival, other streams every
TAKING_PERIOD_S: waking the executor for each message would multiply its cost.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foxglove import Channel, Context, Schema
from rclpy.node import Node

from drone_bridge.ros.distributions import with_info
from drone_bridge.ros.steady_timer import steady_timer
from drone_bridge.ros.streams import UNWATCHED, PolledCallbackGroup, arrived
from drone_bridge.tools.shared.interfaces import BULKY_TYPES, ENCODING, UnknownTypeError, import_interface, message_text
from drone_bridge.tools.shared.topic_offers import DuplicateFilter, TopicOffers, request

MAX_CHANNELS = 1024
#: Old images are useless, and need much memory.
DEPTH_OF_PICTURES = 2
DEPTH = 100
#: Number of log lines kept for later viewers.
LOG, LOG_LINES = "/rosout", 1000
TAKING_PERIOD_S = 0.02
Publish = Callable[[int, int | None, bytes, int], None]
"""Sends a message: channel, viewer (None for all), bytes, and time in ns."""


@dataclass(slots=True)
class Feed:
    """Topic that is offered to viewers."""

    topic: str
    type_name: str
    message_class: Any
    channel: Channel
    viewers: set[int] = field(default_factory=set)
    offers: TopicOffers = field(default_factory=TopicOffers)
    """QoS that the current subscriptions match."""
    for_all: Any = None
    history: deque[tuple[bytes, int]] | None = None
    """Last messages with their times in ns, sent to new viewers. Only for the log."""
    for_each: dict[int, Any] = field(default_factory=dict)
    once: dict[int, DuplicateFilter] = field(default_factory=dict)
    """Filter for copies, by viewer, of a topic with latched publishers."""


class Graph:
    """Manages a channel per topic, and subscribes for its viewers."""

    def __init__(self, node: Node, context: Context, publish: Publish, withdraw: Callable[[int], None]) -> None:
        """Prepare; `withdraw` is called with the number of each removed channel."""
        self._node = node
        self._context = context
        self._publish = publish
        self._on_withdrawn = withdraw
        self._feeds: dict[tuple[str, str], Feed] = {}
        self._by_channel: dict[int, Feed] = {}
        self._refused: set[tuple[str, str]] = set()
        self._streams: dict[Any, Callable[..., None]] = {}  # send function, by subscription
        self._polled = PolledCallbackGroup()
        self._timer = steady_timer(node, TAKING_PERIOD_S, self._take_streams)
        self._timer.cancel()  # while there are no streams

    def update(self, topics: Mapping[str, Sequence[str]]) -> None:
        """Offer new topics, withdraw removed ones, and follow changes of QoS.

        `topics` are all topics of the graph, with the names of their types.
        """
        present = dict.fromkeys(self._published(topics))
        for key in self._feeds.keys() - present.keys():
            self._withdraw(key)
        for key in present:
            if key not in self._feeds and key not in self._refused:
                self._offer(*key)
        self._refused &= present.keys()
        for feed in self._feeds.values():
            if feed.viewers:
                self._subscribe(feed)

    def _published(self, topics: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
        """Yield topic and type of published topics, except hidden ones."""
        for topic, type_names in topics.items():
            if any(part.startswith("_") for part in topic.split("/")) or not self._node.count_publishers(topic):
                continue
            if len(type_names) == 1:
                yield topic, type_names[0]
            else:  # some of them may have no publisher
                yield from ((topic, each.topic_type) for each in self._node.get_publishers_info_by_topic(topic))

    def add_viewer(self, viewer: int, channel: int) -> bool:
        """Send a viewer the messages of a channel, latched ones first. Return whether the channel exists."""
        feed = self._by_channel.get(channel)
        if feed:
            for data, time_ns in feed.history or ():
                self._publish(channel, viewer, data, time_ns)
            feed.viewers.add(viewer)
            self._subscribe(feed)
        return feed is not None

    def remove_viewer(self, viewer: int, channel: int) -> None:
        feed = self._by_channel.get(channel)
        if feed:
            feed.viewers.discard(viewer)
            self._subscribe(feed)

    def _offer(self, topic: str, type_name: str) -> None:
        if len(self._feeds) >= MAX_CHANNELS:
            self._refuse(topic, type_name, f"the limit of {MAX_CHANNELS} topics is reached")
            return
        try:
            text = message_text(type_name)
            message_class = import_interface(type_name)
        except UnknownTypeError as error:
            self._refuse(topic, type_name, str(error))
            return
        schema = Schema(name=type_name, encoding=ENCODING, data=text.encode())
        channel = Channel(topic, schema=schema, message_encoding="cdr", context=self._context)
        feed = Feed(topic, type_name, message_class, channel)
        self._feeds[topic, type_name] = self._by_channel[channel.id()] = feed
        if topic == LOG:
            feed.history = deque(maxlen=LOG_LINES)
            send = self._sender(feed, None)
            feed.for_all = self._create(feed, True, send, latched=True)

    def _withdraw(self, key: tuple[str, str]) -> None:
        feed = self._feeds.pop(key)
        feed.viewers.clear()
        self._subscribe(feed)
        if feed.history is not None:
            self._destroy(feed.for_all)
        number = feed.channel.id()
        del self._by_channel[number]
        self._on_withdrawn(number)
        feed.channel.close()

    def _refuse(self, topic: str, type_name: str, reason: str) -> None:
        self._refused.add((topic, type_name))
        self._node.get_logger().warning(f"Not showing '{topic}' as '{type_name}': {reason}".rstrip(".") + ".")

    def _subscribe(self, feed: Feed) -> None:
        """Match the subscriptions to the current publishers and viewers."""
        if feed.history is not None:
            return
        offers = TopicOffers()
        if feed.viewers:
            publishers = self._node.get_publishers_info_by_topic(feed.topic)
            offers = TopicOffers.of([each for each in publishers if each.topic_type == feed.type_name])
        before, feed.offers = feed.offers, offers
        self._subscribe_each_viewer(feed, before)
        if feed.for_all and offers.volatile_reliable != before.volatile_reliable:
            self._destroy(feed.for_all)
            feed.for_all = None
        if not feed.for_all and offers.volatile_reliable is not None:
            send = self._sender(feed, None)
            feed.for_all = self._create(feed, offers.volatile_reliable, send, latched=False)

    def _subscribe_each_viewer(self, feed: Feed, before: TopicOffers) -> None:
        """Match the subscriptions to latched publishers. Each viewer has one, to get their last message."""
        reliable = feed.offers.latched_reliable
        for viewer in list(feed.for_each):
            if viewer not in feed.viewers or reliable != before.latched_reliable:
                self._destroy(feed.for_each.pop(viewer))
        for viewer in feed.once.keys() - feed.viewers:
            del feed.once[viewer]
        if reliable is not None:
            for viewer in feed.viewers - feed.for_each.keys():
                feed.once.setdefault(viewer, DuplicateFilter())
                feed.for_each[viewer] = self._create(feed, reliable, self._sender(feed, viewer), latched=True)

    def _create(self, feed: Feed, reliable: bool, send: Callable[..., None], *, latched: bool) -> Any:
        profile = request(reliable, latched, DEPTH_OF_PICTURES if feed.type_name in BULKY_TYPES else DEPTH)

        def take(data: bytes, info: dict[str, Any]) -> None:
            send(data, info)
            for waiting in arrived(subscription, profile.depth):
                send(*waiting)

        is_stream = not latched and feed.type_name not in BULKY_TYPES
        subscription = self._node.create_subscription(
            feed.message_class,
            feed.topic,
            with_info(take),
            profile,
            callback_group=self._polled if is_stream else None,
            event_callbacks=UNWATCHED,
            raw=True,
        )
        if is_stream:
            self._streams[subscription] = send
            if self._timer.is_canceled():
                self._timer.reset()
        return subscription

    def _take_streams(self) -> None:
        for subscription, send in self._streams.items():
            for waiting in arrived(subscription, DEPTH):
                send(*waiting)

    def _destroy(self, subscription: Any) -> None:
        self._streams.pop(subscription, None)
        if not self._streams:
            self._timer.cancel()
        self._node.destroy_subscription(subscription)

    def _sender(self, feed: Feed, viewer: int | None) -> Callable[[bytes, dict[str, Any]], None]:
        """Return a callback that sends messages to one viewer, or to all."""
        channel = feed.channel.id()

        def send(data: bytes, info: dict[str, Any]) -> None:
            time_ns = info.get("received_timestamp") or time.time_ns()
            if feed.history is not None:
                feed.history.append((data, time_ns))
            if not feed.for_each:
                self._publish(channel, viewer, data, time_ns)
                return
            for each in feed.for_each if viewer is None else [viewer]:
                if feed.once[each].is_new(data, info):
                    self._publish(channel, each, data, time_ns)

        return send
