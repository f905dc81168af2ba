# SPDX-License-Identifier: Apache-2.0
"""Outbox: messages that wait for a viewer, limited in bytes, with only the newest of each image.

The executor's thread adds messages, and the event loop sends them. Their bytes are stored once for all viewers, and
sent in fragments: a slow viewer has its own copy of only one fragment. A viewer that reads nothing does not answer
pings, and is disconnected by the gateway.
"""

import struct
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

#: Minimum size of an image or similar message, bytes. A newer one on the same subscription replaces it.
LARGE_BYTES = 16 * 1024
#: Maximum size of images that wait for a viewer, except a single larger one.
MAX_LARGE_BYTES = 8 * 2**20
MAX_SMALL_BYTES = 4 * 2**20
MAX_CONTROL_BYTES = 16 * 2**20  # definitions of all channels arrive together
MAX_SUBSCRIPTIONS = 4096
FRAGMENT_BYTES = 256 * 1024
#: Overhead of Python for each waiting message, bytes.
OVERHEAD_BYTES = 256
_HEADER = struct.Struct("<BIQ")  # Foxglove's protocol: message data, subscription, time in ns
_MESSAGE_DATA = 1


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """Message to be sent. The subscription is None for messages of the Foxglove server."""

    data: str | bytes
    subscription: int | None = None
    time_ns: int = 0

    @property
    def size(self) -> int:
        return len(self.data) + OVERHEAD_BYTES

    @property
    def is_large(self) -> bool:
        return self.subscription is not None and len(self.data) >= LARGE_BYTES

    def content(self) -> str | bytes:
        """Return it in one piece."""
        return self.data if isinstance(self.data, str) or self.subscription is None else self._header + self.data

    def fragments(self) -> Iterable[bytes | memoryview]:
        """Yield a large message in pieces."""
        assert isinstance(self.data, bytes)
        yield self._header
        whole = memoryview(self.data)
        for start in range(0, len(whole), FRAGMENT_BYTES):
            yield whole[start : start + FRAGMENT_BYTES]

    @property
    def _header(self) -> bytes:
        return _HEADER.pack(_MESSAGE_DATA, self.subscription or 0, self.time_ns)


class Outbox:
    """Subscriptions of one viewer, and their messages in sending order: large ones last.

    `wake` is called on any thread, with the lock held, when the outbox becomes non-empty. A topic's message of at least
    `large_bytes` counts as large.
    """

    def __init__(self, wake: Callable[[], object], large_bytes: int = LARGE_BYTES) -> None:
        self._wake, self._least_large_bytes = wake, large_bytes
        self._is_awake = False
        self._lock = threading.Lock()
        self._subscriptions: dict[int, int] = {}  # by channel
        self._control: deque[OutgoingMessage] = deque()
        self._small: deque[OutgoingMessage] = deque()
        self._large: OrderedDict[int, OutgoingMessage] = OrderedDict()
        self._control_bytes = self._small_bytes = self._large_bytes = 0
        self._turns: dict[int, int] = {}  # sequence number of the last sent image, by subscription
        self._next_turn = 0

    def channels(self) -> list[int]:
        """Return the subscribed channels."""
        with self._lock:
            return list(self._subscriptions)

    def subscribe(self, subscription: int, channel: int) -> str:
        """Subscribe to a channel. Return a problem, or an empty string."""
        with self._lock:
            if channel in self._subscriptions or subscription in self._subscriptions.values():
                return f"Subscription {subscription} to channel {channel} already exists, or its ID is in use."
            if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
                return f"The limit of {MAX_SUBSCRIPTIONS} subscriptions is reached."
            self._subscriptions[channel] = subscription
            return ""

    def unsubscribe(self, subscription: int) -> int | None:
        """Unsubscribe; return the channel."""
        with self._lock:
            channel = next((each for each, number in self._subscriptions.items() if number == subscription), None)
        if channel is not None:
            self.withdraw(channel)
        return channel

    def withdraw(self, channel: int) -> None:
        """End the subscription to a channel, if there is one."""
        with self._lock:
            if (subscription := self._subscriptions.pop(channel, None)) is not None:
                self._take_large(subscription)
                self._turns.pop(subscription, None)

    def put(self, channel: int, data: bytes, time_ns: int) -> None:
        """Add a message of a topic if the viewer subscribes to it. It is dropped if there is no room."""
        with self._lock:
            subscription = self._subscriptions.get(channel)
            if subscription is None:
                return
            frame = OutgoingMessage(data, subscription, time_ns)
            if len(data) < self._least_large_bytes:
                self._small.append(frame)
                self._small_bytes += frame.size
                while self._small_bytes > MAX_SMALL_BYTES:
                    self._small_bytes -= self._small.popleft().size
            else:
                self._put_large(subscription, frame)
            self._awaken()

    def put_control(self, content: str | bytes) -> bool:
        """Add a message of the Foxglove server, if there is room. Return whether there was."""
        with self._lock:
            frame = OutgoingMessage(content)
            if self._control and self._control_bytes + frame.size > MAX_CONTROL_BYTES:
                return False
            self._control.append(frame)
            self._control_bytes += frame.size
            self._awaken()
            return True

    def pop(self) -> OutgoingMessage | None:
        """Return the next message to send."""
        with self._lock:
            if self._control:
                self._control_bytes -= self._control[0].size
                return self._control.popleft()
            if self._small:
                self._small_bytes -= self._small[0].size
                return self._small.popleft()
            if self._large:
                subscription = next(iter(self._large))
                self._turns[subscription] = self._next_turn = self._next_turn + 1
                return self._take_large(subscription)
            self._is_awake = False
            return None

    def _put_large(self, subscription: int, frame: OutgoingMessage) -> None:
        # A newer image replaces the older one in place, so that no camera starves another. If there is not enough room
        # for all of them, the one that was sent last is dropped.
        older = self._large.get(subscription)
        while (others_bytes := self._large_bytes - (older.size if older else 0)) and (
            others_bytes + frame.size > MAX_LARGE_BYTES
        ):
            latest = max(self._large.keys() - {subscription}, key=self._turn_of)
            if self._turn_of(latest) <= self._turn_of(subscription):
                self._take_large(subscription)
                return
            self._take_large(latest)
        self._large[subscription] = frame
        self._large_bytes = others_bytes + frame.size

    def _turn_of(self, subscription: int) -> int:
        return self._turns.get(subscription, 0)

    def _take_large(self, subscription: int) -> OutgoingMessage | None:
        if frame := self._large.pop(subscription, None):
            self._large_bytes -= frame.size
        return frame

    def _awaken(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            self._wake()
