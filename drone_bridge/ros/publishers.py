# SPDX-License-Identifier: Apache-2.0
"""Publishers of rclpy: what publishing can raise, waiting for delivery, and no warnings of incompatible subscribers."""

import contextlib
from typing import Any

from rclpy.duration import Duration
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import PublisherEventCallbacks  # type: ignore[attr-defined] # where humble has it, too
from rclpy.publisher import Publisher

DELIVERY_TIMEOUT_S = 0.3
#: A writer of reliable messages was overrun, or ROS is already shutting down.
PUBLISHER_ERRORS = (rclpy_implementation.RCLError, InvalidHandle)
#: Of publishers that ignore subscribers with an incompatible QoS, which log a warning themselves.
NO_EVENTS = PublisherEventCallbacks(use_default_callbacks=False)


def wait_for_delivery(publisher: "Publisher[Any]") -> None:
    """Wait for subscribers to acknowledge the last message, as ROS may be shut down next."""
    with contextlib.suppress(*PUBLISHER_ERRORS):
        publisher.wait_for_all_acked(Duration(seconds=DELIVERY_TIMEOUT_S))
