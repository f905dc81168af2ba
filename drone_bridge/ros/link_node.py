# SPDX-License-Identifier: Apache-2.0
"""The last packets to a vehicle, repeated because datagrams may be lost."""

import contextlib
import copy
import functools
import math
import threading
import time
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import SetParametersResult
from rclpy.callback_groups import CallbackGroup
from rclpy.client import Client
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.guard_condition import GuardCondition
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.timer import Timer

from drone_bridge.motion.limits import ObservedMotion
from drone_bridge.net.connector import (
    Backoff,
    Cancellation,
    LinkCancelledError,
    LinkError,
    LinkTimeoutError,
    address_name,
)
from drone_bridge.net.udp import Freshness
from drone_bridge.ros.diagnostics import CLOCKS, SILENCES, LinkStatistics, Reports, Ticker
from drone_bridge.ros.hold import Hold
from drone_bridge.ros.parameters import UNCONFIGURED, DeclaredParameters, ParameterDeclaration, has_value
from drone_bridge.ros.stall_watch import PROCESS, STALL_S, elapsed_s
from drone_bridge.ros.time import clock_conflict, is_time_simulated, time_from_nanoseconds
from drone_bridge.ros.topics import NO_EVENTS, PUBLISHER_ERRORS, subscribe
from drone_bridge.wire.events import RemoteProtocolError
from drone_bridge.wire.outgoing import encoded

if TYPE_CHECKING:
    from drone_bridge.net.wire_log import WireLog


FAREWELLS = 3
#: Between two of them, so that they do not share one another's fate.
FAREWELL_GAP_S = 0.02


def repeat_farewell(send: Callable[[], None]) -> None:
    """Send the last packet FAREWELLS times. `send` may fail but must not raise."""
    for number in range(FAREWELLS):
        if number:
            time.sleep(FAREWELL_GAP_S)
        send()


# The thread that opens a link, uses it, and reopens it when it is lost.


STOP_TIMEOUT_S = 2.0
#: While the whole process is held up, only one of so many shares of that time goes by.
_STOP_SHARES = 20
#: The condition of a peer that can't be reached.
UNREACHABLE = "unreachable peer"


class Stream(Protocol):
    """An open link to one peer."""

    @property
    def peer(self) -> str:
        """The peer's name for logs and diagnostics."""

    def close(self) -> None:
        """Close at once."""


class Endpoint(Protocol):
    """A source of links to a peer, for instance TcpConnector and TcpListener."""

    @property
    def backoff(self) -> Backoff:
        """The delays between attempts."""

    @property
    def port(self) -> int:
        """The port in use."""

    def open(self) -> Stream:
        """Wait for a peer. Raises LinkCancelledError."""

    def close(self) -> None:
        """Release its resources."""


class LinkThread:
    """Keeps one link open until it is stopped."""

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        cancellation: Cancellation,
        reports: Reports,
        *,
        prepare: Callable[[], None],
        converse: Callable[[Any], None],
    ) -> None:
        """`prepare` is called when a link is open, before that is reported.

        `converse` then uses the link until the peer ends it or an exception is raised.
        """
        self.endpoint = endpoint
        self._cancellation = cancellation
        self._prepare = prepare
        self._converse = converse
        self._reports = reports
        # It is waited for, but must not keep a process alive should it ever hang.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, stop_waiting: Callable[[], None]) -> bool:
        """Cancel the link and wait for its thread; return whether that ended in time.

        `stop_waiting` ends whatever `converse` waits for beside the link.
        """
        self._cancellation.cancel()
        stop_waiting()
        for _ in range(_STOP_SHARES):
            if self._thread.is_alive():
                self._thread.join(STOP_TIMEOUT_S / _STOP_SHARES)
        if self._thread.is_alive():
            return False
        self.endpoint.close()
        self._cancellation.close()
        return True

    def _run(self) -> None:
        reports, backoff = self._reports, self.endpoint.backoff
        while not self._cancellation.is_set:
            reports.statistics.state = "waiting for a peer"
            try:
                stream = self.endpoint.open()
            except LinkCancelledError:
                break
            except Exception:
                reports.count_and_warn("internal errors", traceback.format_exc())
                self._cancellation.wait(backoff.next_delay_s())
                continue
            is_timeout = False
            try:
                is_timeout = self._talk(stream)
            finally:
                reports.note_end(is_timeout=is_timeout)
                stream.close()
        reports.statistics.state = "closed"

    def _talk(self, stream: Stream) -> bool:
        """Use a link until it ends; return whether that was because the peer said nothing."""
        reports = self._reports
        try:
            self._prepare()
            self._announce(stream)
            self._converse(stream)
        except LinkCancelledError:
            pass
        except RemoteProtocolError as error:
            reports.count_and_warn(
                "rejected input", f"{error} The connection is closed, as its bytes can't be trusted."
            )
        except LinkError as error:
            reports.count_and_warn("lost connections", str(error))
            return isinstance(error, LinkTimeoutError)
        except Exception:
            reports.count_and_warn("internal errors", traceback.format_exc())
        return False

    def _announce(self, stream: Stream) -> None:
        reports, statistics = self._reports, self._reports.statistics
        statistics.state, statistics.peer = statistics.open_state, stream.peer
        statistics.counts["connections"] += 1
        statistics.liveness.opened()
        reports.end_ongoing(UNREACHABLE)
        reports.inform(f"{statistics.open_state.capitalize()} to {stream.peer}.")


# A lifecycle node with declared parameters that destroys at cleanup what it created at configure.


Transition = Callable[[Any, LifecycleState], TransitionCallbackReturn]


def log_failure(transition: Transition) -> Transition:
    """Wrap a transition of an EntityOwner to log why it failed, which rclpy does not do."""

    @functools.wraps(transition)
    def guarded(node: "EntityOwner", state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except (LinkError, ValueError) as error:
            node.transition_failed(error)
            return TransitionCallbackReturn.FAILURE
        except Exception:
            if node.context.ok():  # else ROS is being shut down, and everything fails
                node.get_logger().error(traceback.format_exc())
            return TransitionCallbackReturn.ERROR

    return guarded


class EntityOwner(LifecycleNode):
    """Makes publishers, subscriptions, clients, services and timers, and destroys them at cleanup."""

    def __init__(self, name: str, declarations: Iterable[ParameterDeclaration], **options: Any) -> None:
        """Make the node; the options are rclpy's, such as `namespace` and `parameter_overrides`."""
        #: Undoes what configure has done, last things first.
        self.cleanup = contextlib.ExitStack()
        super().__init__(name, **options)
        self.parameters = DeclaredParameters(self, declarations, keep_refused=True)

    def transition_failed(self, error: Exception) -> None:
        """Tell the user why a transition failed."""
        self.get_logger().error(str(error))

    def make_publisher(self, message_type: type, topic: str, qos: QoSProfile | int) -> "Publisher[Any]":
        """Create a publisher whose QoS can be overridden by parameters."""
        options = QoSOverridingOptions.with_default_policies()
        publisher: Publisher[Any] = self.create_publisher(
            message_type,
            topic,
            copy.copy(qos),  # an override changes the profile that it is given, and others may have the same
            event_callbacks=NO_EVENTS,
            qos_overriding_options=options,
        )
        self.cleanup.callback(self.destroy_publisher, publisher)
        return publisher

    def make_subscription(
        self,
        message_type: type,
        topic: str,
        callback: Callable[[Any], Any],
        depth: QoSProfile | int,
        callback_group: CallbackGroup | None = None,
    ) -> None:
        """Create a subscription whose QoS can be overridden by parameters; publishers that offer less are heard too."""
        options = QoSOverridingOptions.with_default_policies()
        group, keep = callback_group, self.keep_subscription
        subscribe(self, message_type, topic, callback, depth, callback_group=group, overridable=options, keep=keep)

    def keep_subscription(self, subscription: Any) -> None:
        """Destroy a subscription with what else configure has created."""
        self.cleanup.callback(self.destroy_subscription, subscription)

    def end_subscriptions(self, topic: str) -> None:
        """Destroy the subscriptions to a topic, which may have been made with `make_subscription`. For the executor."""
        name = self.resolve_topic_name(topic)
        for subscription in tuple(self.subscriptions):
            if subscription.topic_name == name:
                self.destroy_subscription(subscription)

    def make_client(self, service_type: type, name: str) -> "Client[Any, Any]":
        client: Client[Any, Any] = self.create_client(service_type, name)
        self.cleanup.callback(self.destroy_client, client)
        return client

    def make_guard_condition(self, callback: Callable[[], None]) -> GuardCondition:
        """Create a guard condition, which any thread may trigger to have the executor call back."""
        guard = self.create_guard_condition(callback)
        self.cleanup.callback(self.destroy_guard_condition, guard)
        return guard

    def make_timer(self, period_s: float, callback: Callable[[], None]) -> Timer:
        """Create a timer that runs even while simulated time stands still."""
        timer = self.create_timer(period_s, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.cleanup.callback(self.destroy_timer, timer)
        return timer

    def make_service(
        self, service_type: type, name: str, callback: Callable[[Any, Any], Any], callback_group: CallbackGroup
    ) -> None:
        """Create a service below the node's name."""
        self.create_service(service_type, f"~/{name}", callback, callback_group=callback_group)

    def set_parameters_atomically(self, parameter_list: "list[Parameter[Any]]") -> SetParametersResult:
        """Set parameters, ignoring those that already have their value, even if they can't be changed now.

        So that what `ros2 param dump` wrote can be loaded again.
        """
        changed = [parameter for parameter in parameter_list if not has_value(self, parameter)]
        result = super().set_parameters_atomically(changed) if changed else SetParametersResult(successful=True)
        if result.successful:
            for parameter in parameter_list:
                self.parameters.refused.pop(parameter.name, None)
        return result

    def destroy_node(self) -> None:
        self.cleanup.close()
        super().destroy_node()


# The base of bridges and servers: a lifecycle, a link with its own thread, diagnostics.


DIAGNOSTICS_PERIOD_S = 1.0
#: What the name of a node's status on /diagnostics ends with, after the node's full name.
LINK_STATUS = ": link"
#: How often a node whose port is taken tries to start.
START_PERIOD_S = 2.0
#: The count of commands that no vehicle can have followed.
UNDELIVERED = "undelivered commands"
#: The count of messages of our own that the wire can't carry.
UNENCODABLE = "unencodable messages"
#: Those of datagrams that waited too long, and of operators' commands that may have.
STALE_DATAGRAMS = "stale datagrams"
AFTER_STALLS = "commands after a stall"

MessageT = TypeVar("MessageT")
EncodedT = TypeVar("EncodedT")


class LinkNode(EntityOwner):
    """A lifecycle node with one link: publishers exist once configured, the link while active.

    The link's thread connects, reads, translates and publishes; callbacks of the executor only leave work for
    it. A link that fails is reopened while the node is active.
    """

    #: The counts of LinkStatistics that /diagnostics shows as rates, and those whose growth is a warning.
    rates: tuple[str, ...] = ()
    problems: tuple[str, ...] = (
        "rejected input",
        "lost connections",
        "internal errors",
        "refused peers",
        SILENCES,
        UNDELIVERED,
        UNENCODABLE,
    )
    #: The parameter that says after how many seconds of silence a connected peer is a warning.
    silence_parameter = "silence_warning"
    #: Whether a healthy peer may be one that never says anything.
    peer_may_be_silent = False
    #: Whether it is the vehicle's side of its protocol, and steers a vehicle in ROS.
    is_server = False
    #: What a link that works does, for logs and /diagnostics.
    open_state = "connected"

    def __init__(self, name: str, declarations: Iterable[ParameterDeclaration], **options: Any) -> None:
        """Make the node; the options are rclpy's, such as `namespace` and `parameter_overrides`."""
        super().__init__(name, declarations, **options)
        # Several vehicles report on the one topic.
        self._status_name = f"{self.get_fully_qualified_name().lstrip('/')}{LINK_STATUS}"
        self.reports = Reports(self.get_logger(), self.open_state)
        self._protocol_name = name.rpartition("_")[0]  # of testbed_bridge, for instance
        # A server and a bridge may have the same namespace, and their vehicles are not the same one.
        self.hold = Hold(self, "~/held" if self.is_server else "held")
        #: What the vehicle tells of its motion.
        self.observed = ObservedMotion()
        #: Where the bytes of every connection are to be logged, while active and if the user wants it.
        self.wire_log: WireLog | None = None
        self._link: LinkThread | None = None
        self._leaving = threading.Lock()
        self._is_time_simulated = False
        self._is_publishing = False
        self._start_failure: Exception | None = None  # of the last attempt to start by itself
        self._is_starting = False
        self._next_start_s = 0.0  # by time.monotonic()

    # What a bridge has to provide.

    @abstractmethod
    def set_up(self) -> None:
        """Read the parameters and create publishers and subscriptions. Raises ValueError with a sentence."""

    def prepare(self) -> None:
        """Begin to accept commands for a new peer; called before the connection is reported, and before `converse`."""

    @abstractmethod
    def converse(self, stream: Any) -> None:
        """Talk to a peer until it ends the conversation or an exception is raised.

        When LinkCancelledError ends it, the vehicle has to be left with a neutral command.
        """

    @abstractmethod
    def make_endpoint(self, cancellation: Cancellation) -> Endpoint:
        """Return what opens links. Raises LinkError or ValueError."""

    def stop_waiting(self) -> None:
        """Interrupt what `converse` waits for besides the link; called when the link is cancelled."""

    # What a bridge can use.

    def make_ticker(self, name: str, period_s: float, call: Callable[[], None]) -> None:
        """Call a function periodically in a thread of its own, for less than a timer costs; it must not block."""
        ticker = Ticker(f"{self.get_name()} {name}", period_s, call, self._failed)
        self.cleanup.callback(ticker.stop)

    def publish(self, publisher: "Publisher[Any]", message: Any, decided_s: float = math.inf) -> None:
        """Publish from any thread; failures are counted.

        An operator's command has the time (`elapsed_s`) at which it was decided to follow it: it is left out if this
        process has stood still since.
        """
        if not self._is_publishing:  # a LifecyclePublisher checks that too, but in two more calls per message
            return
        if elapsed_s() - decided_s > STALL_S:
            self.statistics.counts[AFTER_STALLS] += 1
            return
        try:
            publisher.publish(message)
        except PUBLISHER_ERRORS:
            self.statistics.counts["dropped messages"] += 1

    def publish_all(self, messages: Iterable[tuple[Any, Any]]) -> None:
        """Publish messages with their publishers, as `publish` does."""
        for publisher, message in messages:
            self.publish(publisher, message)

    def is_wanted(self, publisher: "Publisher[Any]") -> bool:
        """Return whether the topic has subscribers."""
        try:
            return publisher.get_subscription_count() > 0
        except PUBLISHER_ERRORS:
            return False

    def now(self) -> Time:
        """Return the node's time, faster than rclpy does. A change of use_sim_time counts a second later at most."""
        return time_from_nanoseconds(self.get_clock().now().nanoseconds if self._is_time_simulated else time.time_ns())

    def fresh_within(self, timeout: str) -> Freshness:
        """Return that datagrams which are older than this parameter says are dropped and counted."""
        return Freshness(lambda: float(self.parameters[timeout]), self._drop_stale)

    def takes_commands(self) -> bool:
        """Return whether an operator's command may be followed; not right after this process stood still."""
        if not PROCESS.is_settling:
            return True
        sentence = "A command was refused, as this process has just stood still, and it may have waited meanwhile."
        self.count_and_warn(AFTER_STALLS, sentence)
        return False

    def check_age(self, name: str) -> None:
        """Raise ValueError with a sentence for what may have been asked for before this process stood still.

        Of what is asked for only hold, neutral and, where its effect depends on no state, landing are carried out then.
        """
        if not self.takes_commands():
            raise ValueError(f"This process has just stood still, and {name} may have waited meanwhile: call it again.")

    def encode(
        self, send: Callable[[MessageT], EncodedT], message: MessageT, neutral: MessageT | None = None
    ) -> EncodedT | None:
        """Return what `send` makes of a message, or of the neutral one, see `encoded`: our own fault ends no link."""
        return encoded(send, message, neutral, partial(self.count_and_warn, UNENCODABLE))

    def opened(self) -> None:
        """Note that the peer has proved useful, so that a lost connection is reopened without delay."""
        if link := self._link:
            link.endpoint.backoff.reset()

    # The lifecycle.

    def start(self) -> bool:
        """Configure and activate, if autostart is true; return True.

        A node that can't stays up, unconfigured: it reports an error until its port is free, its parameters are set
        to what is allowed, or somebody configures it. Whoever started it can't start it any better than before.
        """
        if self.parameters["autostart"] and not self._has_started():
            advice = (
                f"This is tried again every {START_PERIOD_S:g} s."
                if isinstance(self._start_failure, LinkError)
                else "The node stays unconfigured until its parameters are set to what is allowed."
            )
            self.get_logger().error(f"{self._start_failure or 'The start failed.'} {advice}")
            self._unconfigured_diagnostics = self._make_diagnostics()
            self._start_timer = self.create_timer(
                DIAGNOSTICS_PERIOD_S, self._start_again, clock=Clock(clock_type=ClockType.STEADY_TIME)
            )
        return True

    def _has_started(self) -> bool:
        """Try to configure and activate; return whether that worked. If not, `_start_failure` says why."""
        success = TransitionCallbackReturn.SUCCESS
        self._start_failure, self._is_starting = None, True
        self._tried_settings = self._settings()
        try:
            if self.trigger_configure() != success:
                return False
            if self.trigger_activate() == success:
                return True
            self.trigger_cleanup()  # so that the parameters can be changed
            return False
        finally:
            self._is_starting = False
            self._next_start_s = time.monotonic() + START_PERIOD_S

    def _settings(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the values of the parameters, and which values were refused."""
        return self.parameters.values(), dict(self.parameters.refused)

    def _start_again(self) -> None:
        """Report an unconfigured node, and try to start it where that may help."""
        is_unconfigured = not self.parameters.are_frozen
        waits_for_port = isinstance(self._start_failure, LinkError) and time.monotonic() >= self._next_start_s
        if is_unconfigured and (waits_for_port or self._settings() != self._tried_settings):
            is_unconfigured = not self._has_started()
        if is_unconfigured:
            status = DiagnosticStatus(name=self._status_name, hardware_id=self.hardware_id())
            status.level = DiagnosticStatus.ERROR
            status.message = f"{UNCONFIGURED}: {self._start_failure or 'the start failed, see the log.'}"
            report = DiagnosticArray(status=[status])
            report.header.stamp = self.now()
            self._unconfigured_diagnostics.publish(report)
        else:
            self._start_timer.cancel()
            self.destroy_publisher(self._unconfigured_diagnostics)

    def transition_failed(self, error: Exception) -> None:
        """Tell the user why a transition failed, if they asked for it themselves."""
        if self._is_starting:
            self._start_failure = error  # which `start` tells, and not each attempt
        else:
            super().transition_failed(error)

    @log_failure
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the parameters, create publishers and subscriptions, start reporting."""
        self._is_time_simulated = is_time_simulated(self)
        self.observed = ObservedMotion()
        self.reports.start_over(self.parameters[self.silence_parameter], self.peer_may_be_silent)
        if self.parameters.refused:
            raise ValueError("; ".join(why.rstrip(".") for why in self.parameters.refused.values()) + ".")
        self._diagnostics = self._make_diagnostics()
        self.cleanup.callback(self.destroy_publisher, self._diagnostics)
        try:
            self.set_up()
        except ValueError:
            self.cleanup.close()
            raise
        self._publishes_clock = "publish_clock" in self.parameters and self.parameters["publish_clock"]
        self._hardware_id = self.hardware_id()
        self.make_ticker("report", DIAGNOSTICS_PERIOD_S, self._report)
        self.parameters.freeze("configured")
        return super().on_configure(state)

    @log_failure
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Open the link, and keep it open."""
        self.wire_log = self._open_wire_log()
        cancellation = Cancellation()
        endpoint = self.make_endpoint(cancellation)
        self.parameters.publish("actual_port", endpoint.port)
        result = super().on_activate(state)
        self._is_publishing = True  # before the thread publishes
        name = f"{self.get_name()} link"
        link = LinkThread(name, endpoint, cancellation, self.reports, prepare=self.prepare, converse=self.converse)
        with self._leaving:  # a thread that has not started can't be waited for
            self._link = link
            link.start()
        return result

    @log_failure
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Send the neutral command and close the link."""
        self.leave()
        return super().on_deactivate(state)

    @log_failure
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Destroy what configure created."""
        self.cleanup.close()
        self.parameters.freeze(UNCONFIGURED)
        return TransitionCallbackReturn.SUCCESS

    @log_failure
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Deactivate and clean up."""
        self.leave()
        self.cleanup.close()
        self.parameters.freeze("finalized")
        return TransitionCallbackReturn.SUCCESS

    @log_failure
    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Return to unconfigured after a transition that raised."""
        self.leave()
        self.cleanup.close()
        self.parameters.freeze(UNCONFIGURED)
        return TransitionCallbackReturn.SUCCESS

    def leave(self) -> None:
        """Send the neutral command and close the link. Thread-safe, and may be called twice."""
        with self._leaving:
            if self._link and not self._link.stop(self.stop_waiting):
                self.get_logger().error(f"The link thread did not stop within {STOP_TIMEOUT_S:g} s; it is abandoned.")
            self._link, self._is_publishing = None, False
            if self.wire_log and not self.wire_log.close():
                self.get_logger().error("The wire log could not be flushed in time.")
            self.wire_log = None

    def _open_wire_log(self) -> "WireLog | None":
        """Return the log that the parameters ask for, if any. Raises LinkError."""
        if not (folder := self.parameters["wire_log"]):
            return None
        from drone_bridge.net.wire_log import WireLog, facts_of  # a bridge without a log starts without it

        path = Path(folder).expanduser().absolute()
        name = self.get_fully_qualified_name().strip("/").replace("/", ".")
        log = WireLog(
            path,
            name,
            facts_of(self._protocol_name, "vehicle" if self.is_server else "operator", name, self.parameters.values()),
            self._say_error,
        )
        self.get_logger().info(f"The bytes of every connection are logged to {path}.")
        return log

    def _say_error(self, sentence: str) -> None:
        self.get_logger().error(sentence)

    # Reports.

    def _make_diagnostics(self) -> "Publisher[Any]":
        made: Publisher[Any] = self.create_publisher(DiagnosticArray, "/diagnostics", 10, event_callbacks=NO_EVENTS)
        return made

    @property
    def statistics(self) -> LinkStatistics:
        """The statistics since the node was configured."""
        return self.reports.statistics

    def count_and_warn(self, count: str, sentence: str) -> None:
        """Count a problem and log a warning about it, rate-limited."""
        self.reports.count_and_warn(count, sentence)

    def inform(self, sentence: str) -> None:
        """Log an expected event, rate-limited."""
        self.reports.inform(sentence)

    def warn(self, sentence: str) -> None:
        """Log a warning about a peer or a command, rate-limited."""
        self.reports.warn(sentence)

    def undelivered(self, topic: str) -> None:
        """Count a command that can't reach the vehicle, and log why, at growing intervals."""
        if reason := self.undeliverable():
            self.reports.count_and_warn_ongoing(UNDELIVERED, f"Commands on {topic} reach no vehicle: {reason}")
        else:
            self.reports.end_ongoing(UNDELIVERED)

    def undeliverable(self) -> str | None:
        """Return why no command can reach the vehicle now, or None. For the executor."""
        statistics = self.statistics
        if self._link is None:
            return "the bridge is not active."
        if not statistics.liveness.is_open:
            return "no peer is connected."
        if statistics.is_silent:
            return f"{statistics.peer} has been silent for {statistics.liveness.silence_s:.0f} s."
        return None

    def hardware_id(self) -> str:
        """Return the hardware_id for diagnostics: the protocol and the configured address."""
        get = self.parameters.__getitem__
        return f"{self._protocol_name} {address_name(get('host'), get('port'))}"

    def _connecting_failed(self, sentence: str, delay_s: float) -> None:
        self.reports.warn_ongoing(UNREACHABLE, f"{sentence} Trying again in {delay_s:.1f} s.")

    def _peer_refused(self, peer: str) -> None:
        self.reports.count_and_warn_ongoing(  # somebody who tries again and again hides no other line
            "refused peers", f"{peer} was refused: {self.statistics.peer} is connected, and only one peer is served."
        )

    def _drop_stale(self, age_s: float) -> None:
        self.count_and_warn(STALE_DATAGRAMS, f"A datagram was dropped unread: it had waited for {age_s:.1f} s.")

    def _failed(self, trace: str) -> None:
        if self.context.ok():  # else ROS is being shut down, and everything fails
            self.count_and_warn("internal errors", trace)

    def _report(self) -> None:
        self._is_time_simulated = is_time_simulated(self)
        self.statistics.silence_limit_s = self.parameters[self.silence_parameter]
        conflict = clock_conflict(self) if self._is_time_simulated or self._publishes_clock else None
        self.reports.update_condition(CLOCKS, conflict, "set publish_clock to false in all nodes but one")
        self.reports.notice_silence()
        self.hold.report()
        if not self.is_wanted(self._diagnostics):
            self.statistics.start_period()  # or the first report would cover all the time without subscribers
            return
        report = self.reports.make_report(self._status_name, self._hardware_id, self.rates, self.problems)
        report.header.stamp = self.now()
        with contextlib.suppress(*PUBLISHER_ERRORS):
            self._diagnostics.publish(report)  # while inactive, too
