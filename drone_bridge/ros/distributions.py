# SPDX-License-Identifier: Apache-2.0
"""Features of rclpy that differ between Humble, Jazzy, Kilted and Lyrical.

All other modules use only names that each of them has (`test_distributions.py`). Each branch below names the
distribution that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rclpy.subscription import Subscription

try:
    from rclpy.event_handler import SubscriptionEventCallbacks, UnsupportedEventTypeError
except ImportError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks, UnsupportedEventTypeError

if TYPE_CHECKING:
    from rclpy.node import Node

__all__ = ["SubscriptionEventCallbacks", "UnsupportedEventTypeError"]

#: Whether a callback of a subscription may have a second argument: the message info. False on Humble.
HAS_MESSAGE_INFO = hasattr(Subscription, "CallbackType")


def with_info(callback: Callable[[Any, dict[str, Any]], object]) -> Callable[..., Any]:
    """Return a callback of a subscription that passes on messages with their info, which is empty on Humble."""
    return callback if HAS_MESSAGE_INFO else lambda message: callback(message, {})


def sequence_number(info: Mapping[str, Any]) -> int | None:
    """Return the number of a message among those of its publisher, or None on Humble, which does not have it."""
    return info.get("publication_sequence_number")


def count_services(node: Node, name: str) -> int:
    """Return the number of servers of a service, or on Humble of nodes with one."""
    if hasattr(node, "count_services"):
        return node.count_services(name)
    return _count(node, name, node.get_service_names_and_types_by_node)  # Humble


def count_clients(node: Node, name: str) -> int:
    """Return the number of clients of a service, or on Humble of nodes with one."""
    if hasattr(node, "count_clients"):
        return node.count_clients(name)
    return _count(node, name, node.get_client_names_and_types_by_node)  # Humble


def _count(node: Node, name: str, of_node: Callable[[str, str], Sequence[tuple[str, list[str]]]]) -> int:
    def has_it(whose: str, namespace: str) -> bool:
        try:
            return any(name == each for each, _ in of_node(whose, namespace))
        except RuntimeError:  # it has just ended
            return False

    return sum(has_it(*each) for each in node.get_node_names_and_namespaces())


def call_before_set(node: Node, callback: Callable[[list[Any]], list[Any]]) -> None:
    """Let a callback change the parameters that a request sets. Not on Humble, which can't."""
    if hasattr(node, "add_pre_set_parameters_callback"):
        node.add_pre_set_parameters_callback(callback)


def call_after_set(node: Node, callback: Callable[[list[Any]], None]) -> Callable[[], object] | None:
    """Call a callback after each change of parameters. Return its removal, or None on Humble, which can't."""
    if not hasattr(node, "add_post_set_parameters_callback"):  # Humble
        return None
    node.add_post_set_parameters_callback(callback)
    return lambda: node.remove_post_set_parameters_callback(callback)
