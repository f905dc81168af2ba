# SPDX-License-Identifier: Apache-2.0
"""The thread that writes a bag, so that a slow disk never delays receiving."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from drone_bridge.tools.recording.bag import Bag, Topic

#: What may wait for the disk; what does not fit is dropped and counted.
QUEUE_BYTES = 100 * 2**20
MESSAGE_OVERHEAD = 200  # bytes that a queued message takes beside its data, roughly
#: What a recorder that is killed has not written yet: at most this, and what one write to the disk takes.
FLUSH_INTERVAL_S = 0.6


class BackgroundWriter:
    """Queues messages for a bag, up to a number of bytes; what does not fit is dropped.

    They are written as they come. Readers sort by time: the executor takes topics in turn, so messages of the same
    moment come in any order.
    """

    def __init__(self, bag: Bag, on_failure: Callable[[], None], queue_bytes: int = QUEUE_BYTES) -> None:
        """Start the thread. `on_failure` is called in it, once, when nothing more can be written."""
        self._bag = bag
        self._room = queue_bytes
        self._on_failure = on_failure
        self._queue: deque[tuple[Topic, int, int, bytes]] = deque()
        self._changed = threading.Condition()
        self._deadline_s: float | None = None  # of time.monotonic(), once close() was called
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="bag writer")
        self._thread.start()

    def put(self, topic: Topic, log_ns: int, publish_ns: int, data: bytes) -> bool:
        """Queue a message; never waits. Returns False when it was dropped."""
        size = len(data) + MESSAGE_OVERHEAD
        with self._changed:
            topic.received += 1
            if size > self._room or self._failure:
                return False
            self._room -= size
            self._queue.append((topic, log_ns, publish_ns, data))
            self._changed.notify()
        return True

    def close(self, timeout: float, topics: Iterable[Topic] = ()) -> None:
        """Write what is queued, for `timeout` seconds at most, and close the bag, with these topics listed.

        Raises:
            BagError: the disk is full, or was earlier.
        """
        with self._changed:
            self._deadline_s = time.monotonic() + timeout
            self._changed.notify()
        self._thread.join()
        if isinstance(self._failure, OSError):
            raise self._bag.abandon(self._failure)
        for topic in topics:
            if not topic.channel:
                self._bag.add(topic)
        try:
            self._bag.close()
        finally:
            if self._failure:
                raise self._failure

    def _run(self) -> None:
        try:
            self._write_all()
        except Exception as error:
            with self._changed:
                self._failure = error
                self._queue.clear()
            self._on_failure()

    def _write_all(self) -> None:
        flush_s = float("inf")  # when what was written has to be on the disk
        while True:
            with self._changed:
                wait_s = None if flush_s == float("inf") else max(0.0, flush_s - time.monotonic())
                self._changed.wait_for(lambda: self._queue or self._deadline_s is not None, wait_s)
                if self._deadline_s is not None and (not self._queue or time.monotonic() >= self._deadline_s):
                    self._queue.clear()
                    return
                message = self._queue.popleft() if self._queue else None
            if message:
                self._bag.write(*message)
                flush_s = min(flush_s, time.monotonic() + FLUSH_INTERVAL_S)
                with self._changed:
                    self._room += len(message[-1]) + MESSAGE_OVERHEAD
            if time.monotonic() >= flush_s:
                self._bag.flush()
                flush_s = float("inf")
