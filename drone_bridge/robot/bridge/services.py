# SPDX-License-Identifier: Apache-2.0
"""The services of robot_bridge and the topic light, as requests to the link's thread."""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from drone_bridge.msg import Robot
from drone_bridge.net.connector import Cancellation, LinkError
from drone_bridge.net.discovery import DiscoveryRoute, find_robots
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.link_requests import FutureCompleter, LinkRequests, ServiceResult
from drone_bridge.srv import Bind, Discover, Unbind
from drone_bridge.wire.layouts import printable

BIND, UNBIND, LIGHT = "bind", "unbind", "light"


class Task(NamedTuple):
    """A request to the link's thread."""

    kind: str  # one of the above
    number: int  # the id of a subsystem, or whether lights are on


class RobotServices:
    """Always available; they return an error until a robot is connected."""

    def __init__(self, node: LinkNode, wake: Callable[[], None], read_route: Callable[[], DiscoveryRoute]) -> None:
        """`wake` wakes the link's thread; `read_route` returns the route for discovery."""
        self._node = node
        self._wake = wake
        self._read_route = read_route
        self._discovery: Future[Discover.Response] | None = None
        # Reentrant, as callbacks wait.
        group = ReentrantCallbackGroup()
        self._completer = FutureCompleter(node, group)
        self.link_requests: LinkRequests[Task] = LinkRequests(self._completer, "robot")
        node.make_service(Discover, "discover", self._serve_discover, callback_group=group)
        node.make_service(Bind, "bind", self._serve_bind, callback_group=group)
        node.make_service(Unbind, "unbind", self._serve_unbind, callback_group=group)
        node.make_service(SetBool, "light", self._serve_light, callback_group=group)

    def switch_light(self, message: Bool) -> None:
        """Switch the light as the service does, without a response."""
        try:
            link_request = self.link_requests.submit(Task(LIGHT, int(message.data)))
        except ValueError as error:
            self._refuse_light(str(error))
            return
        link_request.result.add_done_callback(self._report_light)
        self._wake()

    def _report_light(self, done: "Future[ServiceResult]") -> None:
        answer = done.result()
        if answer and not answer.success:
            self._refuse_light(answer.message)

    def _refuse_light(self, reason: str) -> None:
        self._node.count_and_warn("refused commands", f"A message on light was refused: {reason}")

    async def _serve_bind(self, request: Bind.Request, response: Bind.Response) -> Bind.Response:
        return await self._run(BIND, request.id, response)

    async def _serve_unbind(self, request: Unbind.Request, response: Unbind.Response) -> Unbind.Response:
        return await self._run(UNBIND, request.id, response)

    async def _serve_light(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        return await self._run(LIGHT, int(request.data), response)

    async def _run(self, task: str, number: int, response: Any) -> Any:
        """Run a task on the link's thread, and fill the response."""
        try:
            link_request = self.link_requests.submit(Task(task, number))
        except ValueError as error:
            response.success, response.message = False, str(error)
            return response
        self._wake()
        response.success, response.message = await link_request.result  # type: ignore[misc]
        return response

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
            self._completer.complete(answer, response)
