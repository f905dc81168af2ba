# SPDX-License-Identifier: Apache-2.0
"""TextLink: link for a LinkLoop that sends documents as std_msgs/String. Received documents are posted to the loop."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rclpy.publisher import Publisher
from std_msgs.msg import String

from drone_bridge.net.connector import Selectable
from drone_bridge.net.link_loop import ReceivedData


class TextLink:
    """Send-only link, whose destinations are topics."""

    port = 0

    def __init__(
        self, publish: "Callable[[Publisher[Any], String], None]", publishers: "Mapping[str, Publisher[Any]]"
    ) -> None:
        """`publish` never raises. `publishers` are indexed by topic."""
        self._publish, self._publishers = publish, publishers

    def open(self) -> None:
        """Do nothing: topics need no opening."""

    def cancel(self) -> None:
        """Do nothing: `open` never waits."""

    def files(self) -> Sequence[Selectable]:
        return ()

    def receive(self) -> ReceivedData | None:
        return None

    def send(self, data: bytes | memoryview, to: str) -> None:
        self._publish(self._publishers[to], String(data=bytes(data).decode()))

    def close(self) -> None:
        """Do nothing."""
