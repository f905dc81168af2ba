# SPDX-License-Identifier: Apache-2.0
"""Service responses that survive a client which is only half discovered.

A client may find a service whose writer has not found the client's reader yet. A response that is sent then is lost:
rclpy warns, or raises on Humble before 3.3.10, and the client waits for ever. So a service's `send_response`, by its
public name, is wrapped to send such a response again until it is delivered.
"""

import warnings
from collections.abc import Callable
from typing import Any

from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.service import Service

RETRY_PERIOD_S = 0.2  # each attempt blocks the executor for 0.1 s
MAX_RETRIES = 25  # after which the client is assumed to be gone

Send = Callable[[Any, Any], None]


def resend_lost_responses(node: Node) -> None:
    """Make all existing services of a node resend responses that could not be delivered."""
    for service in node.services:
        if "send_response" not in vars(service):  # else it does so already: those that a ProtocolNode creates
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
