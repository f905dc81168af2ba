# SPDX-License-Identifier: Apache-2.0
"""StampedSets: groups messages of several topics by stamp. Used by the executor's thread only."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from drone_bridge.ros.time import stamp_numbers

KEPT = 4  # incomplete sets; older ones are dropped


class StampedSets:
    """Collects one message per topic and stamp, and passes on each complete set. Older sets are then dropped."""

    def __init__(self, topics: tuple[str, ...], on_complete: Callable[[dict[str, Any]], None]) -> None:
        self.topics = topics
        self._on_complete = on_complete
        self._sets: OrderedDict[tuple[int, int], dict[str, Any]] = OrderedDict()
        self._received_s: dict[str, float] = {}  # when each topic was last received, steady clock

    def add(self, topic: str, message: Any) -> None:
        self._received_s[topic] = time.monotonic()
        stamp = stamp_numbers(message.header.stamp)
        messages = self._sets.setdefault(stamp, {})
        messages[topic] = message
        if len(messages) == len(self.topics):
            # Sets that began earlier can only be completed by older messages.
            for key in list(self._sets):
                del self._sets[key]
                if key == stamp:
                    break
            self._on_complete(messages)
        while len(self._sets) > KEPT:
            self._sets.popitem(last=False)

    def waits_for(self, timeout_s: float, *also: str) -> str:
        """Return what is missing: `also`, and the topics without a message for the timeout, else a common stamp."""
        now_s = time.monotonic()
        silent = [topic for topic in self.topics if now_s - self._received_s.get(topic, -math.inf) > timeout_s]
        return f"for {', '.join([*also, *silent]) or 'messages of one stamp'}"
