# SPDX-License-Identifier: Apache-2.0
"""The log of the last flights: bag after bag in one folder, which is kept below a size."""

import os
import shutil
import time
from collections import deque
from pathlib import Path

from rclpy.qos import DurabilityPolicy

from drone_bridge.tools.bags.flights import held_by_recorder, hold, size_of
from drone_bridge.tools.recording.bag import Bag, BagError, Topic

#: A flight that is longer goes on in another bag, so that its beginning can be removed: share of the ring.
PART = 1 / 8
#: Of a latched topic, what the next bag begins with.
LATCHED_DEPTH = 100


class RingBag:
    """Writes as a Bag does, and removes the oldest bags of the folder for it. Not for several threads at once.

    Recorders of several processes can share a folder: what one of them is writing is never removed.
    """

    def __init__(self, folder: Path, limit_bytes: int, *, compress: bool = False) -> None:
        """Begin the first bag. Raises BagError: nothing can be written there."""
        self._folder, self._limit, self._compress = folder, limit_bytes, compress
        self._part_bytes = int(limit_bytes * PART)
        self._name, self._part = time.strftime("%Y-%m-%d_%H-%M-%S"), 0
        self._topics: list[Topic] = []
        self._held = -1  # marks the bag as being written
        self._latched: dict[str, deque[tuple[Topic, int, int, bytes]]] = {}
        self._begin()

    @property
    def path(self) -> Path:
        """The current bag."""
        return self._bag.path

    def add(self, topic: Topic) -> None:
        """List a topic, as Bag does."""
        self._topics.append(topic)
        if any(offer.durability == DurabilityPolicy.TRANSIENT_LOCAL for offer in topic.offers):
            self._latched.setdefault(topic.name, deque(maxlen=LATCHED_DEPTH))
        self._bag.add(topic)

    def write(self, topic: Topic, log_ns: int, publish_ns: int, data: bytes) -> None:
        """Write a message as Bag does, into another bag where this one is full. Raises OSError and BagError."""
        if self._written > self._part_bytes:
            self._go_on(log_ns)
        if not topic.channel:
            self.add(topic)
        self._written += len(data)
        self._bag.write(topic, log_ns, publish_ns, data)
        if topic.name in self._latched:
            self._latched[topic.name].append((topic, log_ns, publish_ns, data))

    def flush(self) -> None:
        """Put what was written so far on the disk. Raises OSError."""
        self._bag.flush()

    def close(self) -> None:
        """Complete the bag. Raises BagError as Bag does."""
        try:
            self._bag.close()
        finally:
            if self._held >= 0:
                os.close(self._held)
            self._held = -1

    def _go_on(self, log_ns: int) -> None:
        self.close()
        for topic in self._topics:
            topic.channel = 0
        self._topics.clear()
        self._begin()
        for messages in self._latched.values():
            for topic, _, publish_ns, data in messages:
                if not topic.channel:
                    self.add(topic)
                self._bag.write(topic, log_ns, publish_ns, data)

    def _begin(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._make_room()
        except OSError as error:
            raise BagError(f"No flights can be kept in '{self._folder}': {error.strerror}.") from None
        path, self._part = self._folder / self._name, self._part + 1
        if self._part > 1:
            path = path.with_name(f"{self._name}_part{self._part}")
        while path.exists():  # of another recorder
            path = path.with_name(f"{path.name}_")
        self._bag, self._written = Bag(path, compress=self._compress), 0
        self._held = hold(path)

    def _make_room(self) -> None:
        """Remove the oldest flights until a whole bag more fits into the ring, and into half of what is free."""
        flights = sorted(
            (each for each in self._folder.iterdir() if each.is_dir()), key=lambda each: each.stat().st_mtime
        )
        being_written = {flight for flight in flights if held_by_recorder(flight)}
        sizes = {each: max(size_of(each), self._part_bytes * (each in being_written)) for each in flights}
        free = shutil.disk_usage(self._folder).free
        most = min(self._limit, (free + sum(sizes.values())) // 2) - self._part_bytes
        for flight in flights:
            if sum(sizes.values()) <= most:
                return
            if flight not in being_written:
                shutil.rmtree(flight, ignore_errors=True)
                del sizes[flight]
