# SPDX-License-Identifier: Apache-2.0
"""ServiceCaller: calls services of a vehicle in ROS, for a server whose operator asks for a take-off or a landing."""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.exceptions import InvalidHandle
from std_srvs.srv import Trigger

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.stall_watch import PROCESS
from drone_bridge.ros.vehicle_node import VehicleNode

CHECK_PERIOD_S = 0.5


class ServiceCaller:
    """Calls services of a vehicle in ROS, each a std_srvs/Trigger."""

    def __init__(self, node: VehicleNode, services: Mapping[str, str], timeout_s: float) -> None:
        """`services` are the names of the services by what is asked for; `timeout_s` is how long one may take."""
        self._node, self._timeout_s = node, timeout_s
        self._clients = {name: node.make_client(Trigger, service) for name, service in services.items()}
        # With the time, by `elapsed_s`.
        self._requested: deque[tuple[str, Callable[[bool, str], None], float]] = deque(maxlen=8)
        self._pending: dict[Any, tuple[str, float, Callable[[bool, str], None]]] = {}
        self._guard = node.make_guard_condition(self._make_calls)
        node.make_timer(CHECK_PERIOD_S, self._give_up_overdue)

    def ask(self, name: str, finish: Callable[[bool, str], None]) -> None:
        """Call a service; `finish` gets success and sentence, in the executor. For any thread."""
        self._requested.append((name, finish, elapsed_s()))
        with contextlib.suppress(InvalidHandle):  # the node is gone, and nobody waits any more
            self._guard.trigger()

    def _make_calls(self) -> None:
        while self._requested:
            name, finish, asked_s = self._requested.popleft()
            if name != "land" and self._node.hold.is_held:
                finish(False, "the vehicle is held")
            elif name != "land" and PROCESS.stood_still_since(asked_s):
                finish(False, "the server has just stood still")
            elif not self._clients[name].service_is_ready():
                service = self._node.resolve_service_name(self._clients[name].srv_name)
                finish(False, f"no node offers {service}")
            else:
                future = self._clients[name].call_async(Trigger.Request())
                self._pending[future] = name, time.monotonic(), finish
                future.add_done_callback(self._answered)

    def _answered(self, future: Any) -> None:
        if pending := self._pending.pop(future, None):
            response = future.result()
            pending[2](response.success, response.message)

    def _give_up_overdue(self) -> None:
        for future, (name, asked_s, finish) in tuple(self._pending.items()):
            if time.monotonic() - asked_s > self._timeout_s:
                del self._pending[future]
                self._clients[name].remove_pending_request(future)
                finish(False, "the drone has not answered")
