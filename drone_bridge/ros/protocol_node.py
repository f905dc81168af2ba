# SPDX-License-Identifier: Apache-2.0
"""ProtocolNode: the base of bridges and servers, lifecycle nodes that run one session on one link while active.

A node gives its topics and parameters (`set_up`), its link, its session, and how a wire message is published.

| state | what there is |
|---|---|
| unconfigured | parameters, which can change; `hold`, with its service and topics; `report` |
| inactive | also publishers, subscriptions, services and timers, which `cleanup` destroys; a status each second |
| active | also the link: `LinkLoop` runs the session on it, and topics are published |

Reconnecting happens within active. A node that can't start stays unconfigured (`Autostart`).

Three threads: the executor's, in which transitions and callbacks run, and which hands work to the session by `post`;
the loop's, while active, which alone touches link and session, and calls `publish_event`; and that of the reports, from
configure to cleanup. `leave` may come from a fourth, which waits for signals: a lock is held while the link is started,
or is left with the neutral command.
"""

import contextlib
import copy
import functools
import math
import os
import threading
import time
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from builtin_interfaces.msg import Time
from rcl_interfaces.msg import SetParametersResult
from rclpy.callback_groups import CallbackGroup
from rclpy.client import Client
from rclpy.clock import Clock as RosClock
from rclpy.clock import ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.guard_condition import GuardCondition
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.timer import Timer

from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import LinkError, UnknownHostError
from drone_bridge.net.link_loop import DROPPED_BY_STALL, DROPPED_WORK, Intake, Link, LinkLoop
from drone_bridge.ros.autostart import Autostart
from drone_bridge.ros.hold import Hold
from drone_bridge.ros.link_report import SILENCES, LinkReport
from drone_bridge.ros.namesakes import ADVICE, NAMESAKES, Namesakes
from drone_bridge.ros.parameters import UNCONFIGURED, DeclaredParameters, ParameterDeclaration, has_value
from drone_bridge.ros.publishers import NO_EVENTS, PUBLISHER_ERRORS
from drone_bridge.ros.service_responses import resend_if_lost
from drone_bridge.ros.simulated_time import clock_conflict, is_time_simulated
from drone_bridge.ros.stall_watch import PROCESS, STALL_S
from drone_bridge.ros.status_publisher import StatusPublisher
from drone_bridge.ros.subscriptions import subscribe
from drone_bridge.ros.ticker import Ticker
from drone_bridge.ros.time import time_from_nanoseconds
from drone_bridge.session.session import (
    AFTER_STALLS,
    MAY_HAVE_WAITED,
    REFUSED_DATAGRAMS,
    Actions,
    Note,
    Outcome,
    Session,
)
from drone_bridge.wire.addresses import address_name
from drone_bridge.wire.outgoing import UNENCODABLE, encoded

if TYPE_CHECKING:
    from drone_bridge.net.wire_log import WireLog

REPORT_PERIOD_S = 1.0
#: The count of commands that no vehicle can have followed.
UNDELIVERED = "undelivered_commands"
# Conditions: a peer that can't be reached, and several publishers of /clock.
UNREACHABLE, CLOCKS = "unreachable_peer", "clock"

MessageT = TypeVar("MessageT")
EncodedT = TypeVar("EncodedT")
Transition = Callable[[Any, LifecycleState], TransitionCallbackReturn]


def link_advice(protocol: str, peer: str) -> str:
    """Return what to check of a bridge without a link: the arguments of its launch file, or its own parameters."""
    is_launched = os.environ.get("DRONE_BRIDGE_LAUNCHED")
    host, emulator = f"{protocol}_host:=ADDRESS", "emulate:=true"
    if not is_launched:
        host, emulator = "its parameter host", f"drone-bridge emulate {protocol}"
    return f"No link with {peer} yet. Is it switched on? {host} names another address; to try without one: {emulator}"


def log_failure(transition: Transition) -> Transition:
    """Wrap a transition to log why it failed, which rclpy does not do."""

    @functools.wraps(transition)
    def guarded(node: "ProtocolNode", state: LifecycleState) -> TransitionCallbackReturn:
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


class ProtocolNode(LifecycleNode):
    """A bridge or server."""

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
        DROPPED_WORK,
        DROPPED_BY_STALL,
        REFUSED_DATAGRAMS,
        "dropped_messages",
    )
    #: The parameter that says after how many seconds of silence a connected peer is a warning.
    silence_parameter = "silence_warning"
    #: Whether its session reports itself when the peer is silent.
    says_silence = False
    #: Whether it is the vehicle's side of its protocol, and steers a vehicle in ROS.
    is_server = False
    #: The state of a link that works, in logs and /diagnostics.
    open_state = "connected"
    #: Commands that the loop's thread takes.
    intake: Intake | None = None

    def __init__(self, name: str, declarations: Iterable[ParameterDeclaration], **options: Any) -> None:
        """Make the node; the options are rclpy's, such as `namespace` and `parameter_overrides`."""
        #: Undoes what configure has done, last things first.
        self.cleanup = contextlib.ExitStack()
        super().__init__(name, **options)
        self.parameters = DeclaredParameters(self, declarations, keep_refused=True)
        self._protocol_name = name.rpartition("_")[0]  # of testbed_bridge, for instance
        #: Counts, log and diagnostics of the link, for any thread.
        self.report = LinkReport(self.get_logger(), self.open_state, self.rates, self.problems)
        self._status = StatusPublisher(self, self.now)
        self._autostart = Autostart(self, self.parameters, self._status, self.hardware_id)
        self._namesakes = Namesakes(self)
        # A server and a bridge may have the same namespace, and their vehicles are not the same one.
        self.hold = Hold(self, "~/held" if self.is_server else "held", self.report, self.check_age, self.cleanup)
        #: How the vehicle moves, by its own account.
        self.observed = ObservedMotion(elapsed_s)
        #: Where the bytes of every connection are to be logged, while active and if the user wants it.
        self.wire_log: WireLog | None = None
        self._loop: LinkLoop | None = None
        self._leaving = threading.Lock()
        self._is_time_simulated = False
        self._is_publishing = False
        self._each_second: list[Callable[[], None]] = []

    # What a node has to provide.

    @abstractmethod
    def set_up(self) -> None:
        """Read the parameters and create publishers and subscriptions. Raises ValueError with a sentence."""

    @abstractmethod
    def make_transport(self) -> Link:
        """Return the link, by the parameters as they are now. Raises LinkError, and ValueError with a sentence."""

    @abstractmethod
    def make_session(self) -> Session:
        """Return a session that has not begun."""

    @abstractmethod
    def publish_event(self, message: Any) -> None:
        """Publish a wire message on its topics. For the loop's thread."""

    def call_service(self, name: str, tag: Any) -> None:
        """Call a service for the session, and post the result. For the loop's thread."""
        raise NotImplementedError(f"{type(self).__name__} calls no services.")

    def link_ended(self) -> None:
        """Clean up after the link's end."""

    # The lifecycle.

    def start(self) -> bool:
        """Configure and activate, now or later, if autostart is true; return True, as the node stays up anyway."""
        if self.parameters["autostart"]:
            self._autostart.start()
        return True

    def transition_failed(self, error: Exception) -> None:
        """Tell the user why a transition that they requested failed."""
        if not self._autostart.takes(error):
            self.get_logger().error(str(error))

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
        self._configured_hardware_id = self.hardware_id()
        self.make_ticker("report", REPORT_PERIOD_S, self._report)
        self.parameters.freeze("configured")
        return super().on_configure(state)

    @log_failure
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Open the link, and keep it open."""
        self.wire_log = self._open_wire_log()
        try:
            link, session = self.make_transport(), self.make_session()
        except (LinkError, ValueError):
            if self.wire_log:
                self.wire_log.close()  # or each attempt to take the port leaves one behind
                self.wire_log = None
            raise
        self.report.start_link()
        loop = LinkLoop(f"{self.get_name()} link", link, session, self, intake=self.intake)
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

    def destroy_node(self) -> None:
        self.cleanup.close()
        super().destroy_node()

    def _open_wire_log(self) -> "WireLog | None":
        """Return the log that the parameters ask for, if any. Raises LinkError."""
        if not (folder := self.parameters["wire_log"]):
            return None
        from drone_bridge.net.wire_log import WireLog, facts_of  # a bridge without a log starts without it

        path = Path(folder).expanduser().absolute()
        name = self.get_fully_qualified_name().strip("/").replace("/", ".")
        side = "vehicle" if self.is_server else "operator"
        facts = facts_of(self._protocol_name, side, name, self.parameters.values())
        log = WireLog(path, name, facts, self._log_error)
        self.get_logger().info(f"The bytes of every connection are logged to {path}.")
        return log

    def _log_error(self, sentence: str) -> None:
        self.get_logger().error(sentence)

    # The session, for the executor.

    @property
    def has_link(self) -> bool:
        """Whether there is a link, or one is being opened."""
        return self._loop is not None

    def post(self, work: Callable[[float], Actions], *, is_kept: bool = False) -> bool:
        """Have the loop's thread call a function with the time, and do the actions that it returns.

        What is kept is never dropped, as a caller waits for it. Return whether it was accepted: False if the node is
        not active, or its link has just ended.
        """
        loop = self._loop
        return loop is not None and loop.post(work, is_kept=is_kept)

    # The session's actions, for the loop, see `link_loop.Stage`; `publish_event` and `call_service` are above.

    def note(self, note: Note) -> None:
        """Count and log."""
        if note.counter:
            self.report.counts[note.counter] += 1
        if not note.sentence:
            return
        if note.is_expected:
            self.report.inform(note.sentence)
        elif note.is_ongoing:
            self.report.warn_ongoing(note.counter, note.sentence, is_usual_at_start=note.is_usual_at_start)
        else:
            self.report.warn(note.sentence, note.counter)

    def resolve(self, outcome: Outcome) -> None:
        """Answer a request."""
        outcome.request.finish(outcome.is_success, outcome.sentence, outcome.result)

    def link_opened(self) -> None:
        """Note that the peer can be reached."""
        self.report.end_ongoing(UNREACHABLE)

    def link_turned(self, session: Session) -> None:
        """Report the session's state."""
        self.report.follow(session)

    # Publishing.

    def publish(self, publisher: "Publisher[Any]", message: Any, decided_s: float | None = None) -> None:
        """Publish from any thread; failures are counted.

        An operator's command has the time (`elapsed_s`) at which it was decided to follow it: it is left out if this
        process was stalled since.
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

    @property
    def decided_s(self) -> float:
        """When it was decided to publish the message that `publish_event` is given, see `publish`."""
        return self._loop.decided_s if self._loop else math.inf

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

    def encode(
        self, send: Callable[[MessageT], EncodedT], message: MessageT, neutral: MessageT | None = None
    ) -> EncodedT | None:
        """Return what `send` makes of a message, or of the neutral one, see `encoded`: our own fault ends no link."""
        return encoded(send, message, neutral, functools.partial(self.report.count_and_warn, UNENCODABLE))

    # Commands and requests, for the executor.

    def takes_commands(self) -> bool:
        """Return whether an operator's command may be followed; not right after a stall of this process."""
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
        """Return why no command can reach the vehicle now, or None."""
        if self._loop is None:
            return "the bridge is not active."
        if not self.report.is_open:
            return "no peer is connected."
        if self.report.is_silent:
            return f"{self.report.peer} has been silent for {self.report.silence_s:.0f} s."
        return None

    # Reports.

    def hardware_id(self) -> str:
        """Return the hardware_id for diagnostics: the protocol and the configured address."""
        get = self.parameters.__getitem__
        return f"{self._protocol_name} {address_name(get('host'), get('port'))}"

    def each_second(self, call: Callable[[], None]) -> None:
        """Have a function called once per second until cleanup, in the thread of the reports; it must not block."""
        self._each_second.append(call)
        self.cleanup.callback(self._each_second.remove, call)

    def _report(self) -> None:
        self._is_time_simulated = is_time_simulated(self)
        self.report.silence_limit_s = self.parameters[self.silence_parameter]
        conflict = clock_conflict(self) if self._is_time_simulated or self._publishes_clock else None
        self.report.update_condition(CLOCKS, conflict, "set publish_clock to false in all nodes but one")
        self.report.update_condition(NAMESAKES, self._namesakes.problem(), ADVICE)
        if not self.says_silence:
            self.report.notice_silence()
        if not self.is_server:
            self.report.advise(link_advice(self._protocol_name, self._configured_hardware_id))
        self.hold.report()
        for call in tuple(self._each_second):
            call()
        if self._status.is_wanted:
            self._status.publish(self.report.status(self._status.name, self._configured_hardware_id))
        else:
            self.report.start_period()  # or the first report would cover all the time without subscribers

    def _connecting_failed(self, error: LinkError, delay_s: float) -> None:
        sentence = f"{error} Trying again in {delay_s:.1f} s."
        # A vehicle may be switched on later, but a name that nobody has is a mistake, or the network is down.
        self.report.warn_ongoing(UNREACHABLE, sentence, is_usual_at_start=not isinstance(error, UnknownHostError))

    def _ticker_failed(self, trace: str) -> None:
        if self.context.ok():  # else ROS is being shut down, and everything fails
            self.report.count_and_warn("internal_errors", trace)

    # Publishers, subscriptions, services and timers, which are destroyed at cleanup.

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
        """Destroy a subscription at cleanup."""
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
        timer = self.create_timer(period_s, callback, clock=RosClock(clock_type=ClockType.STEADY_TIME))
        self.cleanup.callback(self.destroy_timer, timer)
        return timer

    def make_ticker(self, name: str, period_s: float, call: Callable[[], None]) -> None:
        """Call a function periodically in a thread of its own, for less than a timer costs; it must not block."""
        ticker = Ticker(f"{self.get_name()} {name}", period_s, call, self._ticker_failed)
        self.cleanup.callback(ticker.stop)

    def make_service(
        self, service_type: type, name: str, callback: Callable[[Any, Any], Any], callback_group: CallbackGroup
    ) -> None:
        """Create a service below the node's name."""
        self.create_service(service_type, f"~/{name}", callback, callback_group=callback_group)

    # What rclpy's node does, and what is to be done beside it.

    def create_service(self, *what: Any, **options: Any) -> Any:
        """Create a service that loses no response, however late it is created, see `service_responses`."""
        service = super().create_service(*what, **options)
        resend_if_lost(self, service)
        return service

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
