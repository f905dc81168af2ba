# SPDX-License-Identifier: Apache-2.0
"""What begins when somebody looks: a demonstration is not over before its page has been opened."""

import time
from typing import Any

from rclpy.node import Node
from std_srvs.srv import Trigger

PATIENCE_S = 60.0
"""After which it begins without viewers."""


class FirstViewer:
    """Calls a service once, when the first viewer has come, or PATIENCE_S after the start."""

    def __init__(self, node: Node, service: str) -> None:
        """Prepare; without a name of a service, nothing is called."""
        self._client: Any = node.create_client(Trigger, service) if service else None
        self._due_s = time.monotonic() + PATIENCE_S
        if service:
            name = node.resolve_service_name(service)
            node.get_logger().info(f"{name} is called when somebody looks, or in {PATIENCE_S:g} s.")

    def look(self, has_viewers: bool) -> None:
        """Call it, if it is time to and if it is there. To be called on and on, in the executor's thread."""
        is_due = has_viewers or time.monotonic() >= self._due_s
        if self._client and is_due and self._client.service_is_ready():
            self._client.call_async(Trigger.Request())
            self._client = None
