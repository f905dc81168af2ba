# SPDX-License-Identifier: Apache-2.0
"""Shared code of scripts with a ROS node."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.publisher import Publisher


@contextlib.contextmanager
def ros(*, is_interrupted: bool = False) -> Iterator[None]:
    """Initialize ROS, and shut it down at SIGINT.

    `is_interrupted`: SIGINT also raises KeyboardInterrupt, for a main thread that does not only spin. An executor must
    not be interrupted while it handles a message.
    """
    # Before rclpy's handler. Background programs of a shell start with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler if is_interrupted else lambda *_: None)
    rclpy.init()
    try:
        with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
            yield
    finally:
        rclpy.try_shutdown()


def spin(node: Node) -> None:
    """Spin a node until SIGINT."""
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    with contextlib.suppress(ExternalShutdownException):
        try:
            executor.spin()
        except rclpy_implementation.RCLError:  # the context has ended meanwhile
            if rclpy.ok():
                raise


def spin_in_a_thread(node: Node) -> None:
    """Spin a node in a thread that ends with ROS."""
    threading.Thread(target=spin, args=(node,)).start()


def publish(publisher: "Publisher[Any]", message: Any) -> None:
    """Publish, ignoring errors of the middleware."""
    try:  # noqa: SIM105 -- a context manager costs time
        publisher.publish(message)
    except rclpy_implementation.RCLError:
        pass  # the queue of a stalled subscriber is full
