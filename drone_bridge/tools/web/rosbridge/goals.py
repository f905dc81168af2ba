# SPDX-License-Identifier: Apache-2.0
"""ClientGoals: goals that clients of rosbridge have sent. For the executor's thread.

Clients share an ActionClient for each action. It is destroyed when no client uses it and no goal of it is left, since
controllers hold a reached goal only while there is one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rclpy.action import ActionClient
from rclpy.node import Node

from drone_bridge.tools.web.inbox import Inbox


@dataclass(eq=False, slots=True)
class UsedAction:
    """Action with its client."""

    client: Any
    users: set[object] = field(default_factory=set)
    goals: int = 0
    """Number of goals without a result."""


@dataclass(eq=False, slots=True)
class SentGoal:
    """Goal, which may be canceled before it is accepted."""

    action: str
    handle: Any = None
    is_canceled: bool = False

    def cancel(self) -> None:
        self.is_canceled = True
        if self.handle:
            self.handle.cancel_goal_async()


class ClientGoals:
    """Sends goals, and reports their feedback and end."""

    def __init__(self, node: Node, inbox: Inbox, make_client: Callable[..., Any] = ActionClient) -> None:
        self._node, self._inbox, self._make_client = node, inbox, make_client
        self._actions: dict[str, UsedAction] = {}

    def send(
        self,
        user: object,
        name: str,
        kind: Any,
        goal: Any,
        *,
        on_feedback: Callable[[Any], None],
        on_end: Callable[[Any], None],
    ) -> SentGoal:
        """Send a goal. `on_end` gets its result with the status, or an exception."""
        if name not in self._actions:
            self._actions[name] = UsedAction(self._make_client(self._node, kind, name))
        action, sent = self._actions[name], SentGoal(name)
        action.users.add(user)

        def end(ended: Any) -> None:
            action.goals -= 1
            self._inbox.put(self._destroy_unused)  # not within its own callback
            on_end(ended)

        def on_result(future: Any) -> None:
            end(future.exception() or future.result())

        def on_response(future: Any) -> None:
            if future.exception() or not future.result().accepted:
                end(future.exception() or RuntimeError(f"{name} refused the goal."))
                return
            sent.handle = future.result()
            sent.handle.get_result_async().add_done_callback(on_result)
            if sent.is_canceled:
                sent.cancel()

        # Raises for a text that can't be encoded: such a goal has no end.
        response = action.client.send_goal_async(goal, lambda message: on_feedback(message.feedback))
        action.goals += 1
        response.add_done_callback(on_response)
        return sent

    def leave(self, user: object) -> None:
        """Forget a client."""
        for action in self._actions.values():
            action.users.discard(user)
        self._destroy_unused()

    def _destroy_unused(self) -> None:
        for name, action in list(self._actions.items()):
            if not action.users and not action.goals:
                action.client.destroy()
                del self._actions[name]
