# SPDX-License-Identifier: Apache-2.0
"""Publishers of rclpy: errors of publishing, waiting for delivery, and options without QoS warnings."""

import contextlib
from typing import Any

from rclpy.duration import Duration
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import PublisherEventCallbacks  # where all have it
from rclpy.publisher import Publisher

DELIVERY_TIMEOUT_S = 0.3
#: Errors of publishing: a reliable writer was overrun, or ROS is shutting down.
PUBLISHER_ERRORS = (rclpy_implementation.RCLError, InvalidHandle)
#: Event callbacks that ignore subscribers with an incompatible QoS. Those log a warning themselves.
NO_EVENTS = PublisherEventCallbacks(use_default_callbacks=False)


def try_publish(publisher: "Publisher[Any]", message: Any) -> None:
    """Publish a message, unless ROS is being shut down or another thread destroys the publisher."""
    with contextlib.suppress(*PUBLISHER_ERRORS):
        publisher.publish(message)


def has_subscribers(publisher: "Publisher[Any]") -> bool:
    """Return whether a topic has subscribers. A destroyed publisher has none."""
    with contextlib.suppress(*PUBLISHER_ERRORS):
        return publisher.get_subscription_count() > 0
    return False


def wait_for_delivery(publisher: "Publisher[Any]") -> None:
    """Wait until subscribers have acknowledged the last message. Call this before a shutdown of ROS."""
    with contextlib.suppress(*PUBLISHER_ERRORS):
        publisher.wait_for_all_acked(Duration(seconds=DELIVERY_TIMEOUT_S))
