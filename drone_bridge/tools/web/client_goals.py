# SPDX-License-Identifier: Apache-2.0
"""ClientGoals: goals that the pages, or a client of rosbridge, have sent. For the executor's thread.

There is an ActionClient for each action that is kept or has a goal, since controllers hold a reached goal only while
there is one.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from rclpy.action import ActionClient
from rclpy.node import Node

from drone_bridge.tools.web.inbox import Inbox


@dataclass(eq=False, slots=True)
class SentGoal:
    """Goal, which may be canceled before it is accepted."""

    action: str
    end: Callable[[Any], None]
    handle: Any = None
    is_canceled: bool = False
    has_server: bool = False
    """Whether its action server was there."""

    def cancel(self) -> None:
        self.is_canceled = True
        if self.handle:
            self.handle.cancel_goal_async()


class ClientGoals:
    """Sends goals, and reports their feedback and end."""

    def __init__(self, node: Node, inbox: Inbox, make_client: Callable[..., Any] = ActionClient) -> None:
        self._node, self._inbox, self._make_client = node, inbox, make_client
        #: Goals without a result, by their numbers.
        self.sent: dict[Any, SentGoal] = {}
        self._actions: dict[str, Any] = {}
        self._kept: Collection[str] | None = None  # None: all

    def use(self, name: str, kind: Any) -> None:
        """Create the client of an action, unless there is one."""
        if name not in self._actions:
            self._actions[name] = self._make_client(self._node, kind, name)

    def send(
        self,
        number: Any,
        name: str,
        kind: Any,
        goal: Any,
        *,
        on_feedback: Callable[[Any], None],
        on_end: Callable[[Any], None],
    ) -> None:
        """Send a goal. `on_end` gets its result with the status, or an exception."""
        self.use(name, kind)

        def end(ended: Any) -> None:
            if self.sent.pop(number, None) is None:
                return
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

        sent = SentGoal(name, end)
        # Raises for a text that can't be encoded: such a goal has no end.
        response = self._actions[name].send_goal_async(goal, lambda message: on_feedback(message.feedback))
        self.sent[number] = sent
        response.add_done_callback(on_response)

    def look(self) -> None:
        """End the goals whose action server has disappeared. To be called regularly."""
        for goal in tuple(self.sent.values()):
            is_there = self._actions[goal.action].server_is_ready()
            if goal.has_server and not is_there:
                goal.cancel()  # in case it is only out of reach
                goal.end(RuntimeError(f"The node that serves {goal.action} is gone."))
            goal.has_server = is_there

    def keep(self, actions: Collection[str]) -> None:
        """Destroy the clients of other actions, once their goals have ended."""
        self._kept = actions
        self._destroy_unused()

    def _destroy_unused(self) -> None:
        if self._kept is not None:
            used = {*self._kept, *(goal.action for goal in self.sent.values())}
            for name in self._actions.keys() - used:
                self._actions.pop(name).destroy()
