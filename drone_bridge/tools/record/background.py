# SPDX-License-Identifier: Apache-2.0
"""BackgroundWriter: writer thread of a bag, so that a slow disk does not delay reception."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from drone_bridge.tools.record.bag import BagWriter, WrittenTopic

#: Size of the queue for the disk. Messages that do not fit are dropped and counted.
QUEUE_BYTES = 100 * 2**20
MESSAGE_OVERHEAD = 200  # approximate bytes of a queued message besides its data
#: Longest time until a flush. A killed recorder loses this much, plus the duration of one write.
FLUSH_INTERVAL_S = 0.6


class BackgroundWriter:
    """Bounded queue of messages for a bag. Messages that do not fit are dropped.

    Messages are written in the order of the queue. Readers sort them by time, since the executor takes the topics in
    turn, so that messages of the same moment arrive in any order.
    """

    def __init__(self, bag: BagWriter, on_failure: Callable[[], None], queue_bytes: int = QUEUE_BYTES) -> None:
        """Start the thread, which calls `on_failure` once if writing fails."""
        self._bag = bag
        self._room = queue_bytes
        self._on_failure = on_failure
        self._queue: deque[tuple[WrittenTopic, int, int, bytes]] = deque()
        self._changed = threading.Condition()
        self._deadline_s: float | None = None  # time.monotonic(); set by close()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="bag writer")
        self._thread.start()

    def put(self, topic: WrittenTopic, log_ns: int, publish_ns: int, data: bytes) -> bool:
        """Queue a message, see `BagWriter.write`, without waiting. Return False if it was dropped."""
        size = len(data) + MESSAGE_OVERHEAD
        with self._changed:
            topic.received += 1
            if size > self._room or self._failure:
                return False
            self._room -= size
            self._queue.append((topic, log_ns, publish_ns, data))
            self._changed.notify()
        return True

    def close(self, timeout: float, topics: Iterable[WrittenTopic] = ()) -> None:
        """Write the queue, for at most `timeout` seconds, and close the bag. `topics` are listed in it even if empty.

        Raises:
            BagWriteError: writing fails, or has failed earlier, as on a full disk.
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
        self._bag.close()
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
        flush_s = float("inf")  # time of the next flush
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
                    self._room += len(message[3]) + MESSAGE_OVERHEAD
            if time.monotonic() >= flush_s:
                self._bag.flush()
                flush_s = float("inf")
