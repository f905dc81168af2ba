# SPDX-License-Identifier: Apache-2.0
"""How long commands on a topic hold, by the QoS policy LIFESPAN that their publishers offer.

DDS itself only discards messages that were not read by then. A command that was read is followed for a while, but no
longer than its publisher wants.
"""

import math
import time
from typing import Final

from rclpy.node import Node

_INFINITE_NS: Final = 2**63 - 1
#: Asking takes some tenths of a millisecond, and publishers seldom change.
_REFRESH_S: Final = 0.5


class Lifespan:
    """The shortest lifespan on a topic, looked up when a message arrives."""

    def __init__(self, node: Node, topic: str) -> None:
        self._node = node
        self._topic = node.resolve_topic_name(topic)
        self._shortest_s = math.inf
        self._looked_up_s = -math.inf

    def seconds(self) -> float:
        """Return the lifespan; infinite where no publisher offers one."""
        now_s = time.monotonic()
        if now_s - self._looked_up_s > _REFRESH_S:
            self._looked_up_s = now_s
            offers = self._node.get_publishers_info_by_topic(self._topic)
            self._shortest_s = min(
                (_seconds(each.qos_profile.lifespan.nanoseconds) for each in offers), default=math.inf
            )
        return self._shortest_s


def _seconds(nanoseconds: int) -> float:
    # Zero is what a middleware says of a publisher that named none.
    return nanoseconds / 1e9 if 0 < nanoseconds < _INFINITE_NS else math.inf
