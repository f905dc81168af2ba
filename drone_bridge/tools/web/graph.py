# SPDX-License-Identifier: Apache-2.0
"""Topics of the graph as channels of a Foxglove server, each message given on byte for byte as it came.

A topic without viewers has no subscription here, so that bridges need not produce what nobody sees. One that is
latched has a subscription per viewer, which DDS fills with what was published before; any other has one for all. Where
publishers of a topic differ in that, what the latched ones publish comes twice.
All of it happens in the executor's thread: pictures and what is latched is taken when it comes, streams of anything
else every TAKING_PERIOD_S. An executor that waits for each message costs messages times vehicles.
"""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foxglove import Channel, Context, Schema
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]  # Humble has it nowhere else
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from rclpy.topic_endpoint_info import TopicEndpointInfo

from drone_bridge.ros.streams import UNWATCHED, Polled, arrived
from drone_bridge.tools.interfaces import BULKY_TYPES, UnknownTypeError, import_interface, message_text

MAX_CHANNELS = 1024
#: Old pictures are worthless, and take much memory.
DEPTH_OF_PICTURES = 2
DEPTH = 100
#: What was logged before somebody looked is kept: so many lines.
LOG, LOG_LINES = "/rosout", 1000
TAKING_PERIOD_S = 0.02
Publish = Callable[[int, int | None, bytes, int], None]
"""Sends a message: of which channel, to which viewer (None: all), its bytes, and its time in ns."""

# Before Iron a callback gets the message alone.
HAS_MESSAGE_INFO = hasattr(Subscription, "CallbackType")


@dataclass(frozen=True, slots=True)
class Offers:
    """What the publishers of a topic offer, as far as it decides how to subscribe."""

    latched_reliable: bool | None
    """Whether all that are latched are reliable; None without any."""
    volatile_reliable: bool | None
    """The same of the others."""

    @classmethod
    def of(cls, publishers: Sequence[TopicEndpointInfo]) -> "Offers":
        """Sum up the publishers of one type."""
        latched = [each for each in publishers if each.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL]
        volatile = [each for each in publishers if each.qos_profile.durability != DurabilityPolicy.TRANSIENT_LOCAL]
        return cls(_all_reliable(latched), _all_reliable(volatile))


def _all_reliable(publishers: Sequence[TopicEndpointInfo]) -> bool | None:
    reliable = [each.qos_profile.reliability == ReliabilityPolicy.RELIABLE for each in publishers]
    return all(reliable) if reliable else None


@dataclass(slots=True)
class Feed:
    """A topic that is offered to viewers."""

    topic: str
    type_name: str
    message_class: Any
    channel: Channel
    viewers: set[int] = field(default_factory=set)
    offers: Offers = Offers(None, None)
    """Of the publishers that the subscriptions suit."""
    for_all: Any = None
    history: deque[tuple[bytes, int]] | None = None
    """The last messages with their times in ns, which each viewer gets first: of the log, kept from the beginning."""
    for_each: dict[int, Any] = field(default_factory=dict)


class Graph:
    """Keeps a channel per topic, and subscribes for its viewers."""

    def __init__(self, node: Node, context: Context, publish: Publish, withdraw: Callable[[int], None]) -> None:
        """Prepare; `withdraw` is called with the number of each channel that ends."""
        self._node = node
        self._context = context
        self._publish = publish
        self._on_withdrawn = withdraw
        self._feeds: dict[tuple[str, str], Feed] = {}
        self._by_channel: dict[int, Feed] = {}
        self._refused: set[tuple[str, str]] = set()
        self._streams: dict[Any, Callable[..., None]] = {}  # how each message is sent, by subscription
        self._polled = Polled()
        self._timer = node.create_timer(
            TAKING_PERIOD_S, self._take_streams, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )
        self._timer.cancel()  # while there are no streams

    def look(self, topics: Mapping[str, Sequence[str]]) -> None:
        """Offer topics that have come, withdraw those that have gone, and follow changes of QoS.

        `topics` are all of the graph, with the names of their types.
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
        """Yield topic and type of what somebody publishes, but for hidden names."""
        for topic, type_names in topics.items():
            if any(part.startswith("_") for part in topic.split("/")) or not self._node.count_publishers(topic):
                continue
            if len(type_names) == 1:
                yield topic, type_names[0]
            else:  # not all of them need have a publisher
                yield from ((topic, each.topic_type) for each in self._node.get_publishers_info_by_topic(topic))

    def takers(self) -> list[dict[str, str]]:
        """Return the topics that other nodes listen to, with type and definition. From any thread."""
        found: list[dict[str, str]] = []
        own = self._node.get_name()
        for topic, type_names in self._node.get_topic_names_and_types():
            if any(part.startswith("_") for part in topic.split("/")) or len(found) >= MAX_CHANNELS:
                continue
            takers = {
                each.topic_type for each in self._node.get_subscriptions_info_by_topic(topic) if each.node_name != own
            }
            for type_name in takers & set(type_names):
                with contextlib.suppress(UnknownTypeError):
                    text = message_text(type_name)
                    if not text.is_idl:
                        found.append({"topic": topic, "type": type_name, "schema": text.text})
        return found

    def add_viewer(self, viewer: int, channel: int) -> bool:
        """Send a viewer the messages of a channel, latched ones first. Returns whether there is such a channel."""
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
            self._refuse(topic, type_name, f"there are {MAX_CHANNELS} topics already")
            return
        try:
            text = message_text(type_name)
            message_class = import_interface(type_name)
        except UnknownTypeError as error:
            self._refuse(topic, type_name, str(error))
            return
        schema = Schema(name=type_name, encoding=text.encoding, data=text.text.encode())
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
        """Match the subscriptions to the present publishers and viewers."""
        if feed.history is not None:
            return
        offers = Offers(None, None)
        if feed.viewers:
            publishers = self._node.get_publishers_info_by_topic(feed.topic)
            offers = Offers.of([each for each in publishers if each.topic_type == feed.type_name])
        before, feed.offers = feed.offers, offers
        self._subscribe_each_viewer(feed, before)
        if feed.for_all and offers.volatile_reliable != before.volatile_reliable:
            self._destroy(feed.for_all)
            feed.for_all = None
        if not feed.for_all and offers.volatile_reliable is not None:
            send = self._sender(feed, None)
            feed.for_all = self._create(feed, offers.volatile_reliable, send, latched=False)

    def _subscribe_each_viewer(self, feed: Feed, before: Offers) -> None:
        """Match the subscriptions to latched publishers, of which each viewer has one: it gets their last message."""
        reliable = feed.offers.latched_reliable
        for viewer in list(feed.for_each):
            if viewer not in feed.viewers or reliable != before.latched_reliable:
                self._destroy(feed.for_each.pop(viewer))
        if reliable is not None:
            for viewer in feed.viewers - feed.for_each.keys():
                feed.for_each[viewer] = self._create(feed, reliable, self._sender(feed, viewer), latched=True)

    def _create(self, feed: Feed, reliable: bool, send: Callable[..., None], *, latched: bool) -> Any:
        profile = QoSProfile(
            history=HistoryPolicy.KEEP_LAST,
            depth=DEPTH_OF_PICTURES if feed.type_name in BULKY_TYPES else DEPTH,
            reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        )

        def take(data: bytes, info: dict[str, Any]) -> None:
            send(data, info)
            for waiting in arrived(subscription, profile.depth):
                send(*waiting)

        callback: Any = take if HAS_MESSAGE_INFO else lambda data: take(data, {})
        is_stream = not latched and feed.type_name not in BULKY_TYPES
        subscription = self._node.create_subscription(
            feed.message_class,
            feed.topic,
            callback,
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
            self._publish(channel, viewer, data, time_ns)

        return send
