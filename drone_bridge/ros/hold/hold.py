# SPDX-License-Identifier: Apache-2.0
"""Hold: keeps a vehicle neutral, regardless of commands, until a person resumes it. See docs/bridges.md.

A hold is set by the service `~/hold`, by a wish on `~/hold_wish`, and by the end of the helm. Only a wish makes it a
person's. Commands on `~/pilot` and `~/helm` come from a person at a stick, and lock out all others, also those of
another person. When they stop, for any reason, the vehicle is held without a further message. `session.hold_state` has
the rules.

A wish is a state, not an event: its publisher latches it, and a node that starts later gets it from DDS. Each id is
handled once, and acknowledged on `~/hold_status` with the id of this run and the count of releases. By these the
publisher detects a later release. On the same machine, a node also reads wishes from files (`wish_file`), since DDS
takes up to 3 s to deliver them. A file keeps a hold for a node that is killed and restarted (`hold_file`).
"""

import contextlib
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TwistStamped
from rclpy.publisher import Publisher
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from drone_bridge.msg import HoldStatus, HoldWish, PilotCommand
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.hold.file_writer import FileWriter
from drone_bridge.ros.hold.hold_file import HoldFile
from drone_bridge.ros.hold.wish_file import EVERY_NODE, EVERY_VEHICLE, WishFiles
from drone_bridge.ros.node.link_report import COMMANDER
from drone_bridge.ros.publishers import NO_EVENTS, PUBLISHER_ERRORS
from drone_bridge.ros.qos import latched
from drone_bridge.ros.time import time_from_nanoseconds
from drone_bridge.session.hold_state import (
    ANONYMOUS,
    AT_HELM,
    BY_MACHINE,
    CALLED,
    HELM_REFUSED,
    STEERED,
    STRAGGLES_S,
    HelmPilot,
    HoldState,
)
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.wire.printable import printable

#: Counter of commands that were refused because the vehicle is held, or because a person is at its helm.
REFUSED = "commands_refused_on_hold"
#: How long the service's response, and the end of the node, wait for the file, s.
FILE_TIMEOUT_S = 0.3
#: Period of `poll_files`, s, and number of these after which files are read even if none was added or removed: two may
#: be within a tick of the file system's clock.
LOOK_S, LOOKS_PER_READ = 0.1, 10
#: Number of stored ids of wishes: a repeated wish does not hold again.
MAX_WISHES = 64
#: Longest reason of a wish, characters.
MAX_REASON = 100
#: Longest id, and name, of a pilot, characters.
MAX_PILOT = 64
#: Reason of a wish without one, or with one that is reserved for a machine's hold.
WISHED = "a person pressed STOP"
_ADVICE = Obstacle.HOLD.remedy()


class Hold:
    """Hold of a node's vehicle. Changed in the executor, safe to read from any thread without a lock."""

    #: Called after a hold or a resume was reported, in the thread that has found it.
    changed: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, node: Any, *, is_server: bool) -> None:
        """Restore the hold of the node's last run, or of a wish file, and create services and topics.

        Args:
            node: the vehicle's node, a ProtocolNode.
            is_server: whether it is a server. A bridge in the same namespace has another vehicle.
        """
        self._node = node
        domain, name = node.context.get_domain_id(), node.get_fully_qualified_name()
        self._file = HoldFile(domain, name)
        self._writer = FileWriter(self._file.keep, self._unkept)
        self._wish_files = WishFiles(domain)
        self._names = {EVERY_NODE, name, node.get_namespace()}  # in wishes
        if not is_server:
            self._names |= {EVERY_VEHICLE, node.resolve_topic_name("cmd_vel_stamped"), f"{name}/cmd_vel_stamped"}
        # For the executor and the reports. Never locked by the link's thread while it has a peer.
        self._lock = threading.Lock()
        self._on_hold: list[Callable[[], None]] = []
        self._held_for = ""  # reason of the hold that was logged
        self._refused = 0
        self._wishes: dict[str, int] = {}  # number of releases at the time of each wish
        stored, unread = self._stored()
        self._file.reserve()
        #: State of hold and helm.
        self.state = HoldState(reason := stored or unread)
        self._status = HoldStatus(run=uuid.uuid4().hex, held=bool(reason), since=_now(), is_inherited=bool(reason))
        self._published_held: bool | None = None
        self._publisher: Publisher[Any] = node.create_publisher(
            Bool, "~/held" if is_server else "held", latched(), event_callbacks=NO_EVENTS
        )
        self._status_publisher: Publisher[Any] = node.create_publisher(
            HoldStatus, "~/hold_status", latched(), event_callbacks=NO_EVENTS
        )
        node.create_service(SetBool, "~/hold", self._serve)
        wished: Callable[[Any], None] = lambda wish: self._take_wish(wish.id, wish.reason)  # noqa: E731
        node.create_subscription(HoldWish, "~/hold_wish", wished, latched())
        self._publish()
        if stored:
            node.get_logger().warning(f"It was holding when it ended ({reason}), and still holds: {_ADVICE}.")
        self.poll_files()

    @property
    def is_held(self) -> bool:
        """Whether the vehicle must be neutral."""
        return bool(self.state.reason(elapsed_s()))

    @property
    def run(self) -> str:
        """Random id of this run of the node."""
        return str(self._status.run)

    def sign(self, *, is_active: bool, is_settled: bool) -> None:
        """Publish the state as a sign of life, see `session.duplicate_nodes`. Thread-safe."""
        with self._lock:
            self._status.is_active, self._status.is_settled = is_active, is_settled
            self._publish()

    def when_set(self, call: Callable[[], None]) -> None:
        """Register a callback, until cleanup, for when commands are to be dropped. Called in the executor."""
        self._on_hold.append(call)
        self._node.cleanup.callback(self._on_hold.remove, call)

    def check(self, what: str) -> None:
        """Raise ValueError with a sentence if the vehicle is held. `what` names a request that moves it."""
        if reason := self.state.reason(elapsed_s()):
            raise ValueError(f"{what} is refused while the vehicle is held ({reason}): {_ADVICE}.")

    def admits(self, topic: str) -> bool:
        """Return whether a command of a program is to be followed. Counts refused ones. For the executor."""
        return self.state.is_free or self._refuse(topic)

    def claim_helm(self, command: PilotCommand | TwistStamped) -> bool:
        """Return whether the sender of a command may steer. Counts the commands of another one. For the executor."""
        pilot = ANONYMOUS
        if isinstance(command, PilotCommand) and command.id:
            pilot = HelmPilot(printable(command.id, MAX_PILOT), printable(command.name, MAX_PILOT))
        with self._lock:
            may_steer = self.state.claim(pilot, elapsed_s())
        self._node.report.counts[REFUSED] += not may_steer
        return may_steer

    def take_helm(self, topic: str, refused: str = "") -> bool:
        """Take the helm by a command, or keep it. Return whether the command is followed. For the executor.

        Args:
            topic: the helm's.
            refused: why the command is refused, a sentence; empty if it is not. The vehicle is neutral then.
        """
        now_s = elapsed_s()
        if refused and now_s - self.state.released_s < STRAGGLES_S:
            return False
        with self._lock:
            shown = self._status.pilot, self._status.pilot_name
            is_news = bool(refused) != bool(self.state.refused_helm)
            if begins := self.state.steer(now_s, refused):
                self._writer.keep(AT_HELM)  # in case the bridge is killed meanwhile
                self._node.report.inform("A person is at the helm: other commands are refused.")
            if begins or refused:
                self._forget_commands()
            if begins or is_news or self.state.pilot(now_s) != shown:
                self._publish()
        return not refused and (not self.is_held or self._refuse(topic))

    def _refuse(self, topic: str) -> bool:
        """Count a command that is not followed, and log it while the vehicle is held. Return False."""
        self._node.report.counts[REFUSED] += 1
        if reason := self.state.reason(elapsed_s()):  # empty at the helm: taking it was logged
            sentence = f"Commands on {topic} do not move the vehicle: it is held ({reason}): {_ADVICE}."
            self._node.report.warn_ongoing(REFUSED, sentence)
        return False

    def hold(self, reason: str) -> None:
        """Hold the vehicle for a reason of the node. Not for the link's thread while it has a peer."""
        with self._lock:
            if self.state.hold(reason):
                self._held()

    def follow(self, topic: str, nodes: str) -> None:
        """Publish the topic whose commands are followed, and report it with its publishers; empty for none."""
        with self._lock:
            self._node.report.facts[COMMANDER] = f"{nodes} on {topic}" if topic else ""
            if topic != self._status.commander:
                self._status.commander = topic
                self._publish()

    def poll_files(self, *, only_if_changed: bool = False) -> None:
        """Follow new wishes in files.

        Call this periodically, in a separate thread, as it may wait for a disk.
        """
        if not self._wish_files.have_changed() and only_if_changed:
            return
        for wish in self._wish_files.read():
            if not wish.is_for(self._names):
                continue
            with self._lock:
                if is_known := wish.id in self._wishes:  # it stays known, however many follow
                    self._wishes[wish.id] = self._wishes.pop(wish.id)
            if not is_known:
                self._take_wish(wish.id, wish.reason)

    def finish(self) -> None:
        """Wait until the file is written, for FILE_TIMEOUT_S at most. Call this before the process ends."""
        self._writer.wait(FILE_TIMEOUT_S)

    def report(self) -> None:
        """Detect the end of a helm, and report. Call this periodically, not in the link's thread."""
        with self._lock:
            if self.state.end_helm(elapsed_s()):
                self._held()
        refused, before, reason = self._node.report.counts[REFUSED], self._held_for, self.state.reason(elapsed_s())
        is_ignoring = not reason and not self.state.is_free and refused != self._refused
        self._node.report.update_obstacle(Obstacle.HELM, {} if is_ignoring else None)
        self._held_for, self._refused = reason, refused
        self._node.report.update_obstacle(Obstacle.HOLD, {"reason": reason} if reason else None, is_logged=False)
        if reason and reason != before:
            self._node.report.warn(Obstacle.HOLD.sentence(reason=reason), Obstacle.HOLD.key)
        if reason != before:
            self.changed()

    def _take_wish(self, id_: str, reason: str) -> None:
        if not id_:
            return
        with self._lock:
            is_new = id_ not in self._wishes
            if is_new:
                self._wishes[id_] = self._status.releases
                if len(self._wishes) > MAX_WISHES:
                    del self._wishes[next(iter(self._wishes))]
            self._status.wish, self._status.releases_before_wish = id_, self._wishes[id_]
            reason = printable(reason)[:MAX_REASON]
            if is_new and self.state.hold(WISHED if reason in BY_MACHINE else reason):
                self._held()
            else:  # also for a repeated wish: its acknowledgement may have been lost
                self._publish()
        self.report()

    def _serve(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if not request.data:
            try:
                self._node.check_age("resume")
            except ValueError as error:
                response.message = str(error)
                return response
        with self._lock:
            if request.data:
                if self.state.hold(CALLED):
                    self._held()
                elif self._writer.problem:
                    self._writer.keep(self.state.now[0])
            else:
                self._release()
        kept = "" if self._writer.wait(FILE_TIMEOUT_S) else f"{self._file.path} is still being written."
        if request.data:
            kept = self._writer.problem or kept or f"{self._file.path} keeps that."
            response.message = f"The vehicle is held: {_ADVICE}. {kept}"
        else:
            response.message = f"The vehicle follows commands. {self._writer.problem or kept}".rstrip()
        response.success = True
        self.report()
        return response

    def _held(self) -> None:
        """Drop commands, publish and store a hold that has just begun."""
        self._forget_commands()
        self._publish()
        self._writer.keep(self.state.now[0])

    def _release(self) -> None:
        if not self.is_held:
            return
        self._forget_commands()
        self.state.release(elapsed_s())
        self._status.releases += 1
        self._writer.keep("" if self.state.is_free else AT_HELM)
        self._node.report.end_ongoing(REFUSED)
        self._publish()

    def _forget_commands(self) -> None:
        for call in tuple(self._on_hold):
            call()

    def _publish(self) -> None:
        """Publish the state of the hold."""
        status, reason = self._status, self.state.now[0]
        if bool(reason) != status.held:
            status.since, status.is_inherited = _now(), False
        status.held, status.reason, status.problem = bool(reason), reason, self._writer.problem
        status.by_person = bool(reason) and reason not in BY_MACHINE
        refused = f"{HELM_REFUSED}{self.state.refused_helm}" if self.state.refused_helm else ""
        status.pilot, status.pilot_name = self.state.pilot(elapsed_s())
        status.helm = "" if reason or self.state.is_free else f"{STEERED}{refused}"
        with contextlib.suppress(*PUBLISHER_ERRORS):
            if self._published_held != status.held:
                self._publisher.publish(Bool(data=status.held))
                self._published_held = status.held
            self._status_publisher.publish(status)

    # The file.

    def _stored(self) -> tuple[str, str]:
        """Return the reason of the stored hold, and that of a hold because it can't be read: a person decides."""
        try:
            return self._file.read(), ""
        except OSError as error:
            return "", self._file.unread(error)

    def _unkept(self, problem: str) -> None:
        """Report a new problem with the file, or its end. Called in the writer's thread."""
        if problem:
            self._node.get_logger().warning(problem)
        with self._lock:
            self._publish()


def _now() -> Time:
    """Return the time of day, for people to compare with a clock."""
    return time_from_nanoseconds(time.time_ns())
