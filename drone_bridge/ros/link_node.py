# SPDX-License-Identifier: Apache-2.0
"""The base of bridges and servers: a lifecycle, a link with its own thread, diagnostics."""

import contextlib
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.publisher import Publisher

from drone_bridge.net.cancellation import Cancellation
from drone_bridge.net.connector import address_name
from drone_bridge.net.errors import LinkError
from drone_bridge.net.tcp import TcpConnector
from drone_bridge.net.tcp_listener import TcpListener
from drone_bridge.net.udp import Freshness
from drone_bridge.ros.clock_publishers import clock_conflict, is_time_simulated
from drone_bridge.ros.delivery import PUBLISHER_ERRORS
from drone_bridge.ros.entity_owner import EntityOwner, log_failure
from drone_bridge.ros.hold import Hold
from drone_bridge.ros.link_thread import STOP_TIMEOUT_S, UNREACHABLE, Endpoint, LinkThread
from drone_bridge.ros.parameters import UNCONFIGURED, ParameterDeclaration
from drone_bridge.ros.publisher_events import NO_EVENTS
from drone_bridge.ros.reports import CLOCKS, SILENCES, Reports
from drone_bridge.ros.stall_watch import PROCESS
from drone_bridge.ros.statistics import LinkStatistics
from drone_bridge.ros.ticker import Ticker
from drone_bridge.ros.time import time_from_nanoseconds
from drone_bridge.ros.wire_log import open_wire_log

if TYPE_CHECKING:
    from drone_bridge.net.wire_log import WireLog

DIAGNOSTICS_PERIOD_S: Final = 1.0
#: How often a node whose port is taken tries to start.
START_PERIOD_S: Final = 2.0
#: The count of commands that no vehicle can have followed.
UNDELIVERED: Final = "undelivered commands"
#: Those of datagrams that waited too long, and of operators' commands that may have.
STALE_DATAGRAMS = "stale datagrams"
AFTER_STALLS = "commands after a stall"


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
    )
    #: The parameter that says after how many seconds of silence a connected peer is a warning.
    silence_parameter = "silence_warning"
    #: Whether a healthy peer may be one that never says anything.
    peer_may_be_silent = False
    #: What a link that works does, for logs and /diagnostics.
    open_state = "connected"

    def __init__(self, name: str, declarations: Iterable[ParameterDeclaration], **options: Any) -> None:
        """Make the node; the options are rclpy's, such as `namespace` and `parameter_overrides`."""
        super().__init__(name, declarations, **options)
        # Several vehicles report on the one topic.
        self._status_name = f"{self.get_fully_qualified_name().lstrip('/')}: link"
        self.reports = Reports(self.get_logger(), self.open_state)
        # A server and a bridge may have the same namespace, and their vehicles are not the same one.
        self.hold = Hold(self, "~/held" if type(self).__name__.endswith("Server") else "held")
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

    def make_endpoint(self, cancellation: Cancellation) -> Endpoint:
        """Return what opens links: TCP unless overridden. Raises LinkError or ValueError."""
        host, port = self.parameters["host"], self.parameters["port"]
        if self.parameters["role"] == "listen":
            listener = TcpListener(
                host,
                port,
                cancellation,
                self._peer_refused,
                allowed_silence_s=lambda: float(self.parameters[self.silence_parameter]),
                wire_log=self.wire_log,
            )
            self.get_logger().info(f"Waiting for a peer on {address_name(host, listener.port)}.")
            return listener
        if port == 0:
            raise ValueError("port is 0, and has to be from 1 to 65535 when the role is connect.")
        return TcpConnector(host, port, cancellation, self._connecting_failed, wire_log=self.wire_log)

    def stop_waiting(self) -> None:
        """Interrupt what `converse` waits for besides the link; called when the link is cancelled."""

    # What a bridge can use.

    def make_ticker(self, name: str, period_s: float, call: Callable[[], None]) -> None:
        """Call a function periodically in a thread of its own, for less than a timer costs; it must not block."""
        ticker = Ticker(f"{self.get_name()} {name}", period_s, call, self._failed)
        self.cleanup.callback(ticker.stop)

    def publish(self, publisher: "Publisher[Any]", message: Any) -> None:
        """Publish from any thread; failures are counted."""
        self.publish_all([(publisher, message)])

    def publish_all(self, messages: "Iterable[tuple[Publisher[Any], Any]]") -> None:
        """Publish messages with their publishers, as `publish` does."""
        if not self._is_publishing:  # a LifecyclePublisher checks that too, but in two more calls per message
            return
        for publisher, message in messages:
            try:
                publisher.publish(message)
            except PUBLISHER_ERRORS:
                self.statistics.counts["dropped messages"] += 1

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
        is_unconfigured = self._state_machine.current_state[1] == UNCONFIGURED
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
        self.wire_log = open_wire_log(
            type(self).__name__, self.get_fully_qualified_name(), self.parameters, self.get_logger()
        )
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

    # Reports.

    def _make_diagnostics(self) -> "Publisher[Any]":
        return self.create_publisher(DiagnosticArray, "/diagnostics", 10, event_callbacks=NO_EVENTS)

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
        """Return the hardware_id for diagnostics: the user's, or the protocol and the configured address."""
        get = self.parameters.__getitem__
        protocol = type(self).__name__.removesuffix("Bridge").removesuffix("Server").lower()
        return get("hardware_id") or f"{protocol} {address_name(get('host'), get('port'))}"

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
