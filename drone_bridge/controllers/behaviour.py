# SPDX-License-Identifier: Apache-2.0
"""Base class for behaviours of drone_controller."""

from abc import ABC, abstractmethod


class Behaviour(ABC):
    """Base class for a behaviour, which creates its own subscriptions and publishers."""

    @abstractmethod
    def leave(self) -> None:
        """Stop publishing permanently."""

    def destroy(self) -> None:  # noqa: B027 - optional
        """Destroy entities that rclpy does not destroy with the node, such as action servers."""
