# SPDX-License-Identifier: Apache-2.0
"""RobotServices: the services of robot_bridge and the topic light, as requests to the session."""

from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from drone_bridge.msg import Robot
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import LinkError
from drone_bridge.robot.discovery import REPLIES_S, DiscoveryRoute, DiscoverySearch
from drone_bridge.robot.session.driver import NOT_CONNECTED, DriverSession
from drone_bridge.ros.node.protocol_node import REFUSED_COMMANDS, ProtocolNode
from drone_bridge.ros.node.request_services import PendingRequest, pass_on
from drone_bridge.ros.steady_timer import steady_timer
from drone_bridge.session.session import Actions
from drone_bridge.srv import Bind, Discover, Unbind
from drone_bridge.wire.printable import printable

BIND, UNBIND, LIGHT = "bind", "unbind", "light"
#: Polling period of discovery replies.
POLL_PERIOD_S = 0.02


#: What the session does for each request, with its number.
_TASKS: dict[str, Callable[..., Actions]] = {
    BIND: lambda session, number, request, now_s: session.bind(request, number, now_s),
    UNBIND: lambda session, number, request, now_s: session.unbind(request, number, now_s),
    LIGHT: lambda session, number, request, now_s: session.switch_light(request, bool(number), now_s),
}


class RobotServices:
    """Services that are always available, and return an error while no robot is connected."""

    def __init__(
        self, node: ProtocolNode, session: Callable[[], DriverSession | None], read_route: Callable[[], DiscoveryRoute]
    ) -> None:
        """`session` returns the node's session, None before activation. `read_route` returns the route of discovery."""
        self._node, self._session, self._read_route = node, session, read_route
        group = ReentrantCallbackGroup()  # callbacks wait
        node.create_service(Discover, "~/discover", self._serve_discover, callback_group=group)
        for task, service in ((BIND, Bind), (UNBIND, Unbind), (LIGHT, SetBool)):
            node.create_service(service, f"~/{task}", partial(self._serve, task), callback_group=group)

    def switch_light(self, message: Bool) -> None:
        """Switch the lights like the service, without a response."""
        try:
            request = self._ask(LIGHT, int(message.data))
        except ValueError as error:
            self._refuse_light(str(error))
            return
        request.future.add_done_callback(self._report_light)

    def _report_light(self, done: "Future[tuple[bool, str]]") -> None:
        is_success, sentence = done.result() or (True, "")
        if not is_success:
            self._refuse_light(sentence)

    def _refuse_light(self, reason: str) -> None:
        self._node.report.count_and_warn(REFUSED_COMMANDS, f"Refused a message on light: {reason}")

    async def _serve(self, task: str, request: Any, response: Any) -> Any:
        """Post a request to the session, and fill the response with its outcome."""
        number = int(request.data) if task == LIGHT else request.id
        try:
            waiting = self._ask(task, number)
            response.success, response.message = await waiting.future  # type: ignore[misc, unused-ignore] # Kilted
        except ValueError as error:
            response.success, response.message = False, str(error)
        return response

    def _ask(self, task: str, number: int) -> PendingRequest:
        """Pass a request to the session. Raises ValueError with a sentence."""
        session = self._session()
        return pass_on(self._node, session, task, partial(_TASKS[task], session, number), absence=NOT_CONNECTED)

    async def _serve_discover(self, _: Discover.Request, response: Discover.Response) -> Discover.Response:
        """Search for robots."""
        try:
            return await self._begin_search() or response
        except (LinkError, ValueError) as error:
            response.message = str(error)
            return response

    def _begin_search(self) -> "Future[Discover.Response]":
        """Send a discovery request, and poll for replies. Raises LinkError and ValueError."""
        route = self._read_route()
        search = DiscoverySearch(route, REPLIES_S, elapsed_s())
        done: Future[Discover.Response] = Future(executor=self._node.executor)

        def poll() -> None:
            response = Discover.Response()
            try:
                search.poll(now_s := elapsed_s())
                if now_s < search.ends_s:
                    return
                response.robots = [Robot(address=robot.address, name=printable(robot.name)) for robot in search.found]
                response.success, response.message = True, f"{len(search.found)} answered."
                if route.limitation and not search.found:
                    response.message += f" {route.limitation}."
            except LinkError as error:
                response.message = str(error)
            search.close()
            self._node.destroy_timer(timer)
            done.set_result(response)

        timer = steady_timer(self._node, POLL_PERIOD_S, poll)
        return done
