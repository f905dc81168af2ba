# SPDX-License-Identifier: Apache-2.0
"""web_bridge: the node that connects the parts and polls the graph."""

import contextlib
import functools
import os
import time
from collections.abc import Callable
from typing import Any

import foxglove
from builtin_interfaces.msg import Time
from foxglove.websocket import Capability
from rclpy.node import Node
from std_msgs.msg import Bool

from drone_bridge.msg import HoldStatus
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import LinkError
from drone_bridge.net.listening import is_own_address
from drone_bridge.ros.hold.file_writer import FileWriter
from drone_bridge.ros.hold.wish_file import FILE_TIMEOUT_S, WishFile
from drone_bridge.ros.node.log_limiter import LogLimiter, OngoingLogLimiter
from drone_bridge.ros.node.parameters import DeclaredParameters, ParameterDeclaration
from drone_bridge.ros.qos import latched
from drone_bridge.ros.steady_timer import steady_timer
from drone_bridge.session.hold_state import HelmPilot
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.stop_signals import LAUNCHED
from drone_bridge.tools.web import page
from drone_bridge.tools.web.access import FOXGLOVE_ORIGINS, Access, is_loopback
from drone_bridge.tools.web.address import NewLinks, hidden_host, links, open_in_browser, qr_code
from drone_bridge.tools.web.bag_list import Recordings
from drone_bridge.tools.web.calls import Calls
from drone_bridge.tools.web.client_goals import ClientGoals
from drone_bridge.tools.web.clients import ViewerRequests
from drone_bridge.tools.web.fleet import Fleet
from drone_bridge.tools.web.gateway import Gateway
from drone_bridge.tools.web.goals import Goals, Place
from drone_bridge.tools.web.graph import Graph
from drone_bridge.tools.web.helm import Motion
from drone_bridge.tools.web.inbox import Inbox
from drone_bridge.tools.web.landings import Landings
from drone_bridge.tools.web.pilots import Pilots
from drone_bridge.tools.web.recorder_process import Recording
from drone_bridge.tools.web.relay import Relay
from drone_bridge.tools.web.rosbridge.server import RosbridgeServer

CAPABILITIES = [Capability.Services, Capability.ClientPublish, Capability.Parameters]
POLL_PERIOD_S = 0.5
#: Period of polling publishers and subscribers while the set of topics and services does not change; it is expensive.
REVIEW_PERIOD_S = 2.0
#: Maximum time from the start of a launch until the link is printed, as the last line: it waits for the vehicles.
MAX_LINK_DELAY_S = 3.0
#: Timeout for the end of the vehicles at the end of a launch. `ros2 launch` stops all at once.
MAX_FAREWELL_S = 1.0

PARAMETERS = (
    ParameterDeclaration(
        "host", "127.0.0.1", "Address to listen on. Viewers on other machines need the secret in the link."
    ),
    ParameterDeclaration("port", 8765, "Port to listen on. 0 picks a free port.", range=(0, 65535)),
    ParameterDeclaration("actual_port", 0, "Port in use.", range=(0, 65535), read_only=True),
    ParameterDeclaration("steer", False, "Let viewers on other machines steer, call services and set parameters."),
    ParameterDeclaration(
        "rosbridge", True, "Serve clients of rosbridge on this port, beyond this machine only if steer is true."
    ),
    ParameterDeclaration("secret", "", "Secret in the link for other machines. If empty, one is generated."),
    ParameterDeclaration(
        "origins", list(FOXGLOVE_ORIGINS), "Origins of other web pages that may connect, as sent by browsers."
    ),
    ParameterDeclaration("max_speed", 1.0, "Speed at full stick deflection, m/s.", range=(0.0, 20.0), live=True),
    ParameterDeclaration(
        "max_turn_rate", 1.0, "Turn rate at full stick deflection, rad/s.", range=(0.0, 10.0), live=True
    ),
    ParameterDeclaration("open_browser", False, "Open the page in a browser, if there is a screen."),
)


class WebBridge(Node):
    """Shows the graph in browsers, and lets people steer."""

    def __init__(self) -> None:
        super().__init__("web_bridge")
        self._declared = DeclaredParameters(self, PARAMETERS)
        get = self._declared.__getitem__
        self._access = Access.of(get("host"), steer=get("steer"), secret=get("secret"), origins=get("origins"))
        self._inbox = Inbox(self)
        self._fleet = Fleet(self, self._on_status, self._on_asked)
        self._is_open = False
        self._seen: tuple[dict[str, list[str]], dict[str, list[str]]] = {}, {}
        self._review_s = 0.0  # by time.monotonic()

    def start(self) -> bool:
        """Listen, and start polling the graph."""
        get = self._declared.__getitem__
        foxglove.set_log_level("ERROR")  # errors of viewers don't belong in our log
        context = foxglove.Context()
        self._requests = ViewerRequests(self, self._inbox)
        host = hidden_host()  # only the gateway connects to it
        self._foxglove = foxglove.start_server(
            name=self.get_fully_qualified_name(),  # the page finds the services of this node by it
            host=host,
            port=0,
            capabilities=CAPABILITIES,
            server_listener=self._requests,
            supported_encodings=["cdr"],
            context=context,
        )
        self._calls = Calls(self, self._inbox, self._foxglove)
        self._requests.attach(self._foxglove, self._calls)
        self._recording = Recording(self)
        self._viewed = self.create_publisher(Bool, "~/viewed", latched())
        self._was_viewed: bool | None = None
        self._relay = Relay(host, self._foxglove.port, self._subscribed, self._inbox.done)
        self._graph = Graph(self, context, self._relay.publish, self._relay.withdraw)
        self._wish_file = FileWriter(WishFile(self.context.get_domain_id()).keep, self._on_wish_file)
        self._recordings = Recordings(get("host"))
        self._pilots = self._make_pilots()
        board = self._pilots.announcements
        self._landings = Landings(self, lambda topic, place: self._tell(board.set_below, topic, place))
        self._faults = LogLimiter()
        report = lambda topic, state: self._tell(board.set_goal, topic, state, elapsed_s())  # noqa: E731
        self._goals = Goals(self, ClientGoals(self, self._inbox), report)
        self._shown = frozenset[str]()
        self._door = Gateway(self._access, get("port"), self._relay, self._pilots)
        if get("rosbridge") and (is_loopback(self._access.host) or self._access.steer):
            self._door.without_subprotocol = RosbridgeServer(self, self._inbox, self._calls)
        self._door.on_refusal, self._refusals = self._on_refusal, OngoingLogLimiter()
        self._door.offer("recordings.json", self._recordings.document)
        self._door.offer_files("recordings", self._recordings.file)
        self._door.offer_files("reports", self._recordings.report)
        try:
            port = self._door.open()
        except LinkError as error:
            self.get_logger().error(str(error))
            self._foxglove.stop()
            return False
        self._is_open = True
        self._declared.publish("actual_port", port)
        self._declared.freeze_because("when the node starts, and it is running: restart it with the new value")
        self._links = NewLinks(self._access, port)
        self._links_due_s = time.monotonic() + (MAX_LINK_DELAY_S if os.environ.get(LAUNCHED) else 0.0)
        self._log_address(port)
        steady_timer(self, POLL_PERIOD_S, self._poll_graph)
        self._poll_graph()
        return True

    def _make_pilots(self) -> Pilots:
        return Pilots(
            send_command=self._command,
            ask_elsewhere=self._fleet.ask,
            ask_to_hold=self._ask_to_hold,
            send_wish=self._fleet.wish,
            set_goal=self._set_goal,
            cancel_goal=lambda topic: self._inbox.put(lambda: self._goals.cancel(topic)),
            show=lambda topics: self._inbox.put(lambda: self._show(topics)),
            play=lambda name, answer: self._recordings.play(name, functools.partial(self._tell, answer)),
            now=self._now,
            on_fault=self._on_fault,
            writer=self._wish_file,
        )

    def leave(self) -> None:
        """Stop all vehicles that are steered from here, and close the server.

        At the end of a launch, its vehicles end first, so that pages show their last state.
        """
        if self._is_open and os.environ.get(LAUNCHED):
            deadline_s = time.monotonic() + MAX_FAREWELL_S
            while self._fleet.vehicles and self.context.ok() and time.monotonic() < deadline_s:
                time.sleep(POLL_PERIOD_S / 10)
        if self._is_open:
            self._is_open = False
            self._door.close()
            self._recording.close()
            self._recordings.close()
            self._foxglove.stop()
            self._wish_file.keep([])
            self._wish_file.wait(FILE_TIMEOUT_S)

    def _poll_graph(self) -> None:
        if not self._is_open:
            return
        self._recording.update()
        self._publish_viewed()
        self._show(self._shown)
        self._tell(self._pilots.announcements.set_max_speed, self._declared["max_speed"])
        seen, now_s = (
            (dict(self.get_topic_names_and_types()), dict(self.get_service_names_and_types())),
            time.monotonic(),
        )
        if now_s >= self._links_due_s or (seen == self._seen and self._fleet.vehicles):
            self._print_links()
        if seen == self._seen and now_s < self._review_s:
            return
        self._seen, self._review_s = seen, now_s + REVIEW_PERIOD_S
        topics, services = seen
        self._graph.update(topics)
        self._calls.update(services)
        self._update_fleet(topics, services)
        self._landings.update(topics, (each.topic for each in self._fleet.vehicles))

    def _update_fleet(self, topics: dict[str, list[str]], services: dict[str, list[str]]) -> None:
        if self._fleet.update(topics, services):
            self._tell(self._pilots.stops.set_vehicles, list(self._fleet.vehicles), elapsed_s())

    def _publish_viewed(self) -> None:
        is_viewed = self._relay.has_viewers
        if is_viewed != self._was_viewed:
            self._was_viewed = is_viewed
            self._viewed.publish(Bool(data=is_viewed))

    def _subscribed(self, viewer: int, channel: int, is_subscribed: bool) -> None:
        def follow() -> None:
            if not is_subscribed:
                self._graph.remove_viewer(viewer, channel)
            elif not self._graph.add_viewer(viewer, channel):
                self._relay.refuse(viewer, channel)

        self._inbox.put(follow)

    def _now(self) -> Time:
        stamp: Time = self.get_clock().now().to_msg()
        return stamp

    def _command(self, topic: str, motion: Motion, stamp: Time | None) -> None:
        speeds = self._declared["max_speed"], self._declared["max_turn_rate"]
        self._fleet.command(topic, motion, stamp or self._now(), *speeds, pilot=self._pilots.pilot(topic))

    def _ask_to_hold(self, topic: str, is_held: bool, answer: Callable[[str], None]) -> None:
        self._inbox.put(lambda: self._fleet.hold(topic, is_held, lambda problem: self._tell(answer, problem)))

    def _set_goal(self, topic: str, place: Place) -> None:
        def follow() -> None:
            name = next((each.goal for each in self._fleet.vehicles if each.topic == topic), "")
            self._goals.set(topic, name, place)

        self._inbox.put(follow)

    def _show(self, topics: frozenset[str]) -> None:
        self._shown = topics
        self._goals.show({each.goal for each in self._fleet.vehicles if each.topic in topics})

    def _tell(self, call: Callable[..., None], *what: Any) -> None:
        """Call a function in the event loop of the pages, unless that has ended."""
        if self._is_open:
            with contextlib.suppress(RuntimeError):  # it has just ended
                self._door.loop.call_soon_threadsafe(call, *what)

    def _on_status(self, name: str, status: HoldStatus) -> None:
        self._tell(self._pilots.stops.set_status, name, status, elapsed_s())

    def _on_asked(self, topic: str, by: HelmPilot) -> None:
        self._tell(self._pilots.asked, topic, by)

    def _on_wish_file(self, problem: str) -> None:
        if problem:
            self.get_logger().warning(problem)
        self._tell(self._pilots.announce)

    def _on_fault(self, trace: str) -> None:
        if line := self._faults.admit(trace):
            self.get_logger().error(line)

    def _on_refusal(self, sentence: str) -> None:
        if line := self._refusals.admit(sentence):
            self.get_logger().warning(line)

    def _log_address(self, port: int) -> None:
        if taken := self._door.taken:
            taken.argument = "view_port:=" if os.environ.get(LAUNCHED) else "its parameter port"
            self.get_logger().warning(f"{taken} This page is on port {port}.")
        if not page.is_built():
            self.get_logger().warning(
                f"The page is not built: only Foxglove can connect. To build it: {page.BUILD_COMMAND}"
            )
        if not is_loopback(self._access.host):
            allowed = "view and steer" if self._access.steer else "view (steer:=true allows more)"
            self.get_logger().warning(f"Anyone on the network with the link can {allowed}.")
        if self._declared["open_browser"]:
            open_in_browser(links(self._access, port)[0])

    def _print_links(self) -> None:
        """Print the links of the page that are new, or log that its address is gone."""
        if not is_own_address(self._access.host):
            self._on_refusal(Obstacle.OWN_ADDRESS.sentence(address=self._access.host))
        found = self._links.take()
        if found and not is_loopback(self._access.host):
            print(qr_code(found[0]), flush=True)
        for link in found:
            print(f"Open in a browser: {link}", flush=True)
