# SPDX-License-Identifier: Apache-2.0
"""StampedSets: collects messages of several topics with the same stamp. For one thread, the executor's."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from drone_bridge.ros.time import stamp_numbers

KEPT = 4  # incomplete sets; what is older will not be completed any more


class StampedSets:
    """Collects one message of each topic per stamp, and passes on complete sets; the newest wins."""

    def __init__(self, topics: tuple[str, ...], on_complete: Callable[[dict[str, Any]], None]) -> None:
        self.topics = frozenset(topics)
        self._on_complete = on_complete
        self._sets: OrderedDict[tuple[int, int], dict[str, Any]] = OrderedDict()

    def add(self, topic: str, message: Any) -> None:
        stamp = stamp_numbers(message.header.stamp)
        messages = self._sets.setdefault(stamp, {})
        messages[topic] = message
        if messages.keys() >= self.topics:
            # What came before can only be completed by something older than this.
            for key in list(self._sets):
                del self._sets[key]
                if key == stamp:
                    break
            self._on_complete(messages)
        while len(self._sets) > KEPT:
            self._sets.popitem(last=False)
