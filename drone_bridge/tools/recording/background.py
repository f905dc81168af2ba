# SPDX-License-Identifier: Apache-2.0
"""The thread that writes a bag, so that a slow disk never delays receiving."""

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from drone_bridge.tools.recording.bag import Bag, Topic

MESSAGE_OVERHEAD = 200  # bytes that a queued message takes beside its data, roughly
# With the longest wait for order below a second together: what a recorder that is killed has not written yet.
FLUSH_INTERVAL_S = 0.4
# The executor takes topics and publishers in turn, not in the order of time: each message waits for earlier ones still
# to be taken. On a busy machine that takes longer, so the wait follows the longest recent delay.
ORDERING_S = 0.3  # at least
MAX_ORDERING_S = 0.5  # beyond that, order matters less than what a kill would cost
DELAYS_WAITED_FOR = 2  # times the longest recent delay
MAX_DELAY_S = 2.5  # older messages are stamped by another clock, such as simulated time
DELAY_DECAY = 0.1  # s per second by which the longest delay is forgotten
ORDERING_SHARE = 4  # of the queue's room; beyond that, order matters less than what else would be dropped


class _Queued(NamedTuple):
    """A message that waits, before all with a later time."""

    log_ns: int
    serial: int
    arrived_s: float  # of time.monotonic()
    topic: Topic
    publish_ns: int
    data: bytes


class BackgroundWriter:
    """Queues messages for a bag in the order of their time, up to a number of bytes; what does not fit is dropped."""

    def __init__(self, bag: Bag, queue_bytes: int, on_failure: Callable[[], None]) -> None:
        """Start the thread. `on_failure` is called in it, once, when nothing more can be written."""
        self._bag = bag
        self._room = queue_bytes
        self._room_for_ordering = queue_bytes - queue_bytes // ORDERING_SHARE
        self._on_failure = on_failure
        self._queue: list[_Queued] = []  # a heap
        self._serials = itertools.count()
        self._delay_s = 0.0  # between arrival on this machine and put(), the longest recent one
        self._delay_at_s = 0.0  # of time.monotonic()
        self._changed = threading.Condition()
        self._deadline: float | None = None  # of time.monotonic(), once close() was called
        self._failed = False
        self._unexpected: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="bag writer")
        self._thread.start()

    def put(self, topic: Topic, log_ns: int, publish_ns: int, data: bytes) -> bool:
        """Queue a message; never waits. Returns False when it was dropped."""
        size = len(data) + MESSAGE_OVERHEAD
        with self._changed:
            topic.received += 1
            if size > self._room or self._failed:
                return False
            self._room -= size
            now = time.monotonic()
            self._note_delay((time.time_ns() - log_ns) / 1e9, now)
            queued = _Queued(log_ns, next(self._serials), now, topic, publish_ns, data)
            heapq.heappush(self._queue, queued)
            if len(self._queue) == 1 or self._room < self._room_for_ordering:
                self._changed.notify()
        return True

    def close(self, timeout: float, topics: Iterable[Topic] = ()) -> None:
        """Write what is queued, for `timeout` seconds at most, and close the bag, with these topics listed.

        Raises:
            BagError: as Bag.close() does.
        """
        with self._changed:
            self._deadline = time.monotonic() + timeout
            self._changed.notify()
        self._thread.join()
        for topic in topics:
            if topic.connection is None:
                self._bag.add(topic)
        if self._unexpected:
            with suppress(Exception):  # what comes of a broken bag says less than what broke it
                self._bag.close()
            raise self._unexpected
        self._bag.close()

    def _run(self) -> None:
        try:
            self._write_all()
        except OSError:
            pass  # the bag remembers it for close()
        except Exception as error:
            self._unexpected = error
        else:
            return
        with self._changed:
            self._failed = True
            self._queue.clear()
        self._on_failure()

    def _write_all(self) -> None:
        flush_at: float | None = None
        while True:
            now = time.monotonic()
            if flush_at is not None and now >= flush_at:
                self._bag.flush()
                flush_at = None
            with self._changed:
                if self._deadline is not None and (not self._queue or now >= self._deadline):
                    self._queue.clear()
                    return
                ready_at = self._next_is_ready_at()
                if ready_at is None or now < ready_at:
                    wake_at = min((at for at in (flush_at, ready_at) if at is not None), default=None)
                    self._changed.wait(None if wake_at is None else wake_at - now)
                    continue
                message = heapq.heappop(self._queue)
            self._bag.write(message.topic, message.log_ns, message.publish_ns, message.data)
            if flush_at is None:
                flush_at = now + FLUSH_INTERVAL_S
            with self._changed:
                self._room += len(message.data) + MESSAGE_OVERHEAD

    def _note_delay(self, delay_s: float, now: float) -> None:
        remembered = self._delay_s - DELAY_DECAY * (now - self._delay_at_s)
        self._delay_s = max(0.0, remembered, delay_s if delay_s <= MAX_DELAY_S else 0.0)
        self._delay_at_s = now

    def _next_is_ready_at(self) -> float | None:
        """Return the time (s) from which on nothing earlier than the first message is expected; None without one."""
        if not self._queue:
            return None
        if self._deadline is not None or self._room < self._room_for_ordering:
            return 0.0
        wait_s = max(ORDERING_S, DELAYS_WAITED_FOR * self._delay_s)
        return self._queue[0].arrived_s + min(MAX_ORDERING_S, wait_s)
