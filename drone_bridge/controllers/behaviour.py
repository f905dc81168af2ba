# SPDX-License-Identifier: Apache-2.0
"""What every behaviour of drone_controller is."""

from abc import ABC, abstractmethod


class Behaviour(ABC):
    """One way to fly, which creates its own subscriptions and publishers."""

    @abstractmethod
    def leave(self) -> None:
        """Stop publishing for good."""

    def destroy(self) -> None:  # noqa: B027 - most have nothing
        """Give back what rclpy does not destroy with the node, as actions."""
