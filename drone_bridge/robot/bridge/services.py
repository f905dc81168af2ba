# SPDX-License-Identifier: Apache-2.0
"""RobotServices: the services of robot_bridge and the topic light, which ask its session for something."""

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from drone_bridge.msg import Robot
from drone_bridge.net.connector import Cancellation, LinkError
from drone_bridge.robot.discovery import DiscoveryRoute, find_robots
from drone_bridge.robot.session.driver import NOT_CONNECTED, DriverSession
from drone_bridge.ros.link_requests import complete
from drone_bridge.ros.request_services import Request
from drone_bridge.srv import Bind, Discover, Unbind
from drone_bridge.wire.layouts import printable

if TYPE_CHECKING:
    from drone_bridge.robot.bridge.node import RobotBridge

BIND, UNBIND, LIGHT = "bind", "unbind", "light"


class RobotServices:
    """Always available; they return an error until a robot is connected."""

    def __init__(self, node: "RobotBridge", read_route: Callable[[], DiscoveryRoute]) -> None:
        """`read_route` returns the route for discovery."""
        self._node, self._read_route = node, read_route
        self._discovery: Future[Discover.Response] | None = None
        group = ReentrantCallbackGroup()  # as callbacks wait
        node.make_service(Discover, "discover", self._serve_discover, callback_group=group)
        for task, service in ((BIND, Bind), (UNBIND, Unbind), (LIGHT, SetBool)):
            node.make_service(service, task, partial(self._serve, task), callback_group=group)

    def switch_light(self, message: Bool) -> None:
        """Switch the light as the service does, without a response."""
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
        self._node.count_and_warn("refused commands", f"A message on light was refused: {reason}")

    async def _serve(self, task: str, request: Any, response: Any) -> Any:
        """Have the session do a task, and fill the response."""
        number = int(request.data) if task == LIGHT else request.id
        try:
            asked = self._ask(task, number)
            response.success, response.message = await asked.future  # type: ignore[misc] # annotated as an iterator
        except ValueError as error:
            response.success, response.message = False, str(error)
        return response

    def _ask(self, task: str, number: int) -> Request:
        """Ask the session for a task. Raises ValueError with a sentence."""
        self._node.check_age(task)
        session = self._node.session
        if not session or not session.is_open:
            raise ValueError(NOT_CONNECTED)
        request = Request(self._node, task)
        work = {
            BIND: partial(DriverSession.bind, session, request, number),
            UNBIND: partial(DriverSession.unbind, session, request, number),
            LIGHT: partial(DriverSession.switch_light, session, request, bool(number)),
        }[task]
        if not self._node.post(work, is_kept=True):
            raise ValueError(NOT_CONNECTED)
        return request

    async def _serve_discover(self, _: Discover.Request, response: Discover.Response) -> Discover.Response:
        """Run discovery, once for all concurrent callers."""
        discovery = self._discovery
        if discovery is None:
            discovery = self._discovery = Future()
            threading.Thread(target=self._discover, args=[discovery], name="discover", daemon=True).start()
        return await discovery or response

    def _discover(self, answer: "Future[Discover.Response]") -> None:
        response = Discover.Response()
        cancellation = Cancellation()
        try:
            route = self._read_route()
            found = find_robots(route, self._node.parameters["discovery_timeout"], cancellation)
            response.robots = [Robot(address=robot.address, name=printable(robot.name)) for robot in found]
            response.success, response.message = True, f"{len(found)} answered."
            if not found and route.is_on_loopback:
                response.message += f" Only this machine was asked: discovery_interface is {route.interface}."
        except (LinkError, ValueError) as error:
            response.message = str(error)
        finally:
            cancellation.close()
            self._discovery = None
            complete(self._node, answer, response)
