# SPDX-License-Identifier: Apache-2.0
"""Answers of services that are not lost when the client is known only by halves.

A client may call as soon as it has discovered the service; the service may discover the client's reader for answers
up to seconds later on a busy machine. rmw_fastrtps waits for 0.1 s, then drops the answer, and the client waits
forever. rclpy tells it by a RuntimeWarning, that of humble before 3.3.10 raises RCLError.
"""

import warnings
from collections.abc import Callable
from typing import Any, Final

from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.service import Service

RETRY_PERIOD_S: Final = 0.2  # each try keeps the executor for 0.1 s
MAX_RETRIES: Final = 25  # then the client is taken to have gone

Send = Callable[[Any, Any], None]


def keep_all_unsent(node: Node) -> None:
    """Make all services that the node has so far send such answers again."""
    for service in node.services:
        keep_unsent(node, service)


def keep_unsent(node: Node, service: "Service[Any, Any]") -> None:
    """Make a service send an answer again, later, that could not be sent for want of a reader."""
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
    """Sends one answer until it is sent, or until nobody can be waiting for it."""

    def __init__(self, node: Node, send: Send, response: Any, header: Any) -> None:
        self._node = node
        self._attempt = (send, response, header)
        self._left = MAX_RETRIES
        # Discovery goes on, whatever ROS time does.
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(RETRY_PERIOD_S, self._try, clock=clock)

    def _try(self) -> None:
        self._left -= 1
        if _is_sent(*self._attempt):
            self._node.destroy_timer(self._timer)
        elif self._left == 0:
            self._node.destroy_timer(self._timer)
            self._node.get_logger().warning("An answer could not be sent: its client was never discovered wholly.")
