# SPDX-License-Identifier: Apache-2.0
"""What publishing can raise, and waiting until the last message of a publisher is delivered."""

import contextlib
from typing import Any, Final

from rclpy.duration import Duration
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.publisher import Publisher

DELIVERY_TIMEOUT_S: Final = 0.3
#: A writer of reliable messages was overrun, or ROS is already shutting down.
PUBLISHER_ERRORS: Final = (rclpy_implementation.RCLError, InvalidHandle)


def wait_for_delivery(publisher: "Publisher[Any]") -> None:
    """Wait for subscribers to acknowledge the last message, as ROS may be shut down next."""
    with contextlib.suppress(*PUBLISHER_ERRORS):
        publisher.wait_for_all_acked(Duration(seconds=DELIVERY_TIMEOUT_S))
