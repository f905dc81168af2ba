# SPDX-License-Identifier: Apache-2.0
"""A base for bridges of protocols that speak by datagrams: steering at a steady rate, requests, and a stream of state.

The link's thread sends what steers the vehicle `rate` times per second, whatever else goes on: a request that the
vehicle takes seconds to answer, such as a take-off, does not delay it. Requests follow one another, as their answers
carry no id (wire/requests.py). State may come to the port that commands go out from, or to one of its own.
"""

import contextlib
import math
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from geometry_msgs.msg import Twist
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future
from std_srvs.srv import Trigger

from drone_bridge.net.connector import Cancellation, LinkError, LinkRefusedError, LinkTimeoutError
from drone_bridge.net.udp import UdpConnector, UdpListener, UdpStream, wait_for_any
from drone_bridge.ros.commands import CommandIntake, limit_parameters
from drone_bridge.ros.link_node import STALE_DATAGRAMS, LinkNode, repeat_farewell
from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.ros.stall_watch import Resumptions
from drone_bridge.ros.topics import TopicPublishers
from drone_bridge.wire.events import NEED_DATA, LocalProtocolError, RemoteProtocolError
from drone_bridge.wire.requests import RequestsInTurn

UNHEARD = "undelivered datagrams"
UNANSWERED = "unanswered requests"
#: How long after its timeout an answer may still come.
LATE_ANSWER_S = 1.0
#: How long a vehicle may be silent until it is greeted again, and how long it may take to answer that.
GREETING_PERIOD_S = 1.0

#: The parameters of such a bridge, beside those that all have.
DATAGRAM_PARAMETERS = (
    ParameterDeclaration("rate", 20.0, "How often the vehicle is steered, Hz.", range=(2.0, 200.0), live=True),
    ParameterDeclaration(
        "answer_timeout", 20.0, "Seconds after which a request without an answer has failed.", range=(0.1, 120.0)
    ),
    *limit_parameters(is_drone=True),
)


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """A message to the vehicle, and who gets success and sentence."""

    message: Any
    finish: Callable[[bool, str], None]


class DatagramBridge(LinkNode):
    """Sends steering and requests, and publishes what the vehicle says by the rows of a topic table.

    A subclass gives `connection`, `neutral` and `flights`, and says in `make_topics`, `command_from_twist`, `take` what
    its messages mean. `take` calls `answer` for what answers a request, and `show` for what is on topics.
    """

    open_state = "sending"
    peer_may_be_silent = False
    rates = ("sent commands", "states")
    problems = (*LinkNode.problems, UNHEARD, UNANSWERED, "refused commands", STALE_DATAGRAMS, "dropped messages")

    #: Makes the operator's connection.
    connection: Callable[[], Any]
    #: What keeps the vehicle where it is.
    neutral: Any
    #: The messages by the names of the services that send them. Only `land` is followed while the vehicle is held.
    flights: Mapping[str, Any] = {}
    #: Asked first, and again while the vehicle is silent: most send no state before.
    greeting: Any = None
    #: The parameter with the port for the vehicle's state, if it has one of its own.
    state_port_parameter = ""
    #: The TWIST_AXES that the vehicle follows.
    follows = ("linear.x", "linear.y", "linear.z", "angular.z")

    # What a bridge has to provide.

    @abstractmethod
    def make_topics(self) -> TopicPublishers:
        """Return the topics, by the parameters as they are now."""

    @abstractmethod
    def command_from_twist(self, twist: Twist) -> tuple[Any, bool]:
        """Return a finite cmd_vel as a message, clamped, and whether it was within the vehicle's limits."""

    @abstractmethod
    def take(self, event: Any) -> None:
        """Handle what the vehicle says, on the link's thread."""

    # What a bridge can use.

    def show(self, event: Any) -> None:
        """Publish what an event says."""
        self.statistics.counts["states"] += 1
        self._topics.publish(event, self.now())

    def answer(self, is_success: bool, sentence: str) -> None:
        """Give an answer to the request that it belongs to."""
        assert self._requests
        with self._asking:
            request = self._requests.answered()
        if request:
            request.finish(is_success, sentence)

    # The lifecycle.

    def set_up(self) -> None:
        """Create topics, and the services of `flights`."""
        self._topics = self.make_topics()
        self._commands: CommandIntake[Any] = CommandIntake(self)
        self._commands.take_limited_velocities(self.command_from_twist, self.follows)
        self._requests: RequestsInTurn[_Request] | None = None  # while there is a link
        self._asking = threading.Lock()  # services ask in the executor
        if "land" in self.flights:
            self._commands.ruler.land = self._land
        group = ReentrantCallbackGroup()  # as an answer may take long, and cmd_vel has to arrive meanwhile
        for name in self.flights:
            service = self.create_service(Trigger, f"~/{name}", partial(self._serve, name), callback_group=group)
            self.cleanup.callback(self.destroy_service, service)

    def make_endpoint(self, cancellation: Cancellation) -> UdpConnector:
        """Send to one peer, and listen on the port for its state."""
        self._cancellation = cancellation
        self._topics.restart()
        host, port = self.parameters["host"], self.parameters["port"]
        freshness = self.fresh_within("silence_warning")
        self._state_port: UdpListener | None = None
        if self.state_port_parameter:
            # Wherever the vehicle is: what comes from another host is refused.
            local = "127.0.0.1" if host in ("127.0.0.1", "localhost") else "0.0.0.0"
            number = self.parameters[self.state_port_parameter]
            self._state_port = UdpListener(local, number, cancellation, self.wire_log, freshness=freshness)
        return UdpConnector(host, port, cancellation, self._connecting_failed, self.wire_log, freshness=freshness)

    def leave(self) -> None:
        """Send the neutral command, and close both ports."""
        super().leave()
        if port := getattr(self, "_state_port", None):
            port.close()

    # The conversation, on the link's thread.

    def prepare(self) -> None:
        """Forget commands that are older than the link."""
        self._commands.mailbox.clear()

    def converse(self, stream: UdpStream) -> None:
        """Steer, ask and listen until cancelled; leave the vehicle with the neutral command in any case."""
        self._protocol = self.connection()
        requests: RequestsInTurn[_Request] = RequestsInTurn(LATE_ANSWER_S)
        self._requests = requests
        self._heard_s = -math.inf
        due_s = time.monotonic()
        resumptions = Resumptions()
        try:
            while True:
                if resumptions.look():
                    self._forget_old(requests)
                self._ask(stream, requests)
                self._send(stream, self._commanded(), self.neutral)
                # After a delay, continue from now without catching up.
                due_s = max(due_s + 1 / self.parameters["rate"], time.monotonic())
                self._receive_until(stream, due_s)
        except Exception:
            repeat_farewell(partial(self._send, stream, self.neutral))
            raise
        finally:
            with self._asking:  # what comes from now on is refused, and never sent later
                self._requests = None
            for request in requests.end():
                request.finish(False, "The link has ended before the answer.")

    def _commanded(self) -> Any:
        command = self._commands.follow()
        return self.neutral if command is None else command

    def _forget_old(self, requests: RequestsInTurn[_Request]) -> None:
        """Refuse what was to be asked before this process stood still, but for landing."""
        with self._asking:
            forgotten = requests.forget(lambda each: each.message is not self.flights.get("land"))
        for request in forgotten:
            request.finish(False, "This process has just stood still, and the request is old: call it again.")

    def _ask(self, stream: UdpStream, requests: RequestsInTurn[_Request]) -> None:
        """Send the request whose turn it is, and give up the one whose answer has not come."""
        now_s = time.monotonic()
        with self._asking:
            if self.greeting and requests.is_idle and now_s - self._heard_s > GREETING_PERIOD_S:
                requests.ask(_Request(self.greeting, lambda is_success, sentence: None), GREETING_PERIOD_S)
            overdue, due = requests.overdue(now_s), requests.due(now_s)
        if overdue:
            overdue.finish(False, "There was no answer.")
            if overdue.message is not self.greeting:
                self.count_and_warn(UNANSWERED, f"{stream.peer} has not answered {overdue.message}.")
        if due:
            self._send(stream, due.message)

    def _send(self, stream: UdpStream, message: Any, instead: Any = None) -> None:
        """Send a message, or `instead` if it can't be encoded."""
        if (datagram := self.encode(self._protocol.send, message, instead)) is None:
            return
        try:
            stream.send(datagram)
        except LinkRefusedError as error:
            if not self._cancellation.is_set:  # the vehicle may have ended before us
                self.reports.count_and_warn_ongoing(UNHEARD, f"{error} Commands are still sent.")
        except LinkError as error:
            self.count_and_warn(UNHEARD, str(error))
        else:
            self.statistics.counts["sent commands"] += 1

    def _receive_until(self, stream: UdpStream, due_s: float) -> None:
        sources: list[UdpStream | UdpListener] = [stream]
        if self._state_port:
            sources.append(self._state_port)
        while True:
            left_s = due_s - time.monotonic()
            for source in wait_for_any(sources, self._cancellation, max(0.0, left_s)):
                with contextlib.suppress(LinkTimeoutError, LinkRefusedError):
                    self._receive(stream, source)
            if left_s <= 0.0:
                return

    def _receive(self, stream: UdpStream, source: UdpStream | UdpListener) -> None:
        received = source.receive(0.0)
        if isinstance(received, bytes):
            data = received
        elif received.source[0] == stream.peer_host:
            data = received.data
        else:
            self.count_and_warn("refused peers", f"State from {received.source[0]} was refused: it is another host.")
            return
        self._protocol.receive_data(data)
        try:
            while (event := self._protocol.next_event()) is not NEED_DATA:
                self._heard_s = time.monotonic()
                self.statistics.liveness.heard()
                self.opened()
                self.reports.end_ongoing(UNHEARD)
                self.take(event)
        except RemoteProtocolError as error:
            self.count_and_warn("rejected input", f"A datagram from {stream.peer} was refused: {error}")

    # What the executor does.

    async def _land(self) -> str:
        response = await self._serve("land", Trigger.Request(), Trigger.Response())
        if not response.success:
            raise ValueError(response.message)
        return str(response.message)

    async def _serve(self, name: str, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        try:
            if name != "land":
                self.hold.check(name)
                self.check_age(name)
            if reason := self.undeliverable():
                raise ValueError(f"{name} can't be asked: {reason}")
            executor = self.executor
            future: Future[tuple[bool, str]] = Future(executor=executor)

            def finish(is_success: bool, sentence: str) -> None:
                future.set_result((is_success, sentence))
                if executor:
                    executor.wake()

            with self._asking:
                if self._requests is None:
                    raise ValueError(f"{name} can't be asked: there is no link.")
                self._requests.ask(_Request(self.flights[name], finish), self.parameters["answer_timeout"])
            response.success, response.message = await future  # type: ignore[misc] # annotated as an iterator
        except (ValueError, LocalProtocolError) as error:
            response.success, response.message = False, str(error)
        if not response.success:
            self.count_and_warn("refused commands", f"{name}: {response.message}")
        return response
