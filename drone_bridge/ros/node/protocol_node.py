# SPDX-License-Identifier: Apache-2.0
"""ProtocolNode: base class for bridges and servers, lifecycle nodes that run one session on one link while active.

A subclass provides topics and parameters (`set_up`), the link, the session, and the publishing of wire messages.

| state | resources |
|---|---|
| unconfigured | parameters, which can change; `hold`, with its service and topics; `report` |
| inactive | also publishers, subscriptions, services and timers, which `cleanup` destroys; a status each second |
| active | also the link: `LinkLoop` runs the session on it, and topics are published |

Reconnecting happens in the state active. A node that can't start stays unconfigured (`Autostart`).

There are three threads. The executor's thread runs transitions and callbacks, and passes work to the session by `post`.
The loop's thread, while active, alone accesses link and session, and calls `publish_event`. The thread of the reports
runs from configure to cleanup. Two more threads read wish files (`Hold.poll_files`), and wait for signals: that one may
call `leave`. A lock is therefore held while the link is started or ended.
"""

import contextlib
import functools
import math
import os
import threading
import time
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from builtin_interfaces.msg import Time
from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher

from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.msg import HoldStatus
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import LinkError, LinkInUseError, UnknownHostError
from drone_bridge.net.last_words import LEAST_LIFETIME_S, LastWordsKeeper
from drone_bridge.net.link_loop import INTERNAL_ERRORS, Intake, Link, LinkLoop
from drone_bridge.net.listening import is_own_address
from drone_bridge.net.wire_log import WireLog, facts_of
from drone_bridge.ros.hold.hold import LOOK_S, LOOKS_PER_READ, Hold
from drone_bridge.ros.node.autostart import Autostart
from drone_bridge.ros.node.configured_node import ConfiguredNode
from drone_bridge.ros.node.fault_watch import FaultWatch
from drone_bridge.ros.node.link_report import LinkReport
from drone_bridge.ros.node.parameters import UNCONFIGURED, DeclaredParameters, ParameterDeclaration, has_value
from drone_bridge.ros.node.simulated_time import TimeWatch, clock_conflict, is_time_simulated
from drone_bridge.ros.node.stall_watch import PROCESS, STALL_S
from drone_bridge.ros.node.status_publisher import StatusPublisher
from drone_bridge.ros.node.topic_faults import TopicFaults
from drone_bridge.ros.node.transform_watch import WatchedTransforms
from drone_bridge.ros.process import log_pipe
from drone_bridge.ros.process.name_lock import NAMES, NameTakenError
from drone_bridge.ros.publishers import PUBLISHER_ERRORS, has_subscribers, wait_for_delivery
from drone_bridge.ros.qos import latched
from drone_bridge.ros.ticker import Ticker
from drone_bridge.ros.time import time_from_nanoseconds
from drone_bridge.session.duplicate_nodes import DuplicateNodes
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.session.session import (
    AFTER_STALLS,
    MAY_HAVE_WAITED,
    Actions,
    Landing,
    Note,
    Outcome,
    Session,
)
from drone_bridge.stop_signals import LAUNCHED
from drone_bridge.wire.addresses import address_name
from drone_bridge.wire.counters import ProblemCounter, RateCounter, problems
from drone_bridge.wire.outgoing import UNENCODABLE, encoded

REPORT_PERIOD_S = 1.0
#: Counter of commands that could not reach a vehicle.
UNDELIVERED = ProblemCounter("undelivered_commands")
#: Counters of messages that could not be published, and of refused commands and requests; and of all commands.
DROPPED_MESSAGES, REFUSED_COMMANDS = problems("dropped_messages", "refused_commands")
COMMANDS = RateCounter("commands")
#: Obstacles that explain a missing link.
_NO_LINK = Obstacle.INACTIVE, Obstacle.UNREACHABLE, Obstacle.NO_PACKET, Obstacle.UNGREETED
#: Set by launch files whose argument for the peer's address is not named after the protocol.
HOST_ARGUMENT = "DRONE_BRIDGE_HOST_ARGUMENT"

MessageT = TypeVar("MessageT")
EncodedT = TypeVar("EncodedT")
Transition = Callable[[Any, LifecycleState], TransitionCallbackReturn]


def link_advice(protocol: str, peer: str, serial: str = "") -> str:
    """Return advice for a bridge without a link, naming the arguments of its launch file or its own parameters.

    `serial` is the path of its serial line, which has no host.
    """
    argument = os.environ.get(HOST_ARGUMENT) or f"{protocol}_host"
    host, emulator = f"{argument}:=ADDRESS", "emulate:=true"
    if not os.environ.get(LAUNCHED):
        host, emulator = "its parameter host", f"drone-bridge emulate {protocol}"
    other = "its parameter serial names another line" if serial else f"{host} names another address"
    return f"No link with {peer} yet. Is it switched on? {other}; to try without one: {emulator}"


def log_failure(transition: Transition) -> Transition:
    """Decorate a transition to log its failure, which rclpy does not do."""

    @functools.wraps(transition)
    def guarded(node: "ProtocolNode", state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except (LinkError, ValueError) as error:
            node.transition_failed(error)
            return TransitionCallbackReturn.FAILURE
        except Exception:
            if node.context.ok():  # otherwise a shutdown of ROS is the cause
                node.get_logger().error(traceback.format_exc())
            return TransitionCallbackReturn.ERROR

    return guarded


class ProtocolNode(ConfiguredNode):
    """Base class for bridges and servers."""

    #: Parameter with the silence of a connected peer, s, after which it is a warning.
    silence_parameter = "silence_warning"
    #: Whether the session itself reports a silent peer.
    says_silence = False
    #: Whether the node is the vehicle's end of its protocol, and steers a vehicle in ROS.
    is_server = False
    #: State of a working link, in logs and /diagnostics.
    open_state = "connected"
    #: Queue of commands for the loop's thread.
    intake: Intake | None = None
    #: Publishers of a server's commands.
    command_publishers: Sequence[Any] = ()
    #: Whether the lifecycle has ended, and with it the process.
    is_finalized = False

    def __init__(self, name: str, declarations: Iterable[ParameterDeclaration], **options: Any) -> None:
        """Create the node. The options are rclpy's, such as `namespace` and `parameter_overrides`."""
        self._wish_ticker: Ticker | None = None
        super().__init__(name, **options)
        try:
            NAMES.take(self.context.get_domain_id(), self.get_fully_qualified_name())
        except NameTakenError:
            self.destroy_node()
            raise
        self.parameters = DeclaredParameters(self, declarations, keep_refused=True)
        self._protocol_name = name.rpartition("_")[0]  # for example testbed, of testbed_bridge
        #: Counters, log and diagnostics of the link. Thread-safe.
        self.report = LinkReport(self.get_logger(), self.open_state, is_server=self.is_server)
        self._status = StatusPublisher(self, self.now)
        self._autostart = Autostart(self, self.parameters, self._status, self.hardware_id)
        self.hold = Hold(self, is_server=self.is_server)
        self._duplicates = DuplicateNodes(self.hold.run, elapsed_s())
        self.create_subscription(HoldStatus, "~/hold_status", self._follow_duplicate, latched())
        self._wish_looks = 0
        self._wish_ticker = Ticker(f"{name} wishes", LOOK_S, self._look_for_wishes, self._log_error)
        #: Motion of the vehicle, by its own reports.
        self.observed = ObservedMotion(elapsed_s, self._settled_at)
        #: Log of every connection's bytes, while active.
        self.wire_log: WireLog | None = None
        self._fault_watch = FaultWatch(self, self.report, self.hold, lambda: self.wire_log)
        self._loop: LinkLoop | None = None
        self._keeper: LastWordsKeeper | None = None
        self._leaving = threading.Lock()
        self._is_time_simulated, self._time_watch = False, TimeWatch(self)
        self._topic_faults = TopicFaults(self)
        self._transforms: Any = None  # its publisher on /tf
        self._is_publishing = False
        self._each_second: list[Callable[[], None]] = []
        self._on_activated: list[Callable[[], None]] = []
        self._on_counted: dict[str, Callable[[], None]] = {}

    # Interface of subclasses.

    @abstractmethod
    def set_up(self) -> None:
        """Read the parameters and create publishers and subscriptions. Raises ValueError with a sentence."""

    @abstractmethod
    def make_transport(self) -> Link:
        """Create the link, by the present parameters. Raises LinkError, and ValueError with a sentence."""

    @abstractmethod
    def make_session(self) -> Session:
        """Create a session."""

    @abstractmethod
    def publish_event(self, message: Any) -> None:
        """Publish a wire message on its topics. Called in the loop's thread."""

    def call_service(self, name: str, tag: Any) -> None:
        """Call a service for the session, and post the result. Called in the loop's thread."""
        raise NotImplementedError(f"{type(self).__name__} calls no services.")

    def link_begins(self) -> None:
        """Start what runs beside the link. Raises LinkError or ValueError if it can't start, as `make_session`."""

    def link_ended(self) -> None:
        """Wait for the delivery of the last command, and clean up, after the end of the link."""
        for publisher in self.command_publishers:
            wait_for_delivery(publisher)

    # The lifecycle.

    def start(self) -> bool:
        """Configure and activate, now or later, if autostart is true. Returns True: the node stays up in any case."""
        if self.parameters["autostart"]:
            self._autostart.start()
        return True

    def transition_failed(self, error: Exception) -> None:
        """Log why a transition failed, unless `Autostart` requested it."""
        self.advise(error)
        if not self._autostart.takes(error):
            self.get_logger().error(str(error))

    def advise(self, error: Exception) -> None:
        """Add the argument that chooses another port or serial line to an error of one in use."""
        if isinstance(error, LinkInUseError):
            launched = f"{self._protocol_name}_server" if self.is_server else self._protocol_name
            error.advise(self.parameters.values(), "its parameter {}", launched if os.environ.get(LAUNCHED) else "")
            if self.parameters.values().get("role") == "listen":
                error.argument += ", or set role: connect"

    @log_failure
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the parameters, create publishers and subscriptions, and start reporting."""
        self._check_duplicates()
        self._is_time_simulated = is_time_simulated(self)
        self.observed = ObservedMotion(elapsed_s, self._settled_at)
        self.report.start_over(self.parameters[self.silence_parameter])
        if self.parameters.refused:
            raise ValueError("; ".join(why.rstrip(".") for why in self.parameters.refused.values()) + ".")
        try:
            self.set_up()
        except ValueError:
            self.clean_up()
            raise
        self._publishes_clock = "publish_clock" in self.parameters and self.parameters["publish_clock"]
        self._configured_hardware_id = self.hardware_id()
        self.hold.changed = self._publish_status
        self.make_ticker("report", REPORT_PERIOD_S, self._report)
        self.parameters.freeze("configured")
        return super().on_configure(state)

    @log_failure
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Open the link, and keep it open."""
        self._check_duplicates()
        with contextlib.ExitStack() as opened:  # closed if a later step fails, or each retry would leave it behind
            self.wire_log = log = self._open_wire_log()
            opened.callback(setattr, self, "wire_log", None)
            opened.callback(log.close)
            link = self.make_transport()
            opened.callback(link.close)
            session = self.make_session()
            self.observed.restart()
            self.report.start_link()
            self._keeper = self._borrowed_keeper()
            opened.callback(self._return_keeper)
            loop = LinkLoop(f"{self.get_name()} link", link, session, self, intake=self.intake, keeper=self._keeper)
            opened.callback(loop.stop)
            self.link_begins()
            opened.callback(self.link_ended)
            self.parameters.publish("actual_port", loop.port)
            result = super().on_activate(state)
            opened.pop_all()
        self._is_publishing = True  # before the thread publishes
        for call in self._on_activated:
            call()
        with self._leaving:  # `leave` can't join a thread that has not started
            self._loop = loop
            loop.start()
        self._sign()
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
        """Deactivate, clean up, and end the process, unless a launch file would start it again."""
        result = self._undo("finalized")
        self.is_finalized = not os.environ.get(LAUNCHED)
        return result

    @log_failure
    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Return to unconfigured after a transition that raised."""
        return self._undo(UNCONFIGURED)

    def _undo(self, state: str) -> TransitionCallbackReturn:
        """Undo activate and configure, even if incomplete. `state` is the next state."""
        self.leave()
        self.clean_up()
        self.parameters.freeze(state)
        return TransitionCallbackReturn.SUCCESS

    def leave(self) -> None:
        """Send the neutral command and close the link. Thread-safe and idempotent."""
        with self._leaving:
            if self._loop:
                if not self._loop.stop():
                    self.get_logger().error("The link's thread did not stop in time; it is abandoned.")
                self._loop = None
                self.report.end_condition(Obstacle.UNREACHABLE.key)
                self._return_keeper()
                self.link_ended()
            self._is_publishing = False
            if self.wire_log and not self.wire_log.close():
                self.get_logger().error("The wire log could not be flushed in time.")
            self.wire_log = None
        self._sign()
        self.hold.finish()

    def destroy_node(self) -> None:
        if self._wish_ticker:  # otherwise the constructor has failed
            self._wish_ticker.stop()
        self.clean_up()
        super().destroy_node()  # type: ignore[no-untyped-call, unused-ignore] # Jazzy
        # It keeps rcl's node, and so others see this one until Python collects its garbage.
        self._state_machine.destroy_when_not_in_use()

    def _look_for_wishes(self) -> None:
        self._wish_looks += 1
        self.hold.poll_files(only_if_changed=bool(self._wish_looks % LOOKS_PER_READ))
        if not self._wish_looks % LOOKS_PER_READ:
            self._sign()

    # Other nodes of this name.

    def _sign(self) -> None:
        self.hold.sign(is_active=self.has_link, is_settled=self._duplicates.is_settled(elapsed_s()))
        if not (self.parameters.are_frozen or self._autostart.is_reporting) and self._status.is_wanted:
            self.report.update_obstacle(Obstacle.INACTIVE, {}, is_logged=False)
            self._status.publish(self.report.status(self._status.name, self.hardware_id()))

    def _follow_duplicate(self, sign: HoldStatus) -> None:
        """Record a sign of life of another run of this node's name, and give way to it if this one has just started."""
        states = {"is_active": sign.is_active, "is_settled": sign.is_settled}
        if self._duplicates.sign(sign.run, elapsed_s(), **states) and self.has_link:
            self.trigger_deactivate()
            self.trigger_cleanup()
            self.start()

    def _check_duplicates(self) -> None:
        """Raise LinkError with a sentence while another run of this node's name has precedence."""
        if self._duplicates.first:
            raise LinkError(Obstacle.GAVE_WAY.sentence(name=self.get_fully_qualified_name()))

    def _open_wire_log(self) -> WireLog:
        """Create the wire log, with a file if the parameters request one. Raises LinkError."""
        folder = self.parameters["wire_log"]
        path = Path(folder).expanduser().absolute() if folder else None
        name = self.get_fully_qualified_name().strip("/").replace("/", ".")
        side = "vehicle" if self.is_server else "operator"
        facts = facts_of(self._protocol_name, side, name, self.parameters.values())
        free_mb, inform = self.parameters["min_free_space"], self.get_logger().info
        log = WireLog(path, name, facts, self._log_error, min_free_mb=free_mb, on_saved=inform)
        if path:
            inform(f"The bytes of every connection are logged to {path}.")
        return log

    def _borrowed_keeper(self) -> LastWordsKeeper | None:
        """Return the keeper of this process for the last words of a bridge. A process has one."""
        if self.is_server:
            return None
        if keeper := log_pipe.borrow_keeper():
            keeper.command_timeout = lambda: max(float(self.parameters["command_timeout"]), LEAST_LIFETIME_S)
        elif log_pipe.has_last_words():
            self.get_logger().warning(
                "Another node of this process has last words. If the process is killed, this vehicle is not stopped."
            )
        return keeper

    def _return_keeper(self) -> None:
        if self._keeper:
            log_pipe.return_keeper(self._keeper)
        self._keeper = None

    def _log_error(self, sentence: str) -> None:
        self.get_logger().error(sentence)

    # The session, for the executor.

    @property
    def has_link(self) -> bool:
        """Whether a link is open or being opened."""
        return self._loop is not None

    def post(self, work: Callable[[float], Actions], *, is_kept: bool = False) -> bool:
        """Queue a callback for the loop's thread, which executes the actions that it returns.

        Kept work is a request with a waiting caller, and is never dropped. Return True if the work was accepted, False
        if the node is not active or its link has just ended.
        """
        loop = self._loop
        return loop is not None and loop.post(work, is_kept=is_kept)

    # Actions of the session, called by the loop: see `link_loop.Stage`. `publish_event` and `call_service` are above.

    def note(self, note: Note) -> None:
        """Count and log a note."""
        if note.counter:
            self.report.counts[note.counter] += 1
            self._on_counted.get(note.counter, lambda: None)()
        if not note.sentence:
            return
        if note.is_expected:
            self.report.inform(note.sentence)
        elif note.is_ongoing:
            self.report.warn_ongoing(note.counter, note.sentence, is_usual_at_start=note.is_usual_at_start)
        else:
            self.report.warn(note.sentence, note.counter)

    def resolve(self, outcome: Outcome) -> None:
        """Finish a request."""
        outcome.request.finish(outcome.is_success, outcome.sentence, outcome.result)

    def link_opened(self) -> None:
        """End the report of an unreachable peer."""
        self.report.update_obstacle(Obstacle.UNREACHABLE, None)

    def turn_ended(self, session: Session) -> None:
        """Update the report from the session's state."""
        self.report.follow(session)

    # Publishing.

    def publish(self, publisher: "Publisher[Any]", message: Any, decided_s: float | None = None) -> None:
        """Publish a message. Failures are counted. Thread-safe.

        `decided_s` is the decision time of an operator's command, by `elapsed_s`. After a stall since then the command
        is dropped.
        """
        if not self._is_publishing:  # faster than the check of a LifecyclePublisher
            return
        if decided_s is not None and elapsed_s() - decided_s > STALL_S:
            self.report.counts[AFTER_STALLS] += 1
            return
        try:
            publisher.publish(message)
        except PUBLISHER_ERRORS:
            self.report.counts[DROPPED_MESSAGES] += 1

    @property
    def decided_s(self) -> float:
        """Decision time of the message in `publish_event`, s. See `publish`."""
        return self._loop.decided_s if self._loop else math.inf

    def publish_all(self, messages: Iterable[tuple[Any, Any]]) -> None:
        """Publish pairs of publisher and message, see `publish`."""
        for publisher, message in messages:
            self.publish(publisher, message)

    def is_wanted(self, publisher: "Publisher[Any]") -> bool:
        """Return whether the topic has subscribers."""
        return has_subscribers(publisher)

    def now(self) -> Time:
        """Return the node's time, faster than rclpy. A change of use_sim_time takes effect within a second."""
        return time_from_nanoseconds(self.get_clock().now().nanoseconds if self._is_time_simulated else time.time_ns())

    def encode(
        self, send: Callable[[MessageT], EncodedT], message: MessageT, neutral: MessageT | None = None
    ) -> EncodedT | None:
        """Encode a message, or fall back to the neutral one, see `encoded`. An internal error does not end the link."""
        return encoded(send, message, neutral, functools.partial(self.report.count_and_warn, UNENCODABLE))

    # Commands and requests, for the executor.

    def takes_commands(self) -> bool:
        """Return whether operators' commands are followed. Right after a stall of this process they are refused."""
        if not PROCESS.is_settling:
            return True
        self.report.count_and_warn(AFTER_STALLS, MAY_HAVE_WAITED)
        return False

    def check_age(self, name: str) -> None:
        """Raise ValueError with a sentence for a request that may be stale after a stall of this process.

        Only requests for hold, for neutral and, if it does not depend on a state, for landing are then executed.
        """
        if not self.takes_commands():
            raise ValueError(f"The request {name} may be stale: the process was just stalled. Please call again.")

    def undelivered(self, topic: str) -> None:
        """Count a command that can't reach the vehicle, and log the reason, at growing intervals."""
        if self._leaving.locked():
            self.report.counts[UNDELIVERED] += 1  # during start or shutdown: not logged
        elif reason := self.undeliverable():
            effect = "may be lost" if self.report.is_silent else "reach no vehicle"  # they are still sent
            sentence = f"Commands on {topic} {effect}: {reason}"
            self.report.count_and_warn_ongoing(UNDELIVERED, sentence, is_usual_at_start=True)
        else:
            self.report.end_ongoing(UNDELIVERED)

    def undeliverable(self) -> str | None:
        """Return why commands can't reach the vehicle now, or None."""
        if self._loop is None:
            return Obstacle.INACTIVE.sentence()
        if not self.report.is_open:
            problem = next(filter(None, (self.report.conditions.get(each.key) for each in _NO_LINK)), None)
            return f"{problem.sentence}." if problem else Obstacle.DISCONNECTED.sentence()
        if self.report.is_silent:
            return self.report.silence_sentence(self.report.silence_s)
        return None

    def _settled_at(self) -> float:
        loop = self._loop
        return loop.session.settled_s if loop else -math.inf

    def landing(self, now_s: float) -> Landing:
        """Return what happens about a landing that the limits require. Thread-safe."""
        loop = self._loop
        return loop.session.landing(now_s) if loop else Landing.DISCONNECTED

    # Reports.

    @property
    def serial_line(self) -> str:
        """Path of the serial line that replaces host and port. Empty: none."""
        return ""

    def hardware_id(self) -> str:
        """Return the hardware_id for diagnostics: the protocol and the configured address."""
        get = self.parameters.__getitem__
        return f"{self._protocol_name} {address_name(get('host'), get('port'))}"

    def each_second(self, call: Callable[[], None]) -> None:
        """Register a callback, once per second until cleanup, in the thread of the reports. It must not block."""
        self._each_second.append(call)
        self.cleanup.callback(self._each_second.remove, call)

    def when_activated(self, call: Callable[[], None]) -> None:
        """Register a callback, until cleanup, for each activation, before the link opens. Called in the executor."""
        self._on_activated.append(call)
        self.cleanup.callback(self._on_activated.remove, call)

    def when_counted(self, counter: str, call: Callable[[], None]) -> None:
        """Register the callback of a counter, until cleanup, for each note of it. Called in the loop's thread."""
        self._on_counted[counter] = call
        self.cleanup.callback(self._on_counted.pop, counter)

    def _report(self) -> None:
        self._is_time_simulated = is_time_simulated(self)
        self.report.silence.limit_s = self.parameters[self.silence_parameter]
        conflict = clock_conflict(self) if self._is_time_simulated or self._publishes_clock else None
        self.report.update_obstacle(Obstacle.CLOCK, conflict)
        self.report.update_obstacle(Obstacle.NO_TIME, self._time_watch.facts(self._publishes_clock))
        name, number = self.get_fully_qualified_name(), self._duplicates.count(elapsed_s())
        several = {"number": number, "name": name} if number > 1 else None
        self.report.update_obstacle(Obstacle.NODE_NAME, several)
        self.report.update_obstacle(Obstacle.INCOMPATIBLE, self._topic_faults.facts())
        values = self.parameters.values()
        lost = values.get("role") == "listen" and not is_own_address(values["host"])
        self.report.update_obstacle(Obstacle.OWN_ADDRESS, {"address": values["host"]} if lost else None)
        self.report.update_obstacle(Obstacle.INACTIVE, None if self.has_link else {}, is_logged=False)
        is_known = self.is_server or self.report.is_open or any(each.key in self.report.conditions for each in _NO_LINK)
        self.report.update_obstacle(Obstacle.DISCONNECTED, None if is_known else {}, is_logged=False)
        if not self.is_server and not (self._loop and self._loop.session.is_heard):
            self.report.advise(link_advice(self._protocol_name, self._configured_hardware_id, self.serial_line))
        self.hold.report()
        for call in tuple(self._each_second):
            call()
        if not self.says_silence:  # after what explains it
            self.report.notice_silence()
        odometry = clock_conflict(self, self.resolve_topic_name("odom"))
        is_ours = self.is_server or (odometry and name in str(odometry["nodes"]).split(" and "))
        is_explained = Obstacle.SHARED.key in self.report.conditions
        self.report.update_obstacle(Obstacle.SECOND_ODOMETRY, odometry if is_ours and not is_explained else None)
        transforms = self._transforms and self._transforms.facts
        self.report.update_obstacle(Obstacle.SECOND_TRANSFORM, None if is_explained else transforms)
        self._fault_watch.look()
        self._publish_status()

    def _publish_status(self) -> None:
        if self._status.is_wanted:
            self._status.publish(self.report.status(self._status.name, self._configured_hardware_id))
        else:
            self.report.start_period()  # otherwise the next report would cover the time without subscribers

    def connecting_failed(self, error: LinkError, delay_s: float) -> None:
        """Report a failed attempt to connect, and the delay until the next one, s."""
        self.advise(error)
        key, sentence = Obstacle.UNREACHABLE.key, f"{error} Trying again in {delay_s:.1f} s."
        self.report.update_obstacle(Obstacle.UNREACHABLE, {"problem": str(error).rstrip(".")}, is_logged=False)
        # A vehicle may be switched on later, but an unknown name is a mistake or a network failure.
        self.report.warn_ongoing(key, sentence, is_usual_at_start=not isinstance(error, UnknownHostError))

    def ticker_failed(self, trace: str) -> None:
        """Count and log an error of a function of `make_ticker`."""
        if self.context.ok():  # otherwise a shutdown of ROS is the cause
            self.report.count_and_warn(INTERNAL_ERRORS, trace)

    def make_publisher(self, message_type: type, topic: str, qos: Any) -> Any:
        """See ConfiguredNode. That of moving transforms detects another node that publishes the same ones."""
        publisher: Any = super().make_publisher(message_type, topic, qos)
        if topic == "/tf":
            self._transforms = publisher = WatchedTransforms(self, publisher)
            self.each_second(publisher.find_others)
            self.cleanup.callback(setattr, self, "_transforms", None)
        return publisher

    # Overridden method of rclpy's node.

    def set_parameters_atomically(self, parameter_list: "list[Parameter[Any]]") -> SetParametersResult:
        """Set parameters. Those that already have the value are ignored, even if they can't be changed now.

        The output of `ros2 param dump` can therefore be loaded again.
        """
        changed = [parameter for parameter in parameter_list if not has_value(self, parameter)]
        result = super().set_parameters_atomically(changed) if changed else SetParametersResult(successful=True)
        if result.successful:
            for parameter in parameter_list:
                self.parameters.refused.pop(parameter.name, None)
        return result
