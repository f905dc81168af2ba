# SPDX-License-Identifier: Apache-2.0
"""RequestServices: services of a bridge, std_srvs/Trigger, that pass requests to its session."""

import math
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future
from std_srvs.srv import Trigger

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.node.protocol_node import REFUSED_COMMANDS, ProtocolNode
from drone_bridge.ros.node.stall_watch import PROCESS
from drone_bridge.ros.steady_timer import steady_timer
from drone_bridge.session.session import EMERGENCY, ENDS_FLIGHT, Actions, Session

#: How long a request waits for the link of a bridge that was just activated, and the polling period.
LINK_TIMEOUT_S, _LOOK_S = 1.0, 0.05


class PendingRequest:
    """Service call that waits for its outcome. `finish` is thread-safe."""

    def __init__(self, node: ProtocolNode, name: str) -> None:
        self.name = name
        #: Time of the call, by the clock of sessions, s.
        self.asked_s = elapsed_s()
        self._executor = node.executor
        self.future: Future[tuple[bool, str]] = Future(executor=self._executor)
        #: Further result, or None.
        self.result: Any = None

    def finish(self, is_success: bool, sentence: str, result: Any = None) -> None:
        """Set the outcome, and wake the executor. Later outcomes are ignored."""
        if not self.future.done():
            self.result = result
            self.future.set_result((is_success, sentence))
        if self._executor:
            self._executor.wake()


Ask = Callable[[PendingRequest, float], Actions]


def pass_on(
    node: ProtocolNode, session: Session | None, name: str, ask: Ask, *, absence: str, is_never_stale: bool = False
) -> PendingRequest:
    """Pass a request to a session with an open connection. Raises ValueError with a sentence.

    Args:
        node: the node of the session.
        session: its session. None before the first activation.
        name: the name of the request.
        ask: callback in the session. The Outcome comes now or later.
        absence: the sentence for a session without a connection.
        is_never_stale: whether the request is permitted after a stall.
    """
    if not is_never_stale:
        node.check_age(name)
    request = PendingRequest(node, name)
    if is_never_stale:
        request.asked_s = math.inf
    if not (session and session.is_open and node.post(partial(ask, request), is_kept=True)):
        raise ValueError(absence)
    if not session.is_open:  # it ended before the request was posted, and won't answer
        request.finish(False, absence)
    return request


def undeliverable(node: ProtocolNode, name: str) -> str | None:
    """Return why a request can't reach the vehicle now, a sentence, or None."""
    reason = node.undeliverable()
    return f"{name} can't be requested: {reason}" if reason else None


class RequestServices:
    """Services `~/<name>`, whose calls are passed to the session as requests."""

    def __init__(
        self,
        node: ProtocolNode,
        names: Collection[str],
        ask: Ask,
        *,
        refusal: Callable[[str], str | None] | None = None,
        outlive_cleanup: bool = False,
        on_hold: Collection[str] = ENDS_FLIGHT,
        never_stale: Collection[str] = ENDS_FLIGHT,
    ) -> None:
        """Create the services.

        Args:
            node: the node whose session gets the requests.
            names: the names of the services.
            ask: callback in the session, with a request and the time. The Outcome comes now or later.
            refusal: returns why a request is refused now, or None. The default refuses without a reachable vehicle.
            outlive_cleanup: whether the services exist before the node is configured, and then refuse.
            on_hold: the names that are permitted while the vehicle is held.
            never_stale: the names that are permitted after a stall, an emergency for EMERGENCY_AGE_S.
        """
        self._node, self._ask, self._refusal = node, ask, refusal or partial(undeliverable, node)
        self._on_hold, self._never_stale = frozenset(on_hold), frozenset(never_stale)
        self.group = ReentrantCallbackGroup()  # a response may take long, and cmd_vel has to arrive meanwhile
        for name in names:
            service = node.create_service(Trigger, f"~/{name}", partial(self._serve, name), callback_group=self.group)
            if not outlive_cleanup:
                node.cleanup.callback(node.destroy_service, service)

    async def request(self, name: str, ask: Ask | None = None, *, moves: bool = True) -> str:
        """Send a request to the session. Return the outcome, a sentence. Raises ValueError with a sentence.

        Args:
            name: the name of the request.
            ask: replaces `ask` of the constructor.
            moves: whether the request is refused while the vehicle is held, unless its name is in `on_hold`.
        """
        asked_s = elapsed_s()
        if moves and name not in self._on_hold:
            self._node.hold.check(name)
        if name == EMERGENCY:
            asked_s -= PROCESS.waited_s()
        elif name not in self._never_stale:
            self._node.check_age(name)
        await self._wait_for_link()
        if name not in self._never_stale and PROCESS.stalled_since(asked_s):
            raise ValueError(f"The request {name} is stale: the process was stalled meanwhile. Please call again.")
        if reason := self._refusal(name):
            raise ValueError(reason)
        request = PendingRequest(self._node, name)
        if name in self._never_stale:
            request.asked_s = asked_s
        if not self._node.post(partial(ask or self._ask, request), is_kept=True):
            raise ValueError(f"{name} can't be requested: the bridge's link has just ended.")
        is_success, sentence = await request.future  # type: ignore[misc, unused-ignore] # Kilted
        if not is_success:
            raise ValueError(sentence)
        return str(sentence)

    async def _serve(self, name: str, _: Any, response: Trigger.Response) -> Trigger.Response:
        try:
            response.message, response.success = await self.request(name), True
        except ValueError as error:
            response.message, response.success = str(error), False
            self._node.report.count_and_warn(REFUSED_COMMANDS, f"{name}: {error}")
        return response

    async def _wait_for_link(self) -> None:
        """Wait until the link, which opens in its own thread after activation, is open, or for LINK_TIMEOUT_S."""
        checks_left = round(LINK_TIMEOUT_S / _LOOK_S)
        if self._is_decided():
            return
        over: Future[None] = Future(executor=self._node.executor)

        def check_link() -> None:
            nonlocal checks_left
            checks_left -= 1
            if not over.done() and (self._is_decided() or checks_left <= 0):
                over.set_result(None)

        timer = steady_timer(self._node, _LOOK_S, check_link, self.group)
        await over
        self._node.destroy_timer(timer)

    def _is_decided(self) -> bool:
        return not self._node.has_link or self._node.report.is_open
