# SPDX-License-Identifier: Apache-2.0
"""What waits for viewers: bounded in bytes for all of them together, and of each picture only the newest.

Messages come from the executor's thread and are sent by the event loop's. A message is kept once, however many viewers
it waits for, and is sent in fragments: a viewer who reads slowly has its own copy of one fragment only.
"""

import struct
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

#: A message of at least this many bytes is a picture or the like: a newer one on the same subscription replaces it.
LARGE_BYTES = 16 * 1024
MAX_SMALL_BYTES = 4 * 2**20
MAX_SMALL = 4096
MAX_CONTROL_BYTES = 16 * 2**20  # definitions of all channels come at once
MAX_LARGE = 64  # subscriptions with a picture waiting
MAX_SUBSCRIPTIONS = 4096
FRAGMENT_BYTES = 256 * 1024
#: What Python needs for each waiting message beside its bytes.
OVERHEAD_BYTES = 256
#: A viewer who takes nothing for so long, while others need the room, is dropped.
STALL_S = 1.0
_HEADER = struct.Struct("<BIQ")  # Foxglove's protocol: message data, id of the subscription, time in ns
_MESSAGE_DATA = 1


class OverflowingError(Exception):
    """The viewer does not even keep up with the channel advertisements."""


@dataclass(eq=False, slots=True)
class Message:
    """A serialized message of a topic, shared by all for whom it waits."""

    data: str | bytes
    time_ns: int = 0
    holders: int = 0

    @property
    def size(self) -> int:
        return len(self.data) + OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class Frame:
    """A message on its way to a viewer; the subscription is None for what the Foxglove server itself says."""

    message: Message
    subscription: int | None = None

    def content(self) -> str | bytes:
        """Return it in one piece."""
        data = self.message.data
        return data if isinstance(data, str) or self.subscription is None else self._header + data

    def fragments(self, on_taken: Callable[[], None]) -> Iterable[bytes | memoryview]:
        """Yield a large message in pieces; `on_taken` is called whenever the viewer has taken one."""
        assert isinstance(self.message.data, bytes)
        yield self._header
        whole = memoryview(self.message.data)
        for start in range(0, len(whole), FRAGMENT_BYTES):
            on_taken()
            yield whole[start : start + FRAGMENT_BYTES]

    @property
    def is_large(self) -> bool:
        return self.subscription is not None and len(self.message.data) >= LARGE_BYTES

    @property
    def _header(self) -> bytes:
        return _HEADER.pack(_MESSAGE_DATA, self.subscription or 0, self.message.time_ns)


class Backlog:
    """The memory that waiting messages may take for all viewers together."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.size = 0
        self.lock = threading.Lock()
        self.outboxes: set[Outbox] = set()

    def hold(self, message: Message) -> bool:
        """Count a message in for one viewer, if there is room. The caller has the lock, here and below."""
        if message.holders == 0:
            if self.size + message.size > self.max_bytes:
                self._make_room()
                return False
            self.size += message.size
        message.holders += 1
        return True

    def let_go(self, message: Message) -> None:
        message.holders -= 1
        if message.holders == 0:
            self.size -= message.size

    def _make_room(self) -> None:
        """Drop the viewer who has taken nothing for longest, if that is long. Its room is free a moment later."""
        holding = [outbox for outbox in self.outboxes if not outbox.is_empty]
        longest = min(holding, key=lambda outbox: outbox.taken_s, default=None)
        if longest and time.monotonic() - longest.taken_s > STALL_S:
            longest.overflow()


class Outbox:
    """The subscriptions of one viewer, and what waits for them in the order in which it is to be sent: large ones last.

    `wake` and `on_overflow` are called from any thread, with the lock held.
    """

    def __init__(self, backlog: Backlog, wake: Callable[[], object], on_overflow: Callable[[], object]) -> None:
        self._backlog = backlog
        self._wake = wake
        self._on_overflow = on_overflow
        self._is_awake = False
        self._is_closed = False
        self._subscriptions: dict[int, int] = {}  # by channel
        self._control: deque[Frame] = deque()
        self._control_bytes = 0
        self._small: deque[Frame] = deque()
        self._small_bytes = 0
        self._large: OrderedDict[int, Frame] = OrderedDict()
        self._leaving: Frame | None = None
        self.taken_s = time.monotonic()
        """When the viewer last took something, or nothing was waiting."""
        with backlog.lock:
            backlog.outboxes.add(self)

    @property
    def is_empty(self) -> bool:
        return not (self._leaving or self._control or self._small or self._large)

    def channels(self) -> list[int]:
        """Return the channels that are subscribed to."""
        with self._backlog.lock:
            return list(self._subscriptions)

    def subscribe(self, subscription: int, channel: int) -> str:
        """Subscribe to a channel. Returns what is wrong, or nothing."""
        with self._backlog.lock:
            if channel in self._subscriptions or subscription in self._subscriptions.values():
                return f"Subscription {subscription} to channel {channel} is there already, or its ID is."
            if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
                return f"There are {MAX_SUBSCRIPTIONS} subscriptions already."
            self._subscriptions[channel] = subscription
            return ""

    def unsubscribe(self, subscription: int) -> int | None:
        """Return the channel that was subscribed to."""
        with self._backlog.lock:
            for channel, number in self._subscriptions.items():
                if number == subscription:
                    self._end(channel)
                    return channel
        return None

    def withdraw(self, channel: int) -> None:
        """End the subscription to a channel, if there is one."""
        with self._backlog.lock:
            if channel in self._subscriptions:
                self._end(channel)

    def _end(self, channel: int) -> None:
        waiting = self._large.pop(self._subscriptions.pop(channel), None)
        if waiting:
            self._backlog.let_go(waiting.message)

    def put(self, channel: int, message: Message) -> None:
        """Take a message of a topic, if the viewer subscribes to it; what there is no room for is left out."""
        with self._backlog.lock:
            subscription = self._subscriptions.get(channel)
            if subscription is None or self._is_closed:
                return
            frame = Frame(message, subscription)
            if frame.is_large:
                self._put_large(frame, subscription)
            else:
                self._put_small(frame)
            self._awaken()

    def put_control(self, content: str | bytes) -> None:
        """Take what the Foxglove server itself says.

        Raises:
            OverflowingError: too much is waiting that can't be left out.
        """
        with self._backlog.lock:
            message = Message(content)
            if self._control_bytes + message.size > MAX_CONTROL_BYTES or not self._backlog.hold(message):
                raise OverflowingError
            self._control.append(Frame(message))
            self._control_bytes += message.size
            self._awaken()

    def pop(self) -> Frame | None:
        """Return what is to be sent next; what was returned before has been sent."""
        with self._backlog.lock:
            self._sent()
            if self._control:
                self._leaving = self._control.popleft()
                self._control_bytes -= self._leaving.message.size
            elif self._small:
                self._leaving = self._small.popleft()
                self._small_bytes -= self._leaving.message.size
            elif self._large:
                self._leaving = self._large.popitem(last=False)[1]
            else:
                self._is_awake = False
            return self._leaving

    def note_taken(self) -> None:
        """Note that the viewer is taking what is sent."""
        self.taken_s = time.monotonic()

    def overflow(self) -> None:
        """Give up the viewer. The caller has the backlog's lock."""
        self._is_closed = True
        self._on_overflow()

    def close(self) -> None:
        """Let go of all that waits."""
        with self._backlog.lock:
            self._is_closed = True
            self._sent()
            for frame in (*self._control, *self._small, *self._large.values()):
                self._backlog.let_go(frame.message)
            self._control.clear()
            self._small.clear()
            self._large.clear()
            self._backlog.outboxes.discard(self)

    def _put_large(self, frame: Frame, subscription: int) -> None:
        # A newer picture takes the older one's place in the queue, so that no camera starves another.
        older = self._large.get(subscription)
        if older:
            self._backlog.let_go(older.message)
        if (older or len(self._large) < MAX_LARGE) and self._backlog.hold(frame.message):
            self._large[subscription] = frame
        else:
            self._large.pop(subscription, None)

    def _put_small(self, frame: Frame) -> None:
        if not self._backlog.hold(frame.message):
            return
        self._small.append(frame)
        self._small_bytes += frame.message.size
        while self._small_bytes > MAX_SMALL_BYTES or len(self._small) > MAX_SMALL:
            oldest = self._small.popleft()
            self._small_bytes -= oldest.message.size
            self._backlog.let_go(oldest.message)

    def _awaken(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            self.taken_s = time.monotonic()
            self._wake()

    def _sent(self) -> None:
        self.taken_s = time.monotonic()
        if self._leaving:
            self._backlog.let_go(self._leaving.message)
            self._leaving = None
