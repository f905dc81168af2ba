# SPDX-License-Identifier: Apache-2.0
"""Button presses of operators, as service calls or empty messages."""

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from rclpy.exceptions import InvalidHandle
from std_msgs.msg import Empty
from std_srvs.srv import SetBool, Trigger

from drone_bridge.link_node.link_node import LinkNode

REFUSED: Final = "refused presses"
MISSING: Final = "missing services"
LOOK_PERIOD_S: Final = 0.5
MAX_UNANSWERED: Final = 4  # calls of one service; the oldest are not waited for any more


class Presses(Protocol):
    """The way to a drone that takes off, lands and resets. For the link's thread."""

    def press(self, name: str) -> None:
        """Have the drone do it: takeoff, land or reset. What comes of it is reported, and nobody waits for it."""

    def hold_hover(self, is_held: bool) -> None:
        """Have the drone ignore commands, if it can be told to."""

    def let_go(self) -> None:
        """Give hover back, if it is held: whoever held it is gone."""


class Calls:
    """Calls services: Trigger for each press, SetBool for hover."""

    def __init__(self, node: LinkNode, targets: dict[str, str], done: Callable[[str], None]) -> None:
        """Create the clients. `done` is called, in the executor, with what a service says that it has done."""
        self._node = node
        self._done = done
        kinds: dict[str, type] = {name: SetBool if name == "hover" else Trigger for name in targets}
        self._clients = {name: node.make_client(kinds[name], target) for name, target in targets.items()}
        self._wanted: deque[tuple[str, Any]] = deque(maxlen=16)
        self._unanswered: dict[str, deque[Any]] = {name: deque() for name in targets}
        self._is_hover_held: bool | None = False
        self._calling = threading.Lock()  # so that nothing that was asked for before overtakes that hover is let go of
        self._guard = node.make_guard_condition(self._call_wanted)
        self._are_all_there = False
        node.make_timer(LOOK_PERIOD_S, self._look_for_services)

    def press(self, name: str) -> None:
        """Call the service of that name."""
        self._ask(name, Trigger.Request())

    def hold_hover(self, is_held: bool) -> None:
        """Call the service when that changes; without one, the cmd_vel of zero has to do."""
        if is_held == self._is_hover_held:
            return
        self._is_hover_held = is_held
        self._ask("hover", SetBool.Request(data=is_held))

    def let_go(self) -> None:
        """Give hover back."""
        if not self._is_hover_held:
            return
        client = self._clients["hover"]
        with self._calling, contextlib.suppress(InvalidHandle):  # ROS may be shutting down already
            self._is_hover_held = False
            if client.service_is_ready():
                client.call_async(SetBool.Request(data=False))  # here and now: the executor may be leaving

    def _ask(self, name: str, request: Any) -> None:
        self._wanted.append((name, request))
        try:
            self._guard.trigger()
        except InvalidHandle:
            return

    def _look_for_services(self) -> None:
        """Report which services are not there; hover need not be."""
        missing = [
            self._node.resolve_service_name(client.srv_name)
            for name, client in self._clients.items()
            if name != "hover" and not client.service_is_ready()
        ]
        complaint = f"no node offers {', '.join(missing)}" if missing else None
        self._node.reports.keep_condition(MISSING, complaint, "set target.* to the drone's own")
        if not missing and not self._are_all_there:
            self._node.inform("The drone's services are available.")
        self._are_all_there = not missing

    def _call_wanted(self) -> None:
        while self._wanted:
            with self._calling:
                self._call(*self._wanted.popleft())

    def _call(self, name: str, request: Any) -> None:
        client = self._clients[name]
        if name == "hover" and request.data != self._is_hover_held:
            return  # since it was asked for, the operator has changed its mind or has gone
        if not client.service_is_ready():
            if name == "hover":
                self._is_hover_held = None  # so that it is told again, perhaps to somebody who has come
            else:
                service = self._node.resolve_service_name(client.srv_name)
                self._node.complain(REFUSED, f"{name} was pressed, but no node offers {service}.")
            return
        unanswered = self._unanswered[name]
        while len(unanswered) >= MAX_UNANSWERED:
            client.remove_pending_request(unanswered.popleft())
        future = client.call_async(request)
        unanswered.append(future)
        future.add_done_callback(partial(self._answered, name))

    def _answered(self, name: str, future: Any) -> None:
        if future in self._unanswered[name]:
            self._unanswered[name].remove(future)
        response = future.result()
        if response is None:
            return
        if not response.success:
            self._node.complain(REFUSED, f"{name} was refused: {response.message}")
            return
        if name != "hover":
            self._node.inform(f"{name}: {response.message}")
            self._done(name)


class Messages:
    """Publishes an empty message for each press, for drivers that have topics. Zero is all they know of hover."""

    def __init__(self, node: LinkNode, targets: dict[str, str], done: Callable[[str], None]) -> None:
        """Create the publishers; `done` is called with what was published."""
        self._node = node
        self._done = done
        self._publishers = {
            name: node.make_publisher(Empty, target, 10) for name, target in targets.items() if name != "hover"
        }

    def press(self, name: str) -> None:
        """Publish on the topic of that name."""
        publisher = self._publishers[name]
        if not self._node.is_wanted(publisher):
            self._node.complain(REFUSED, f"{name} was pressed, but no node subscribes to {publisher.topic_name}.")
            return
        self._node.publish(publisher, Empty())
        self._done(name)

    def hold_hover(self, is_held: bool) -> None:
        """Do nothing."""

    def let_go(self) -> None:
        """Do nothing."""
