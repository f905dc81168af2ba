# SPDX-License-Identifier: Apache-2.0
"""ServiceCaller: calls services of a vehicle in ROS, or of a bridge, for the requests of a server's operator."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rclpy.exceptions import InvalidHandle
from std_srvs.srv import Trigger

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.node.stall_watch import PROCESS
from drone_bridge.ros.publishers import PUBLISHER_ERRORS
from drone_bridge.session.session import Answer

CHECK_PERIOD_S = 0.5
#: The bridge of the same launch may start later.
MISSING_AFTER_S = 5.0
#: Timeout of a response of a node whose reports have stopped.
SILENT_TIMEOUT_S = 0.5
#: Limit of pending calls of one service. Beyond it the oldest is abandoned.
MAX_PENDING = 4
#: Condition of unavailable services.
MISSING = "missing_services"

Finish = Callable[[Answer], None]


class ServiceCaller:
    """Clients of services, each a std_srvs/Trigger by default. `call` is for the loop's thread."""

    def __init__(
        self,
        node: ProtocolNode,
        services: Mapping[str, str],
        timeout_s: float,
        *,
        types: Mapping[str, type] | None = None,
        max_pending: int = MAX_PENDING,
        on_missing: Callable[[str], None] = lambda name: None,
        is_gone: Callable[[str], bool] = lambda name: False,
    ) -> None:
        """Create the clients.

        Args:
            node: the node whose session calls.
            services: the names of the services, by request.
            timeout_s: the timeout of a response, s.
            types: other service types, by request. These services are optional.
            max_pending: limit of pending calls of one service; beyond it the oldest is abandoned.
            on_missing: callback, periodically, for each unavailable request. Called in the executor.
            is_gone: returns whether the node that offers a service is known to have ended or to hang, even if the ROS
                graph still contains it.
        """
        self._starts_until_s = elapsed_s() + MISSING_AFTER_S
        self._node, self._timeout_s, self._optional = node, timeout_s, frozenset(types or ())
        self._max_pending, self._on_missing, self._is_gone = max_pending, on_missing, is_gone
        kinds = {**dict.fromkeys(services, Trigger), **(types or {})}
        self._clients = {name: node.make_client(kinds[name], service) for name, service in services.items()}
        # Futures with the time of the call, by `elapsed_s`, and its callback; the oldest first.
        self._pending: dict[str, dict[Any, tuple[float, Finish]]] = {name: {} for name in services}
        node.make_timer(CHECK_PERIOD_S, self._check_calls)

    def call(
        self, name: str, finish: Finish, request: Any = None, *, moves: bool = True, even_if_gone: bool = False
    ) -> None:
        """Call a service. `request` is for other types than Trigger; `finish` gets the Answer, in any thread.

        The call is sent in this thread, so calls stay in order, and the last ones are sent even while the executor is
        shutting down. A call that moves the vehicle is refused while the vehicle is held, or after a stall of this
        process since the decision. `even_if_gone`: also call a node whose reports have stopped: it may have resumed.
        """
        if moves and self._node.hold.is_held:
            finish(_uncalled("the vehicle is held"))
        elif moves and PROCESS.stalled_since(self._node.decided_s):
            finish(_uncalled("the server has just resumed after a stall"))
        elif not (self.is_known(name) if even_if_gone else self.offers(name)):
            finish(_uncalled(self.absence([name])))
        else:
            pending = self._pending[name]
            while len(pending) >= self._max_pending:
                self._give_up(name, next(iter(pending)), is_displaced=True)
            with contextlib.suppress(InvalidHandle, *PUBLISHER_ERRORS):  # ROS may be shutting down already
                future = self._clients[name].call_async(request or Trigger.Request())
                pending[future] = elapsed_s(), finish
                future.add_done_callback(partial(self._answered, name))

    def absence(self, names: Sequence[str]) -> str:
        """Return the reason why services are unavailable."""
        services = ", ".join(self._node.resolve_service_name(self._clients[name].srv_name) for name in names)
        if all(map(self.is_known, names)):
            return f"the node that offers {services} hangs or has ended: its reports have stopped"
        return f"no node offers {services}"

    def offers(self, name: str) -> bool:
        """Return whether a service is available, from a node that is not known to have ended or to hang."""
        return self.is_known(name) and not self._is_gone(name)

    def is_known(self, name: str) -> bool:
        """Return whether a service is in the ROS graph, even if its node has ended or hangs."""
        return bool(self._clients[name].service_is_ready())

    def _answered(self, name: str, future: Any) -> None:
        pending, response = self._pending[name].pop(future, None), future.result()
        if pending and response is not None:
            pending[1](Answer(response.success, response.message, response=response))

    def _check_calls(self) -> None:
        """Report unavailable services, and time out pending calls. In the executor."""
        missing = [name for name in self._clients if not self.offers(name)]
        for name in missing:
            self._on_missing(name)
        is_starting = elapsed_s() < self._starts_until_s
        needed = [each for each in missing if each not in self._optional and (self.is_known(each) or not is_starting)]
        # A missing service that is still in the ROS graph belongs to a node that hangs or has ended.
        are_known = all(map(self.is_known, needed))
        advice = "its launch file restarts it" if are_known else "set target.* to the vehicle's own"
        self._node.report.update_condition(MISSING, self.absence(needed) if needed else None, advice)
        running_s = PROCESS.running_s()  # not counting a stall: a response that arrived meanwhile comes first
        for name, pending in self._pending.items():
            timeout_s = SILENT_TIMEOUT_S if self._is_gone(name) else self._timeout_s
            for future, (called_s, _) in tuple(pending.items()):
                if min(elapsed_s() - called_s, running_s) > timeout_s:
                    self._give_up(name, future)

    def _give_up(self, name: str, future: Any, *, is_displaced: bool = False) -> None:
        if pending := self._pending[name].pop(future, None):
            self._clients[name].remove_pending_request(future)
            called_s, finish = pending
            service = self._node.resolve_service_name(self._clients[name].srv_name)
            sentence = f"{service} has not answered within {elapsed_s() - called_s:.1f} s"
            finish(Answer(False, sentence, has_come=False, was_displaced=is_displaced))


def _uncalled(why: str) -> Answer:
    return Answer(False, why, was_called=False, has_come=False)
