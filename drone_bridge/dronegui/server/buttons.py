# SPDX-License-Identifier: Apache-2.0
"""Button presses of operators, as service calls or empty messages."""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from rclpy.exceptions import InvalidHandle
from std_msgs.msg import Empty
from std_srvs.srv import SetBool, Trigger

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.stall_watch import PROCESS

REFUSED = "refused presses"
MISSING = "missing services"
SERVICE_CHECK_PERIOD_S = 0.5
MAX_PENDING = 4  # calls of one service; older ones are abandoned
UNANSWERED = "unanswered presses"
#: More than dronegui_bridge needs by default to bring up a GUI, take off, and look whether the drone flies.
ANSWER_TIMEOUT_S = 15.0


class Buttons(Protocol):
    """How button presses reach the drone. For the link's thread."""

    def press(self, name: str) -> None:
        """Request takeoff, land or reset. The outcome is logged, not returned."""

    def hold_hover(self, is_held: bool) -> None:
        """Have the drone hover and ignore commands, if it can."""

    def release_hover(self) -> None:
        """Release hover if it is held, as somebody else flies the drone, or the server leaves."""


class ServiceButtons:
    """Calls services: Trigger for each press, SetBool for hover."""

    def __init__(
        self,
        node: LinkNode,
        targets: dict[str, str],
        on_done: Callable[[str], None],
        has_gone: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Create the clients.

        `on_done` is called, in the executor, with the name of each press that succeeded. `has_gone` returns, for a
        service of this name, whether its node is known to be dead or to hang, whatever the ROS graph says.
        """
        self._node = node
        self._on_done = on_done
        self._has_gone = has_gone
        kinds: dict[str, type] = {name: SetBool if name == "hover" else Trigger for name in targets}
        self._clients = {name: node.make_client(kinds[name], target) for name, target in targets.items()}
        self._requested: deque[tuple[str, Any, float]] = deque(maxlen=16)  # with the time, by `elapsed_s`
        self._pending: dict[str, dict[Any, float]] = {name: {} for name in targets}  # calls, and when they were made
        self._is_hover_held: bool | None = False
        self._calling = threading.Lock()  # so that no earlier call overtakes the release of hover
        self._guard = node.make_guard_condition(self._make_calls)
        self._are_all_available = False
        node.make_timer(SERVICE_CHECK_PERIOD_S, self._check_services)

    def press(self, name: str) -> None:
        self._request(name, Trigger.Request())

    def hold_hover(self, is_held: bool) -> None:
        """Call the service when the state changes; without one, the operator's zero cmd_vel has to do.

        A vehicle on hold hovers, whatever the operator wants.
        """
        is_held = is_held or self._node.hold.is_held
        if is_held == self._is_hover_held:
            return
        self._is_hover_held = is_held
        self._request("hover", SetBool.Request(data=is_held))

    def release_hover(self) -> None:
        if not self._is_hover_held:
            return
        client = self._clients["hover"]
        with self._calling, contextlib.suppress(InvalidHandle):  # ROS may be shutting down already
            self._is_hover_held = False
            if self._is_offered("hover"):
                client.call_async(SetBool.Request(data=False))  # in this thread, as the executor may be shutting down

    def _request(self, name: str, request: Any) -> None:
        self._requested.append((name, request, elapsed_s()))
        try:
            self._guard.trigger()
        except InvalidHandle:
            return

    def _check_services(self) -> None:
        """Report services that are not available, except hover, which is optional."""
        missing = [name for name in self._clients if name != "hover" and not self._is_offered(name)]
        # A service that is known has a node that hangs, or has ended.
        are_known = all(self._clients[name].service_is_ready() for name in missing)
        advice = "its launch file starts it again" if are_known else "set target.* to the drone's own"
        self._node.reports.update_condition(MISSING, self._absence(missing) if missing else None, advice)
        if not missing and not self._are_all_available:
            self._node.inform("The drone's services are available.")
        self._are_all_available = not missing
        if not self._is_offered("hover"):
            self._is_hover_held = None  # a bridge that comes back has forgotten it
        self._give_up_overdue(time.monotonic())

    def _is_offered(self, name: str) -> bool:
        return self._clients[name].service_is_ready() and not self._has_gone(name)

    def _absence(self, names: Sequence[str]) -> str:
        """Return, without a full stop, why services that are not offered are not."""
        services = ", ".join(self._node.resolve_service_name(self._clients[name].srv_name) for name in names)
        if all(self._clients[name].service_is_ready() for name in names):
            return f"the node that offers {services} hangs or has ended, as it reports nothing any more"
        return f"no node offers {services}"

    def _give_up_overdue(self, now_s: float) -> None:
        """Report presses that have timed out.

        They are not repeated, as the operator may want something else by now.
        """
        for name, pending in self._pending.items():
            for future, called_s in tuple(pending.items()):
                if not self._has_gone(name) and now_s - called_s < ANSWER_TIMEOUT_S:
                    continue
                self._abandon(name, future)
                service = self._node.resolve_service_name(self._clients[name].srv_name)
                sentence = f"{name} was pressed, and {service} has not answered within {now_s - called_s:.1f} s."
                self._node.count_and_warn(UNANSWERED, f"{sentence} It is not called again.")

    def _abandon(self, name: str, future: Any) -> None:
        del self._pending[name][future]
        self._clients[name].remove_pending_request(future)
        if name == "hover":
            self._is_hover_held = None  # so that the next packet requests it again

    def _make_calls(self) -> None:
        while self._requested:
            with self._calling:
                self._call(*self._requested.popleft())

    def _call(self, name: str, request: Any, asked_s: float) -> None:
        client = self._clients[name]
        if name == "hover" and request.data != self._is_hover_held:
            return  # outdated: the operator has released hover or is gone
        if name not in ("hover", "land") and self._node.hold.is_held:  # since it was pressed
            self._node.count_and_warn(REFUSED, f"{name} was pressed, and is refused while the vehicle is held.")
            return
        if name not in ("hover", "land") and PROCESS.stood_still_since(asked_s):
            self._node.count_and_warn(REFUSED, f"{name} was pressed before this process stood still, and is refused.")
            return
        if not self._is_offered(name):
            if name == "hover":
                self._is_hover_held = None  # so that the next packet requests it again
            else:
                self._node.count_and_warn(REFUSED, f"{name} was pressed, but {self._absence([name])}.")
            return
        pending = self._pending[name]
        while len(pending) >= MAX_PENDING:
            client.remove_pending_request(oldest := next(iter(pending)))
            del pending[oldest]
        future = client.call_async(request)
        pending[future] = time.monotonic()
        future.add_done_callback(partial(self._answered, name))

    def _answered(self, name: str, future: Any) -> None:
        self._pending[name].pop(future, None)
        response = future.result()
        if response is None:
            return
        if not response.success:
            self._node.count_and_warn(REFUSED, f"{name} was refused: {response.message}")
            return
        if name != "hover":
            self._node.inform(f"{name}: {response.message}")
            self._on_done(name)


class TopicButtons:
    """Publishes an empty message for each press, for drivers with topics, which have none for hover."""

    def __init__(self, node: LinkNode, targets: dict[str, str], on_done: Callable[[str], None]) -> None:
        """Create the publishers; `on_done` is called with the name of each press that was published."""
        self._node = node
        self._on_done = on_done
        self._publishers = {
            name: node.make_publisher(Empty, target, 10) for name, target in targets.items() if name != "hover"
        }

    def press(self, name: str) -> None:
        publisher = self._publishers[name]
        if not self._node.is_wanted(publisher):
            self._node.count_and_warn(REFUSED, f"{name} was pressed, but no node subscribes to {publisher.topic_name}.")
            return
        self._node.publish(publisher, Empty())
        self._on_done(name)

    def hold_hover(self, is_held: bool) -> None:
        """Do nothing."""

    def release_hover(self) -> None:
        """Do nothing."""
