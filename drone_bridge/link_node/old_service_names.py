# SPDX-License-Identifier: Apache-2.0
"""The names of services before 0.2, with a deprecation warning."""

import inspect
from collections.abc import Callable
from typing import Any

from rclpy.node import Node


class OldServiceNames:
    """Logs the new name of each service once."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._advised: set[str] = set()  # those that were called

    def advising(self, old: str, name: str, callback: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Return a callback for a service under its old name, which logs the new one once."""
        if not inspect.iscoroutinefunction(callback):

            def serve(request: Any, response: Any) -> Any:
                self._advise(old, name)
                return callback(request, response)

            return serve

        async def serve_later(request: Any, response: Any) -> Any:
            self._advise(old, name)
            return await callback(request, response)

        return serve_later

    def _advise(self, old: str, name: str) -> None:
        if name in self._advised:
            return
        self._advised.add(name)
        old_name, new_name = (self._node.resolve_service_name(called) for called in (old, f"~/{name}"))
        self._node.get_logger().warning(
            f"The service {old_name} is now called {new_name}; the old name will be removed in the next release.",
        )
