# SPDX-License-Identifier: Apache-2.0
"""All that is used here of rclpy's private parts, which its next release may rename or drop.

- `Executor._wait_for_ready_callbacks`, for less work per callback. Where there is none, FrugalExecutor is the public
  SingleThreadedExecutor.
- `Service.send_response`, replaced per service: a response to a client that is only half discovered is lost, and rclpy
  tells nobody. Where nothing calls it, responses are sent once, as rclpy sends them.
- `LifecycleNode._state_machine`, whose name outlives its node. Where there is none, garbage collection frees it.

test/test_executor.py, test/test_half_discovered_clients.py and test/test_bridge_conventions.py ask for each.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.executors import SingleThreadedExecutor, TimeoutException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.service import Service

# An executor that looks at its nodes' entities once per callback instead of twice.


class FrugalExecutor(SingleThreadedExecutor):
    """Consumes its own wake-ups before it waits for entities.

    After each callback an rclpy executor triggers its guard condition, for other threads that may be waiting. So the
    next wait would return at once, for nothing, and rclpy takes 0.1 ms to prepare and evaluate a wait, 0.15 ms in a
    node with 60 services: about as much as a callback.
    """

    if hasattr(SingleThreadedExecutor, "_wait_for_ready_callbacks"):

        def _wait_for_ready_callbacks(self, *arguments: Any, **options: Any) -> Iterator[Any]:  # type: ignore[override]
            with contextlib.suppress(TimeoutException):
                yield from super()._wait_for_ready_callbacks(0.0, [])  # of no nodes: for the guard condition alone
            yield from super()._wait_for_ready_callbacks(*arguments, **options)


# Service responses that survive a half-discovered client.


RETRY_PERIOD_S = 0.2  # each attempt blocks the executor for 0.1 s
MAX_RETRIES = 25  # after which the client is assumed to be gone

Send = Callable[[Any, Any], None]


def resend_lost_responses(node: Node) -> None:
    """Make all existing services of a node resend responses that could not be delivered."""
    for service in node.services:
        resend_if_lost(node, service)


def resend_if_lost(node: Node, service: "Service[Any, Any]") -> None:
    """Make a service resend a response that could not be delivered because its reader was not discovered yet."""
    send: Send = service.send_response

    def send_now_or_later(response: Any, header: Any) -> None:
        if not _is_sent(send, response, header):
            _Retry(node, send, response, header)

    service.send_response = send_now_or_later  # type: ignore[method-assign] # rclpy's executor offers no hook


def _is_sent(send: Send, response: Any, header: Any) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        try:
            send(response, header)
        except rclpy_implementation.RCLError as error:
            if "will not receive response" not in str(error):
                raise
            return False
    return not any("failed to send response" in str(warning.message) for warning in caught)


class _Retry:
    """Resends one response until it is delivered, or until nobody can be waiting for it."""

    def __init__(self, node: Node, send: Send, response: Any, header: Any) -> None:
        self._node = node
        self._attempt = (send, response, header)
        self._left = MAX_RETRIES
        # Discovery does not depend on ROS time.
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(RETRY_PERIOD_S, self._try, clock=clock)

    def _try(self) -> None:
        self._left -= 1
        if _is_sent(*self._attempt):
            self._node.destroy_timer(self._timer)
        elif self._left == 0:
            self._node.destroy_timer(self._timer)
            self._node.get_logger().warning("A response could not be sent: its client was never fully discovered.")


# The name of a lifecycle node.


def free_name(node: LifecycleNode) -> None:
    """Free the name of a destroyed node, which rcl otherwise has in use for /rosout until garbage is collected."""
    if machine := getattr(node, "_state_machine", None):
        machine.destroy_when_not_in_use()
