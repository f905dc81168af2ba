# SPDX-License-Identifier: Apache-2.0
"""VehicleNode: the base of bridges and servers: a lifecycle, hold, counts and diagnostics, and a link while active.

Three threads: the executor's, in which transitions and callbacks run; the link's, while active, which alone reads,
sends and publishes what was heard; and that of the reports, from configure to cleanup. `leave` may come from a fourth,
which waits for signals: a lock is held while the link is started, or is left with the neutral command. A node that
can't start stays unconfigured, and a timer starts it again where that may help.
"""

import contextlib
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.publisher import Publisher

from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import LinkError
from drone_bridge.net.link_loop import LinkLoop
from drone_bridge.ros.entity_owner import EntityOwner, log_failure
from drone_bridge.ros.hold import Hold
from drone_bridge.ros.link_report import LINK_STATUS, SILENCES, LinkReport
from drone_bridge.ros.namesakes import ADVICE, NAMESAKES, Namesakes
from drone_bridge.ros.parameters import UNCONFIGURED, ParameterDeclaration
from drone_bridge.ros.publishers import NO_EVENTS, PUBLISHER_ERRORS
from drone_bridge.ros.simulated_time import clock_conflict, is_time_simulated
from drone_bridge.ros.stall_watch import PROCESS, STALL_S
from drone_bridge.ros.ticker import Ticker
from drone_bridge.ros.time import time_from_nanoseconds
from drone_bridge.session.session import AFTER_STALLS, MAY_HAVE_WAITED
from drone_bridge.wire.addresses import address_name
from drone_bridge.wire.outgoing import UNENCODABLE, encoded

if TYPE_CHECKING:
    from drone_bridge.net.wire_log import WireLog


DIAGNOSTICS_PERIOD_S = 1.0
#: How often a node that could not start reports that, and one whose port was taken tries again.
START_PERIOD_S = 2.0
#: The count of commands that no vehicle can have followed.
UNDELIVERED = "undelivered_commands"

#: The condition of a peer that can't be reached.
UNREACHABLE = "unreachable_peer"
#: The condition that /clock has more than one publisher.
CLOCKS = "clock"

MessageT = TypeVar("MessageT")
EncodedT = TypeVar("EncodedT")


class VehicleNode(EntityOwner):
    """A lifecycle node with one link: publishers exist once configured, the link while active.

    The link's thread reads, translates and publishes; callbacks of the executor only leave work for it.
    """

    #: The counts that /diagnostics shows as rates, and those whose growth is a warning.
    rates: tuple[str, ...] = ()
    problems: tuple[str, ...] = (
        "rejected_input",
        "lost_connections",
        "internal_errors",
        "refused_peers",
        SILENCES,
        UNDELIVERED,
        UNENCODABLE,
    )
    #: The parameter that says after how many seconds of silence a connected peer is a warning.
    silence_parameter = "silence_warning"
    #: Whether its session reports itself when the peer is silent.
    says_silence = False
    #: Whether it is the vehicle's side of its protocol, and steers a vehicle in ROS.
    is_server = False
    #: What a link that works does, for logs and /diagnostics.
    open_state = "connected"

    def __init__(self, name: str, declarations: Iterable[ParameterDeclaration], **options: Any) -> None:
        """Make the node; the options are rclpy's, such as `namespace` and `parameter_overrides`."""
        super().__init__(name, declarations, **options)
        # Several vehicles report on the one topic.
        self._status_name = f"{self.get_fully_qualified_name().lstrip('/')}{LINK_STATUS}"
        #: Counts, log and diagnostics of the link, for any thread.
        self.report = LinkReport(self.get_logger(), self.open_state, self.rates, self.problems)
        self._diagnostics: Publisher[Any] = self.create_publisher(
            DiagnosticArray, "/diagnostics", 10, event_callbacks=NO_EVENTS
        )
        self._protocol_name = name.rpartition("_")[0]  # of testbed_bridge, for instance
        self._namesakes = Namesakes(self)
        # A server and a bridge may have the same namespace, and their vehicles are not the same one.
        self.hold = Hold(self, "~/held" if self.is_server else "held")
        #: How the vehicle moves, by its own account.
        self.observed = ObservedMotion(elapsed_s)
        #: Where the bytes of every connection are to be logged, while active and if the user wants it.
        self.wire_log: WireLog | None = None
        self._loop: LinkLoop | None = None
        self._leaving = threading.Lock()
        self._is_time_simulated = False
        self._is_publishing = False
        self._each_second: list[Callable[[], None]] = []
        self._start_failure: Exception | None = None  # of the last attempt to start by itself
        self._is_starting = False

    # What a bridge has to provide.

    @abstractmethod
    def set_up(self) -> None:
        """Read the parameters and create publishers and subscriptions. Raises ValueError with a sentence."""

    @abstractmethod
    def make_loop(self) -> LinkLoop:
        """Return the loop, which is started next. Raises LinkError or ValueError."""

    def link_ended(self) -> None:
        """Do what comes after the link's end."""

    # What a bridge can use.

    def each_second(self, call: Callable[[], None]) -> None:
        """Have a function called once per second until cleanup, in the thread of the reports; it must not block."""
        self._each_second.append(call)
        self.cleanup.callback(self._each_second.remove, call)

    def make_ticker(self, name: str, period_s: float, call: Callable[[], None]) -> None:
        """Call a function periodically in a thread of its own, for less than a timer costs; it must not block."""
        ticker = Ticker(f"{self.get_name()} {name}", period_s, call, self._failed)
        self.cleanup.callback(ticker.stop)

    def publish(self, publisher: "Publisher[Any]", message: Any, decided_s: float | None = None) -> None:
        """Publish from any thread; failures are counted.

        An operator's command has the time (`elapsed_s`) at which it was decided to follow it: it is left out if this
        process has stood still since.
        """
        if not self._is_publishing:  # a LifecyclePublisher checks that too, but in two more calls per message
            return
        if decided_s is not None and elapsed_s() - decided_s > STALL_S:
            self.report.counts[AFTER_STALLS] += 1
            return
        try:
            publisher.publish(message)
        except PUBLISHER_ERRORS:
            self.report.counts["dropped_messages"] += 1

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

    def takes_commands(self) -> bool:
        """Return whether an operator's command may be followed; not right after this process stood still."""
        if not PROCESS.is_settling:
            return True
        self.report.count_and_warn(AFTER_STALLS, MAY_HAVE_WAITED)
        return False

    def check_age(self, name: str) -> None:
        """Raise ValueError with a sentence for what may have been requested before this process stood still.

        Of requests only hold, neutral and, where its effect depends on no state, landing are carried out then.
        """
        if not self.takes_commands():
            raise ValueError(f"This process has just stood still, and {name} may have waited meanwhile: call it again.")

    def encode(
        self, send: Callable[[MessageT], EncodedT], message: MessageT, neutral: MessageT | None = None
    ) -> EncodedT | None:
        """Return what `send` makes of a message, or of the neutral one, see `encoded`: our own fault ends no link."""
        return encoded(send, message, neutral, partial(self.report.count_and_warn, UNENCODABLE))

    # The lifecycle.

    def start(self) -> bool:
        """Configure and activate, if autostart is true; return True.

        A node that can't stays up, unconfigured: it reports an error until its port is free, its parameters are set
        to what is allowed, or somebody configures it. Starting it again would not help.
        """
        if self.parameters["autostart"] and not self._has_started():
            advice = (
                f"This is tried again every {START_PERIOD_S:g} s."
                if isinstance(self._start_failure, LinkError)
                else "The node stays unconfigured until its parameters are set to what is allowed."
            )
            self.get_logger().error(f"{self._start_failure or 'The start failed.'} {advice}")
            self._start_timer = self.create_timer(
                START_PERIOD_S, self._start_again, clock=Clock(clock_type=ClockType.STEADY_TIME)
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

    def _settings(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the values of the parameters, and which values were refused."""
        return self.parameters.values(), dict(self.parameters.refused)

    def _start_again(self) -> None:
        """Report an unconfigured node, and try to start it where that may help."""
        is_unconfigured = not self.parameters.are_frozen
        waits_for_port = isinstance(self._start_failure, LinkError)
        if is_unconfigured and (waits_for_port or self._settings() != self._tried_settings):
            is_unconfigured = not self._has_started()
        if is_unconfigured:
            status = DiagnosticStatus(name=self._status_name, hardware_id=self.hardware_id())
            status.level = DiagnosticStatus.ERROR
            status.message = f"{UNCONFIGURED}: {self._start_failure or 'the start failed, see the log.'}"
            report = DiagnosticArray(status=[status])
            report.header.stamp = self.now()
            self._diagnostics.publish(report)
        else:
            self._start_timer.cancel()

    def transition_failed(self, error: Exception) -> None:
        """Tell the user why a transition that they requested failed."""
        if self._is_starting:
            self._start_failure = error  # which `start` logs, and not each attempt
        else:
            super().transition_failed(error)

    @log_failure
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the parameters, create publishers and subscriptions, start reporting."""
        self._is_time_simulated = is_time_simulated(self)
        self.observed = ObservedMotion(elapsed_s)
        self.report.start_over(self.parameters[self.silence_parameter])
        if self.parameters.refused:
            raise ValueError("; ".join(why.rstrip(".") for why in self.parameters.refused.values()) + ".")
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
        try:
            loop = self.make_loop()
        except (LinkError, ValueError):
            if self.wire_log:
                self.wire_log.close()  # or each attempt to take the port leaves one behind
                self.wire_log = None
            raise
        self.parameters.publish("actual_port", loop.port)
        result = super().on_activate(state)
        self._is_publishing = True  # before the thread publishes
        with self._leaving:  # a thread that has not started can't be waited for
            self._loop = loop
            loop.start()
        return result

    @log_failure
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Send the neutral command and close the link."""
        self.leave()
        return super().on_deactivate(state)

    @log_failure
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Destroy what configure created."""
        return self._undo(UNCONFIGURED)

    @log_failure
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Deactivate and clean up."""
        return self._undo("finalized")

    @log_failure
    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Return to unconfigured after a transition that raised."""
        return self._undo(UNCONFIGURED)

    def _undo(self, state: str) -> TransitionCallbackReturn:
        """Undo activate and configure, as far as they got; `state` is the next one."""
        self.leave()
        self.cleanup.close()
        self.parameters.freeze(state)
        return TransitionCallbackReturn.SUCCESS

    def leave(self) -> None:
        """Send the neutral command and close the link. Thread-safe, and may be called twice."""
        with self._leaving:
            if self._loop:
                if not self._loop.stop():
                    self.get_logger().error("The link's thread did not stop in time; it is abandoned.")
                self._loop = None
                self.link_ended()
            self._is_publishing = False
            if self.wire_log and not self.wire_log.close():
                self.get_logger().error("The wire log could not be flushed in time.")
            self.wire_log = None
        self.hold.finish()

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
            self._log_error,
        )
        self.get_logger().info(f"The bytes of every connection are logged to {path}.")
        return log

    def _log_error(self, sentence: str) -> None:
        self.get_logger().error(sentence)

    # Reports.

    def undelivered(self, topic: str) -> None:
        """Count a command that can't reach the vehicle, and log why, at growing intervals."""
        if self._leaving.locked():
            self.report.counts[UNDELIVERED] += 1  # who commands it may end a moment later
        elif reason := self.undeliverable():
            sentence = f"Commands on {topic} reach no vehicle: {reason}"
            self.report.count_and_warn_ongoing(UNDELIVERED, sentence, is_usual_at_start=True)
        else:
            self.report.end_ongoing(UNDELIVERED)

    def undeliverable(self) -> str | None:
        """Return why no command can reach the vehicle now, or None. For the executor."""
        if self._loop is None:
            return "the bridge is not active."
        if not self.report.is_open:
            return "no peer is connected."
        if self.report.is_silent:
            return f"{self.report.peer} has been silent for {self.report.silence_s:.0f} s."
        return None

    def hardware_id(self) -> str:
        """Return the hardware_id for diagnostics: the protocol and the configured address."""
        get = self.parameters.__getitem__
        return f"{self._protocol_name} {address_name(get('host'), get('port'))}"

    def _connecting_failed(self, sentence: str, delay_s: float) -> None:
        self.report.warn_ongoing(UNREACHABLE, f"{sentence} Trying again in {delay_s:.1f} s.", is_usual_at_start=True)

    def _failed(self, trace: str) -> None:
        if self.context.ok():  # else ROS is being shut down, and everything fails
            self.report.count_and_warn("internal_errors", trace)

    def _report(self) -> None:
        self._is_time_simulated = is_time_simulated(self)
        self.report.silence_limit_s = self.parameters[self.silence_parameter]
        conflict = clock_conflict(self) if self._is_time_simulated or self._publishes_clock else None
        self.report.update_condition(CLOCKS, conflict, "set publish_clock to false in all nodes but one")
        self.report.update_condition(NAMESAKES, self._namesakes.problem(), ADVICE)
        if not self.says_silence:
            self.report.notice_silence()
        self.hold.report()
        for call in tuple(self._each_second):
            call()
        if not self.is_wanted(self._diagnostics):
            self.report.start_period()  # or the first report would cover all the time without subscribers
            return
        status = self.report.status(self._status_name, self._hardware_id)
        report = DiagnosticArray(status=[status])
        report.header.stamp = self.now()
        with contextlib.suppress(*PUBLISHER_ERRORS):
            self._diagnostics.publish(report)  # while inactive, too
