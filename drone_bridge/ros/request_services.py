# SPDX-License-Identifier: Apache-2.0
"""RequestServices: services of a bridge, std_srvs/Trigger, that ask its session for something."""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future
from std_srvs.srv import Trigger

from drone_bridge.net.clock import Clock
from drone_bridge.ros.protocol_node import ProtocolNode
from drone_bridge.session.session import Actions

#: What is followed while the vehicle is held, and however long it has waited.
LAND = "land"


class Request:
    """One call that waits. `finish` is for any thread."""

    def __init__(self, node: ProtocolNode, name: str) -> None:
        self.name = name
        #: When it was asked for, by the clock of sessions.
        self.asked_s = Clock().now_s()
        self._executor = node.executor
        self.future: Future[tuple[bool, str]] = Future(executor=self._executor)

    def finish(self, is_success: bool, sentence: str) -> None:
        """Have the service respond."""
        self.future.set_result((is_success, sentence))
        if self._executor:
            self._executor.wake()


class RequestServices:
    """Offers `~/<name>` for each of some names; only landing is asked for while the vehicle is held."""

    def __init__(self, node: ProtocolNode, names: Collection[str], ask: Callable[[Request, float], Actions]) -> None:
        """`ask` is for the session: it gets a request and the time, and its Outcome comes now or later."""
        self._node, self._ask = node, ask
        group = ReentrantCallbackGroup()  # as an answer may take long, and cmd_vel has to arrive meanwhile
        for name in names:
            service = node.create_service(Trigger, f"~/{name}", partial(self._serve, name), callback_group=group)
            node.cleanup.callback(node.destroy_service, service)

    async def _serve(self, name: str, _: Any, response: Trigger.Response) -> Trigger.Response:
        try:
            if name != LAND:
                self._node.hold.check(name)
                self._node.check_age(name)
            if reason := self._node.undeliverable():
                raise ValueError(f"{name} can't be asked for: {reason}")
            request = Request(self._node, name)
            self._node.post(partial(self._ask, request), is_kept=True)
            response.success, response.message = await request.future  # type: ignore[misc] # annotated as an iterator
        except ValueError as error:
            response.success, response.message = False, str(error)
        if not response.success:
            self._node.count_and_warn("refused commands", f"{name}: {response.message}")
        return response
