# SPDX-License-Identifier: Apache-2.0
"""Reliable service responses to clients that are only partly discovered.

A client may discover a service whose writer has not discovered the client's reader yet. A response sent at that time is
lost: rclpy warns, or raises on Humble before 3.3.10, and the client waits forever. The public method `send_response`
of a service is therefore wrapped to resend such a response until it is delivered.
"""

import warnings
from collections.abc import Callable
from typing import Any

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.service import Service

from drone_bridge.ros.steady_timer import steady_timer

RETRY_PERIOD_S = 0.2  # each attempt blocks the executor for 0.1 s
MAX_RETRIES = 25  # then the client is assumed to have ended

Send = Callable[[Any, Any], None]

#: Those of this process that go on.
_RETRIES = set["_Retry"]()


def resend_lost_responses(node: Node) -> None:
    """Wrap all existing services of a node to resend undelivered responses."""
    for service in node.services:
        if "send_response" not in vars(service):  # those of a ProtocolNode are wrapped already
            resend_if_lost(node, service)


def resend_if_lost(node: Node, service: "Service[Any, Any]") -> None:
    """Wrap a service to resend a response whose reader was not discovered yet."""
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


def has_undelivered() -> bool:
    """Return whether responses of this process are still to be resent."""
    return bool(_RETRIES)


class _Retry:
    """Retry of one response, until it is delivered or its client is assumed to have ended."""

    def __init__(self, node: Node, send: Send, response: Any, header: Any) -> None:
        self._node = node
        self._attempt = (send, response, header)
        self._left = MAX_RETRIES
        self._timer = steady_timer(node, RETRY_PERIOD_S, self._try)
        _RETRIES.add(self)

    def _try(self) -> None:
        self._left -= 1
        is_sent = _is_sent(*self._attempt)
        if not is_sent and self._left:
            return
        self._node.destroy_timer(self._timer)
        _RETRIES.discard(self)
        if not is_sent:
            self._node.get_logger().warning("A response could not be sent: its client was never fully discovered.")
