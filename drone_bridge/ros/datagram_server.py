# SPDX-License-Identifier: Apache-2.0
"""A base for servers of protocols that speak by datagrams: an operator's commands, and state for it.

The mirror of ros/datagram_bridge.py. The link's thread takes commands, and repeats them on cmd_vel until the operator
is silent; what the operator asks for is a service call to the ROS drone, and its outcome is the answer.
"""

import contextlib
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from geometry_msgs.msg import Twist
from rclpy.exceptions import InvalidHandle
from std_srvs.srv import Trigger

from drone_bridge.net.connector import Cancellation, LinkError, LinkTimeoutError
from drone_bridge.net.udp import Datagram, Operators, OperatorsPort, UdpListener
from drone_bridge.ros.common_parameters import ALLOWED_PEERS, NEUTRAL_TIME, SOURCE_TIMEOUT, read_allowed_peers
from drone_bridge.ros.last_word import VelocityOutput
from drone_bridge.ros.link_node import STALE_DATAGRAMS, LinkNode
from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.ros.stall_watch import PROCESS, elapsed_s
from drone_bridge.ros.topics import MissingTopicError, TopicSubscriptions
from drone_bridge.session.operator_command import OPERATORS_LOST
from drone_bridge.session.session import AFTER_STALLS
from drone_bridge.wire.addresses import address_name, peer_name
from drone_bridge.wire.events import LocalProtocolError, RemoteProtocolError
from drone_bridge.wire.outgoing import UNENCODABLE

UNSENT = "unsent datagrams"
SOURCES = "sources"
CHECK_PERIOD_S = 0.5

#: The parameters of such a server, beside those that all have.
DATAGRAM_SERVER_PARAMETERS = (
    SOURCE_TIMEOUT,
    NEUTRAL_TIME,
    ALLOWED_PEERS,
    ParameterDeclaration("rate", 20.0, "How often cmd_vel is repeated, Hz.", range=(1.0, 200.0), live=True),
    ParameterDeclaration("state_rate", 10.0, "How often state is sent, Hz.", range=(0.1, 200.0), live=True),
    ParameterDeclaration(
        "answer_timeout", 15.0, "Seconds within which the drone has to carry out a request.", range=(0.1, 120.0)
    ),
)


class RosDrone:
    """A drone in ROS that is steered by cmd_vel and asked by services, each a std_srvs/Trigger."""

    def __init__(self, node: LinkNode, services: Mapping[str, str]) -> None:
        """`services` are the names of the services by what is asked for."""
        self.velocities = VelocityOutput(node)
        self._node = node
        self._clients = {name: node.make_client(Trigger, service) for name, service in services.items()}
        # With the time, by `elapsed_s`.
        self._requested: deque[tuple[str, Callable[[bool, str], None], float]] = deque(maxlen=8)
        self._pending: dict[Any, tuple[str, float, Callable[[bool, str], None]]] = {}
        self._guard = node.make_guard_condition(self._make_calls)
        node.make_timer(CHECK_PERIOD_S, self._give_up_overdue)

    def steer(self, twist: Twist) -> None:
        """Publish a command. For the link's thread."""
        self.velocities.command(twist)

    def ask(self, name: str, finish: Callable[[bool, str], None]) -> None:
        """Call a service; `finish` gets success and sentence, in the executor. For any thread."""
        self._requested.append((name, finish, elapsed_s()))
        with contextlib.suppress(InvalidHandle):  # the node is gone, and nobody waits any more
            self._guard.trigger()

    def _make_calls(self) -> None:
        while self._requested:
            name, finish, asked_s = self._requested.popleft()
            if name != "land" and self._node.hold.is_held:
                finish(False, "the vehicle is held")
            elif name != "land" and PROCESS.stood_still_since(asked_s):
                finish(False, "the server has just stood still")
            elif not self._clients[name].service_is_ready():
                service = self._node.resolve_service_name(self._clients[name].srv_name)
                finish(False, f"no node offers {service}")
            else:
                future = self._clients[name].call_async(Trigger.Request())
                self._pending[future] = name, time.monotonic(), finish
                future.add_done_callback(self._answered)

    def _answered(self, future: Any) -> None:
        if pending := self._pending.pop(future, None):
            response = future.result()
            pending[2](response.success, response.message)

    def _give_up_overdue(self) -> None:
        for future, (name, asked_s, finish) in tuple(self._pending.items()):
            if time.monotonic() - asked_s > self._node.parameters["answer_timeout"]:
                del self._pending[future]
                self._clients[name].remove_pending_request(future)
                finish(False, "the drone has not answered")


class DatagramServer(LinkNode):
    """Takes operators' datagrams, and sends them state that is assembled from topics.

    A subclass makes `drone` and `sources` in `make_sources`, and says in `receive` and `state` what its messages mean.
    """

    is_server = True
    open_state = "serving"
    rates = ("datagrams", "commands", "states")
    problems = (*LinkNode.problems, STALE_DATAGRAMS, AFTER_STALLS, UNSENT, OPERATORS_LOST, "dropped messages")

    drone: RosDrone
    sources: TopicSubscriptions

    # What a server has to provide.

    @abstractmethod
    def make_sources(self) -> None:
        """Make `drone` and `sources`, by the parameters as they are now."""

    @abstractmethod
    def receive(self, datagram: Datagram) -> None:
        """Handle a datagram, on the link's thread.

        Raises RemoteProtocolError for one that is refused, LocalProtocolError for an answer that can't be encoded.
        """

    @abstractmethod
    def state(self) -> tuple[bytes, Any] | None:
        """Return a datagram with the state of the drone, and its address; None if nobody wants one.

        Raises MissingTopicError and LocalProtocolError.
        """

    # What a server can use.

    def send(self, data: bytes, address: Any) -> bool:
        """Send a datagram from the port that operators send to; return whether that worked. Thread-safe."""
        try:
            self._port.listener.send(data, address)
        except LinkError as error:
            self.count_and_warn(UNSENT, str(error))
            return False
        return True

    # The lifecycle.

    def set_up(self) -> None:
        """Create publishers, subscriptions and clients."""
        self._allowed_peers = read_allowed_peers(self.parameters)
        self.make_sources()

    def make_endpoint(self, cancellation: Cancellation) -> OperatorsPort:
        """Listen for datagrams of anybody who is allowed."""
        freshness = self.fresh_within("command_timeout")
        host, port = self.parameters["host"], self.parameters["port"]
        listener = UdpListener(host, port, cancellation, self.wire_log, freshness=freshness)
        self._port = OperatorsPort(listener, cancellation, partial(self.count_and_warn, "lost connections"))
        self.get_logger().info(f"Waiting for operators on {address_name(host, listener.port)}.")
        return self._port

    # The conversation, on the link's thread.

    def converse(self, stream: Operators) -> None:
        """Follow operators until cancelled; publish zero at the end."""
        repeat_s = state_s = time.monotonic()
        try:
            self._take(stream.first)
            while True:
                wait_s = max(0.0, min(repeat_s, state_s) - time.monotonic())
                with contextlib.suppress(LinkTimeoutError):
                    self._take(self._port.listener.receive(wait_s))
                now_s = time.monotonic()
                if now_s >= repeat_s:
                    self.drone.velocities.repeat(self.statistics.peer)
                    repeat_s = max(repeat_s + 1 / self.parameters["rate"], now_s)
                if now_s >= state_s:
                    self._send_state()
                    state_s = max(state_s + 1 / self.parameters["state_rate"], now_s)
        finally:
            self.drone.velocities.finish()

    def _take(self, datagram: Datagram) -> None:
        sender = peer_name(datagram.source)
        if not self._allowed_peers.allows(datagram.source[0]):
            self.count_and_warn("refused peers", f"{sender} was refused: it is not in allowed_peers.")
            return
        if not self.takes_commands():
            return
        try:
            self.receive(datagram)
        except RemoteProtocolError as error:
            self.count_and_warn("rejected input", f"A datagram from {sender} was refused: {error}")
            return
        except LocalProtocolError as error:
            self.count_and_warn(UNENCODABLE, f"A datagram from {sender} is not answered: {error}")
        self.statistics.counts["datagrams"] += 1
        self.statistics.liveness.heard()
        self.statistics.peer = sender

    def _send_state(self) -> None:
        missing = None
        try:
            if state := self.state():
                self.statistics.counts["states"] += self.send(*state)
        except MissingTopicError as error:
            missing = f"no topic gives {error}, so no state is sent"
        except LocalProtocolError as error:
            self.count_and_warn(UNENCODABLE, str(error))
        self.reports.update_condition(SOURCES, missing, "outdated values are not sent")
