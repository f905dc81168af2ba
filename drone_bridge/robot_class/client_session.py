# SPDX-License-Identifier: Apache-2.0
"""RobotClassOperatorSession: the session of a client with a Robot. Pure.

| state | begins | sends |
|---|---|---|
| waiting for a peer | at the start; after the loss of the connection or the robot | nothing |
| greeting | on a connection, or when a datagram link opens | the greeting; an unanswered step again after AGAIN_S, \
or all of it, with neutral, if it raises an error; \
over datagrams also neutral, as a robot may obey any sender; if the limits require it, a landing |
| connected | with the last answer | neutral, then at `rate` the arbiter's command, or neutral |
| closed | at the end | neutral and `encode_goodbye`; datagrams FINAL_REPEATS times, as they may be lost |

Telemetry and answers that are decoded are signs of life. Without one for `link_timeout`, a stream is closed and
reconnected, and a robot on datagrams or a serial line is greeted again. A robot whose description decodes no reports is
never silent. A packet for which the description raises an error is dropped. If it raises one for neutral, the robot
gets its last words, a stream is closed, and others are greeted again.

A robot whose class declares topics is moved, and gets requests that move it, only once one of its reports or answers
was decoded since it was greeted: see `_is_unproven`. After a loss it gets neutral for OBEYS_S from the greeting on,
then what is commanded. Landing, and requests that are always accepted, need neither.

A robot on a stream that stops reading executes later all that its system has acknowledged meanwhile. Once it has been
moved without a sign of life for `command_timeout`, and for three of its reports, it is sent neutral until it gives one.
A landing continues. Without reports over this stream, nothing shows that a robot has stopped reading.

A robot that reports that it does not obey has left its mode in order not to move, as when it is lifted. It gets neutral
until `disobeys` has held it, also if it obeys or is connected again. The end of that hold greets it again, neutral
first, and once: if it still does not obey OBEYS_S later, it is held again. It is not judged for OBEYS_S after a
greeting, before the first greeting ends, and during a request that moves it, such as to dock.

A request moves the robot unless it is declared not to. Then the robot counts as moving until a velocity is commanded,
and its `stop` is sent before the next command, on hold, after a stall, at the end, and with the last words.

Requests (`ask`) are sent once. Their outcome is the robot's answer within `timeout_s`, or that they were sent. Unless
the robot is connected and was heard within `link_timeout`, they are refused, and so are requests from before a stall.
To land, to cut the motors (ENDS_FLIGHT) and to end a motion is always requested, an emergency for EMERGENCY_AGE_S, also
if a stall begins before it is sent; and once more at each further call, as datagrams get lost. A stream that has
stalled drops an emergency then, and other requests but `land` when the caller gets the outcome.

An answer without a name is the outcome of the longest pending request only if it can be no other's. Such others are
repeats of a step of the greeting, whose test it passes, video and `stop` (for ANSWERS_S), automatic landings, and
requests that were repeated or given up (for `timeout_s`); and the last answer that came unasked, for ANSWERS_S, as some
robots answer commands. On datagrams and lines, several pending requests have their outcomes once all are answered. If
order does not tell until `timeout_s`, the outcome is that it is unknown.

A robot that is declared to answer each packet has one outstanding. A command that is due meanwhile is skipped, and
decided anew with the answer; further packets of a command, and requests, wait for their turn. Sent beside it at once
are the first neutral after motion, the `stop` of a request, and requests that are always accepted; repeats wait.
Answers are matched by name or order, so that a request gets its own one, which is a failure if it is rejected.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from drone_bridge.kind import Side
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.dead_reckoning import DeadReckoning
from drone_bridge.motion.derived_velocity import DerivedVelocity
from drone_bridge.robot_class.connection import Packet, RobotClassConnection, StatePacket, packets
from drone_bridge.robot_class.outstanding import OutstandingPackets
from drone_bridge.robot_class.returned import described, slow_method
from drone_bridge.robot_class.robot import (
    NEUTRALS,
    Answer,
    Command,
    Robot,
    Step,
    encoded,
    first_link,
    framing_of,
    further_links,
    has_last_words,
    is_stream,
    maxima,
    reports,
    step_bytes,
)
from drone_bridge.session.arbiter import CommandSource, Decision, Rank
from drone_bridge.session.clients import LOST
from drone_bridge.session.continuous_pose import ContinuousPose, continued
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.node_parameters import NodeParameters
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.session.report_watch import ReportWatch
from drone_bridge.session.session import (
    CONNECTIONS,
    EMERGENCY,
    EMERGENCY_AGE_S,
    FINAL_GAP_S,
    FINAL_REPEATS,
    LAND,
    REJECTED,
    Action,
    Actions,
    Close,
    Landing,
    LastWords,
    Note,
    Outcome,
    Publish,
    Request,
    Send,
    Session,
    next_due,
    sends_first,
)
from drone_bridge.session.tilt_pilot import ESTIMATED, ESTIMATES, TiltPilot
from drone_bridge.wire import NEED_DATA, ConnectionClosed, RemoteProtocolError
from drone_bridge.wire.counters import Counter, problems, rates
from drone_bridge.wire.outgoing import UNENCODABLE, Secret

WAITING, GREETING, CONNECTED, CLOSED = "waiting for a peer", "greeting", "connected", "closed"
AGAIN_S = 0.5
#: How long a repeat of a step may be answered. An earlier one has reached nobody: the robot was switched off.
ANSWERS_S = 2.0
#: Period of the request to land.
LAND_S = 1.0
#: Motion is withheld from a silent robot on a stream after this many of its reports, or `command_timeout` if longer.
REPORTS_MISSED = 3
#: Number of the last gaps between reports of which the longest counts.
GAPS = 5
#: Time after a greeting, or the end of a request, within which a robot begins to obey, s.
OBEYS_S = 1.0
#: Errors in a greeting. Whatever it raises, the robot is not driven until it ends.
ANY_ERROR = (Exception, SystemExit)
#: Test of the packet that answers a step of the greeting.
Test = Callable[[bytes], bool]
#: Number of different errors of a description that are worded. Further ones are only counted.
MOST_SAID = 16
#: Number of packets whose answers are no outcome.
MOST_OTHERS = 64
#: Sentences: what is not moved yet, and the outcome of a request without an answer that is certainly its own.
UNPROVEN = "{} gets neutral until a report of it is decoded: none was since it was greeted."
UNANSWERED = "The robot did not answer, or perhaps another packet."
UNKNOWN = "It is unknown whether it executes {}."
#: Values in the sentences of these errors.
_VALUES = re.compile(r"=(\[.*?\]|\(.*?\)|[^,)]*)|(, and returned | b['\"]).*")
#: Counters.
SENT, REPORTS = rates("sent_commands", "reports")
UNSENT, WITHHELD = problems("unsent_packets", "withheld_commands")
UNGREETED = Counter("unanswered_steps")


class _UnansweredRequest(NamedTuple):
    """Request that awaits its answer."""

    request: Request
    until_s: float


class _Other(NamedTuple):
    """Packet whose answer, if it has no name, is no outcome."""

    test: Test
    until_s: float
    name: str
    """Name of its request, or ""."""


@dataclass(slots=True)
class OperatorParameters(NodeParameters):
    """Parameters of the session. A robot's class has the defaults."""

    rate: float = Robot.rate
    link_timeout: float = Robot.link_timeout_s


class RobotClassOperatorSession(Session):
    """Session of a client with one robot."""

    def __init__(
        self,
        robot: type[Robot],
        arbiter: CommandSource[Any],
        parameters: OperatorParameters,
        peer: str,
        feedback: Feedback | None = None,
        *,
        pilot: TiltPilot | None = None,
        watch: ReportWatch | None = None,
        pose: ContinuousPose | None = None,
        is_line: bool = False,
        login: str = "",
    ) -> None:
        """Start without a connection.

        Args:
            robot: the description.
            arbiter: decides what to send.
            parameters: those of the node, which may change at any time.
            peer: its name for logs.
            feedback: receives the robot's telemetry; None for a client without limits.
            pilot: flies the arbiter's decisions by the robot's `drone`; None for a robot without one.
            watch: notices implausible telemetry; None for a client without limits of positions, or with a pilot.
            pose: the robot's pose in `odom`; None for a client without one, and for an absolute pose.
            is_line: whether the link is a serial line, which stays open: opening it resets many boards. A robot on it
                is greeted again like one on datagrams, and rejected packets are skipped.
            login: of the description, if it has one.
        """
        self._is_stream, self._is_line = is_stream(robot) and not is_line, is_line
        self.state, self.peer, self._feedback = WAITING, peer, feedback
        self._pilot, self._watch = pilot, watch
        self._robot, self._arbiter, self._parameters = robot, arbiter, parameters
        self._further, self._hears = further_links(robot), reports(robot)
        self._reckoning, self._pose = DeadReckoning(in_plane=True) if robot.reckons else None, pose
        self._derived = DerivedVelocity(*maxima(robot))
        self._end: RobotClassConnection | None = None
        self._login = login
        self._kept: Robot | None = None  # the description of the last connection, for what it keeps
        self._to: Any = None
        self._step: bytes | Callable[[], bytes] = b""
        self._other_answer = b""  # newest packet that does not answer the pending step
        self._sent_s: list[float] = []  # times at which the pending step was sent, within ANSWERS_S
        self._others: list[_Other] = []
        self._unasked = Answer(""), -math.inf  # newest answer that was for nothing, and its time
        self._held: list[Answer] = []  # answers on datagrams, until each pending request has one
        self._refused_at = -math.inf  # time at which the robot's port was reported closed
        self._asked: dict[str, _UnansweredRequest] = {}  # by name
        self._withholds = False
        self._disobeys = self._report_disobeys = ""  # reason, and that of the newest report
        #: How often it was found not to obey, and why the last time. Safe to read from any thread.
        self.disobedience = 0, ""
        #: Facts about a robot that answers while no report comes to the further ports; else None. Thread-safe.
        self.blocked: dict[str, str] | None = None
        #: Those about a silent robot whose packets are no reports; and why the newest one is none.
        self.unread: dict[str, str] | None = None
        self._unread = ""
        #: Those about bytes that are no packet, and about an unanswered greeting of a robot that sends packets.
        self.noise: dict[str, str] | None = None
        self.ungreeted: dict[str, str] | None = None
        self._is_ungreeted = False  # held, since it does not obey
        self._is_resumed = False  # greeted again since then
        self._moves_from_s = -math.inf  # after a loss
        self._judged_from_s = math.inf
        self._final_left = 0
        self._has_last_words = has_last_words(robot)
        self._said: set[str] = set()  # errors of the description, by their lines
        self._unsaid: list[Note] = []
        self._began: list[Note] = []  # to be worded once a robot on datagrams is heard
        self._stop, self._stops_left = b"", 0  # what ends the motion of a request, and its repeats that are due
        self._framing = framing_of(first_link(robot), to_robot=True)
        #: Packets that await an answer.
        self.outstanding = OutstandingPackets(is_unknown=robot.answered is None, is_stream=self._is_stream)
        self._now_s = -math.inf
        self._restart()

    def _restart(self) -> None:
        """Begin a connection."""
        self._greeting: Iterator[Step] | None = None
        self._test: Test | None = None  # of the pending step's answer
        self._land_s = -math.inf
        self._is_landing = False  # while the robot is greeted
        self._reported_at: float | None = None  # time of the last report
        self._has_answered = False  # beyond the greeting; over datagrams the greeting, too
        self._gaps_s: deque[float] = deque(maxlen=GAPS)  # between reports
        self._moved_at = math.inf  # time of the first motion that was sent after the last sign of life
        self._is_neutral = True  # the last command
        self._words = b"", b""  # the newest last words of the description
        self._is_unstoppable = False  # neutral could not be encoded
        self.outstanding.restart()
        self._rest: list[bytes] = []  # further packets of the newest command
        self._waiting: list[Request] = []
        self._is_skipped = False  # the command that was due while an answer was outstanding

    @property
    def has_peer(self) -> bool:
        """Whether packets can be sent to a robot, which may be silent. Thread-safe."""
        return self._end is not None and self.state != CLOSED

    @property
    def disobeys(self) -> str:
        """Why the robot does not obey, until it is held; else empty. Thread-safe."""
        return "" if self._is_ungreeted else self._disobeys

    def opened(self, now_s: float) -> Actions:
        return [] if self._is_stream or self._is_line else self.connected(None, now_s)

    def connected(self, peer: Any, now_s: float) -> Actions:
        self._end, self._to = RobotClassConnection(self._robot, Side.OPERATOR, is_line=self._is_line), peer
        if self._login:
            self._end.robot.login = self._login
        for name in self._robot.keeps if self._kept else ():
            setattr(self._end.robot, name, getattr(self._kept, name))
        if self._pose:
            self._pose.greeted()
        self._moves_from_s = math.inf if self._kept else -math.inf
        self._kept = self._end.robot
        self._now_s, self.peer = now_s, self.peer if peer is None else str(peer)
        self._restart()
        self._arbiter.start(now_s)
        if self._pilot:
            self._pilot.restart(now_s)
        if self.state == WAITING:  # answers are lost with a link
            self._others = []
        self.state, self.is_proven = GREETING, not self._hears
        self.since_s, self.received_s = now_s, None
        if self._watch:
            self._watch.restart()
        self._disobeys = "" if self._is_ungreeted else self._disobeys
        self._is_ungreeted = self._is_resumed = False
        began = Note(CONNECTIONS, f"Connected to {self.peer}.", is_expected=True)
        is_known = self._is_stream or self._is_line or not self._hears
        self._began, noted = ([], [began]) if is_known else ([began], [])
        return [*self._neutral_of_datagrams(), *self._handshake(now_s), *noted]

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        assert isinstance(data, bytes)
        if self._end is None:
            return []
        actions: list[Action] = list(self._began)
        end, self.is_heard, self._began, self._now_s = self._end, True, [], now_s
        link = source if isinstance(source, str) and source in self._further else ""
        end.receive_data(data, link)
        while True:
            read, is_whole = self._read(end, now_s, is_first_link=not link)
            actions += read
            if is_whole or end is not self._end:
                return sends_first(actions)

    def _read(self, end: RobotClassConnection, now_s: float, *, is_first_link: bool) -> tuple[Actions, bool]:
        """Execute the packets received so far, up to an invalid one. Return whether there was none."""
        actions: list[Action] = []
        try:
            while (packet := end.next_event()) is not NEED_DATA:
                assert not isinstance(packet, ConnectionClosed)  # the stream has not ended
                if is_of_greeting := self._test is not None and _passes(self._test, packet.data):
                    self._received(now_s)
                    actions += self._handshake(now_s)
                elif self._test is not None and packet.data.strip():
                    is_report = isinstance(packet, StatePacket)
                    self._other_answer = (is_report and self._other_answer) or packet.data
                if isinstance(packet, StatePacket):
                    left_out, end.left_out = end.left_out, ()
                    actions += (self._once(REJECTED, f"Left out: {each}.") for each in left_out)
                    actions += self._reported(packet, now_s)
                elif packet.meaning is None and not is_of_greeting:
                    self._unread = f"decode_report() returned None for {packet.data!r:.60}"
                elif isinstance(packet.meaning, Answer):
                    self._received(now_s)
                    is_other = is_of_greeting or (not self._robot.answered and self._answers_other(packet, now_s))
                    self._has_answered |= not (is_other and is_stream(self._robot))
                    if not (self._robot.answered or is_other):
                        actions += self._answered(packet.meaning, now_s)
                actions += self._matched(packet.meaning, now_s) if is_first_link else []
        except RemoteProtocolError as error:
            rejected, end.rejected = end.rejected, b""  # empty if the bytes were no packet
            if is_step := bool(rejected) and self._test is not None and _passes(self._test, rejected):
                self._received(now_s)  # an answer need not be a report
                actions += self._handshake(now_s)
            else:
                actions.append(self._once(REJECTED, str(error)))
                self._other_answer = rejected if self._test is not None else b""
                self._unread = str(error).rstrip(".")
            actions += self._matched(Answer("", is_step, str(error)), now_s) if is_first_link else []
            if is_first_link and self._is_stream and end.has_failed:
                actions += self._ended()
            return actions, False
        return actions, True

    def disconnected(self, peer: Any, sentence: str, now_s: float) -> Actions:
        return [*self._ended(is_gone=True), Note(LOST, sentence)] if self._end else []

    def tick(self, now_s: float) -> Actions:
        self._now_s = now_s
        if now_s < self.due_s:
            return []
        noted, self._unsaid = self._unsaid, []
        return [*(self._final(now_s) if self.state == CLOSED else self._turn(now_s)), *noted]

    def _turn(self, now_s: float) -> Actions:
        """Send what is due now."""
        if self._is_unstoppable and self._is_stream:
            return self._ended()
        if self._is_unstoppable and self.state == CONNECTED:
            self.state, self.is_open, self._greeting, self._test, self._sent_s = GREETING, False, None, None, [now_s]
        silent_s = self.silent_s(now_s)
        if self._hears and silent_s > self._parameters.link_timeout:
            if self._further and self._reported_at is None:
                ports = " and ".join(str(each.port) for each in self._further.values())
                self.blocked = None if self.received_s is None else {"peer": self.peer, "ports": ports}
            self.unread, self._unread = {"peer": self.peer, "reason": self._unread} if self._unread else None, ""
            silence = Note(LOST, self._noise(silent_s) or f"{self.peer} was silent for {silent_s:.1f} s.")
            if self._is_stream:
                return [*self._ended(), silence]
            if self.state == CONNECTED:
                return [*self._unanswered("The robot is silent."), *self.connected(self._to, now_s), silence]
        unanswered = self._unanswered(UNANSWERED, now_s)
        if self.state == GREETING:
            return [*self._greet_again(now_s), *unanswered]
        self.due_s = next_due(self.due_s, 1 / self._parameters.rate, now_s)
        actions = [*self._command(now_s), *unanswered]
        is_estimating = self._pilot is not None and self._pilot.is_estimating
        return [*actions, Note(ESTIMATED, ESTIMATES, is_ongoing=True)] if is_estimating else actions

    def landing(self, now_s: float) -> Landing:
        if LAND not in self._robot.requests and "z" not in self._robot.axes:
            return Landing.UNSUPPORTED
        return Landing.LANDS if self.has_peer else Landing.DISCONNECTED

    def ask(self, request: Request, now_s: float) -> Actions:
        """Send one of the robot's `requests`. Its Outcome follows now or later."""
        ends, earlier = request.name in self._robot.always_accepted, self._asked.get(request.name)
        if refusal := self._refusal(request, now_s, ends=ends):
            return [Outcome(request, False, refusal)]
        self._now_s, waits = now_s, self._is_busy(now_s) and not ends
        timeout_s = self._robot.all_requests[request.name].timeout_s
        if timeout_s or self._robot.answered:
            until_s = now_s + (timeout_s or EMERGENCY_AGE_S)
            self._asked[request.name] = _UnansweredRequest(request, until_s)
            self._waiting += [request] * waits
            if earlier:
                self._expect_other(timeout_s, request.name)
        sent = [] if waits else self._requested(request, now_s)
        return [*sent, Outcome(earlier.request, False, f"{request.name} was called again.")] if earlier else sent

    def _refusal(self, request: Request, now_s: float, *, ends: bool) -> str:
        """Return why a request is not sent, a sentence, or "". `ends`: whether it is always accepted."""
        if not self.has_peer:
            return "No robot is connected."
        if not ends and not self._is_responsive(now_s):
            return f"{self.peer} is not connected yet, or silent."
        if now_s > self.expires_at(request):
            return "The request is stale: the bridge was suspended meanwhile. Call again."
        if request.name in self._asked and not ends:
            return f"{request.name} is already pending."
        moves = self._robot.all_requests[request.name].moves and not ends
        if moves and self._is_unproven():
            return UNPROVEN.format(self.peer)
        return Obstacle.DISOBEYS.sentence(reason=self._disobeys) if self._disobeys and moves else ""

    def _requested(self, request: Request, now_s: float) -> Actions:
        """Send a request."""
        asked, ends = self._robot.all_requests[request.name], request.name in self._robot.always_accepted
        try:
            assert self._end
            data = asked.encoded(self._end.robot)
        except Exception as error:
            self._asked.pop(request.name, None)
            return [Outcome(request, False, f"{request.name} can't be encoded: {described(error)}.")]
        until_s = self.expires_at(request) if ends else now_s + (asked.timeout_s or EMERGENCY_AGE_S)
        decides = None if asked.timeout_s or self._robot.answered else request
        stops = self._stopped(now_s) if asked.moves and not ends else []
        sent = self._sent(data, request, until_s=until_s, outlasts_stalls=ends, request=decides)
        if data == self._stop:
            self._stops_left = 0
        elif asked.moves and not ends:
            self._stop = asked.stop or self._robot.stop
            self._stops_left = 1 if self._is_stream else FINAL_REPEATS
        return [*stops, *sent]

    def expires_at(self, request: Request) -> float:
        is_safe = request.name in self._robot.always_accepted and request.name != EMERGENCY
        return math.inf if is_safe else super().expires_at(request)

    def ask_video(self, now_s: float) -> Actions:
        """Ask the robot for its video, unless answers are awaited, as it may answer this as well."""
        self._now_s = now_s
        if self.state != CONNECTED or self._asked or self._robot.camera is None:
            return []
        self._expect_other(ANSWERS_S)
        return self._sent(self._robot.camera.ask)

    def stall_cause(self) -> str:
        return slow_method() or super().stall_cause()

    def resume(self, now_s: float) -> Actions:
        super().resume(now_s)
        self._moved_at, self._now_s = math.inf, now_s
        self.outstanding.resume(now_s)
        return [*self._stopped(now_s), *self._drive(None)] if self.state == CONNECTED else []

    def lost(self, now_s: float) -> Actions:
        return self._ended() if self._end else []

    def refused(self, sentence: str, now_s: float) -> Actions:
        """Forget the steps sent so far, which reached a closed port and will not be answered."""
        self._refused_at, self._others = now_s, []
        return super().refused(sentence, now_s)

    def end(self, now_s: float) -> Actions:
        unanswered = self._unanswered("The link to the robot was closed before its answer.")
        if self._is_stream or self._end is None:
            ended = self._ended() if self._end else []
            self.state, self.is_over = CLOSED, True
            return [*ended, *unanswered]
        self.state, self.is_open, self._final_left = CLOSED, False, FINAL_REPEATS
        return [*self._final(now_s), *unanswered]

    def last_words(self) -> LastWords | None:
        """Return neutral and `encode_goodbye`, by the robot's description."""
        if (self._is_neutral and not self._stops_left) or not self._end or not self._has_last_words:
            return None
        try:
            self._words = self._end.robot.last_words()
        except Exception as error:
            self._unsaid.append(self._once(UNENCODABLE, f"Earlier last words are used: {described(error)}."))
        neutral, last = self._words
        stop = self._stop if self._stops_left else b""
        return LastWords(tuple(filter(None, (stop, neutral))), (last,) if last else (), self._to)

    def neutral_sent(self, now_s: float) -> Actions:
        """Record that neutral was sent, also in the description: its packet may have had a number."""
        self._stops_left, self._now_s = 0, now_s
        return [each for each in self._drive(None) if not isinstance(each, Send)] if self._end else []

    def _final(self, now_s: float) -> Actions:
        self._final_left -= 1
        self.is_over = not self._final_left
        self.due_s = math.inf if self.is_over else now_s + FINAL_GAP_S
        return [*self._stopped(now_s), *self._drive(None), *(self._left() if self.is_over else [])]

    def _stopped(self, now_s: float) -> Actions:
        """Send what ends a motion that a request began, if one was sent."""
        is_repeat = not self._is_stream and self._stops_left < FINAL_REPEATS
        if not self._stops_left or (is_repeat and self._is_busy(now_s)):
            return []
        self._stops_left -= 1
        self._judged_from_s = now_s + OBEYS_S
        if any(each.timeout_s and each.packet == self._stop for each in self._robot.all_requests.values()):
            self._expect_other(ANSWERS_S)
        return self._sent(self._stop)

    def _handshake(self, now_s: float) -> Actions:
        """Continue the greeting, or begin it, to the next step with an answer, or to its end, which is neutral."""
        actions: list[Action] = []
        if self._test is not None:
            arrived_s = [sent_s for sent_s in self._sent_s if sent_s > self._refused_at]
            self._others += [_Other(self._test, sent_s + ANSWERS_S, "") for sent_s in arrived_s[1:]]
        self._sent_s, self._other_answer = [now_s], b""
        try:
            assert self._end
            self._greeting = self._greeting or self._end.robot.handshake()
            for step in self._greeting:
                self._step, self._test = (step, None) if isinstance(step, bytes) else step
                actions += self._sent_step()
                self._judged_from_s = now_s + OBEYS_S
                if self._test is not None:
                    self.due_s = now_s + AGAIN_S
                    return actions
        except ANY_ERROR as error:
            begins = "The greeting has failed, and begins again. The robot gets neutral until it ends"
            actions += [*self._drive(None), Note(UNENCODABLE, f"{begins}: {described(error)}.", is_ongoing=True)]
        else:
            actions += self._drive(None)
            if not self._is_unstoppable:
                self._test, self.state, self.is_open, self.ungreeted = None, CONNECTED, True, None
                self._judged_from_s = now_s + OBEYS_S
                self._moves_from_s = min(self._moves_from_s, now_s + OBEYS_S)
                self.due_s = now_s + 1 / self._parameters.rate
                return actions
        self._greeting, self._test, self.due_s = None, None, now_s + AGAIN_S
        return actions

    def _greet_again(self, now_s: float) -> Actions:
        """Repeat the pending step, after a landing that the limits require, or else neutral."""
        self._arbiter.start(now_s)  # a landing ends, as nothing is reported
        decision = self._decision(now_s)
        was_landing, self._is_landing = self._is_landing, decision.rank is Rank.LANDING
        self.due_s = now_s + (1 / self._parameters.rate if self._is_landing else AGAIN_S)
        if self._is_landing:
            commands = self._follow(decision, now_s)
        else:
            commands = self._drive(None) if was_landing else self._neutral_of_datagrams()
        if now_s < self._sent_s[-1] + AGAIN_S or (self._is_resumed and now_s < self._judged_from_s):
            return commands
        if disobeys := self._judge(now_s):
            return [*commands, *disobeys]
        if self._greeting is None:
            return [*commands, *self._handshake(now_s)]
        self._sent_s = [*(each for each in self._sent_s if now_s - each < ANSWERS_S), now_s]
        if self._other_answer:
            commands = [*commands, Note(UNGREETED, self._ungreeted(), is_ongoing=True)]
        elif self._hears and (unreadable := self._noise(self.silent_s(now_s))):
            commands = [*commands, Note(UNGREETED, unreadable, is_ongoing=True)]
        try:
            return [*commands, *self._sent_step()]
        except ANY_ERROR as error:
            failed = self._once(UNENCODABLE, f"A step of the handshake can't be encoded: {described(error)}.")
            return [*commands, failed]

    def _sent_step(self) -> Actions:
        """Send the pending step. No wire log keeps one that may have a part of the login."""
        data = step_bytes(self._step)
        return self._sent(Secret(data) if self._login else data)

    def _noise(self, silent_s: float) -> str:
        """Return which bytes of the stream are no packet, and why, if there were no others for this time; else ""."""
        if self._end is None or not self._end.skipped[0]:
            return ""
        number, first, reason = self._end.skipped
        rate, link = f"{number / max(silent_s, 1.0) / 1000:.1f} kB/s", next(iter(self._robot.links))
        self.noise = {"link": link, "rate": rate, "sample": f"{first.hex(' ')} ...", "reason": reason}
        return Obstacle.NO_PACKET.sentence(**self.noise)

    def _ungreeted(self) -> str:
        """Return what the robot sends instead of the answer to the pending step, and why it does not obey."""
        is_shown = isinstance(self._step, bytes) and not self._login  # of which a step may have any part
        step = f"{self._step!r:.60}" if is_shown else "a step"
        disobeys = self._report_disobeys
        sent = f"it reports that {disobeys}" if disobeys else f"it has sent {self._other_answer!r:.80}"
        self.ungreeted = {"peer": self.peer, "step": step, "sent": sent}
        return Obstacle.UNGREETED.sentence(**self.ungreeted)

    def _decision(self, now_s: float) -> Decision[Any]:
        """Return the command to send now: shares for a drone that is steered by tilt."""
        if self._pilot is None:
            return self._arbiter.decide(now_s)
        return Decision(self._arbiter.rank(now_s), self._pilot.shares(now_s))

    def _command(self, now_s: float) -> Actions:
        """Send the command of now. Greet a robot that did not obey once its hold has ended."""
        decision = self._decision(now_s)
        if not self._disobeys or decision.rank is Rank.LANDING:
            return self._follow(decision, now_s)
        if self._is_ungreeted and decision.rank is not Rank.HOLD:
            self._arbiter.start(now_s)
            self.state, self._greeting, self._is_ungreeted, self._is_resumed = GREETING, None, False, True
            self._disobeys = self._report_disobeys = ""
            return [*self._drive(None), *self._handshake(now_s)]
        self._is_ungreeted = decision.rank is Rank.HOLD
        return self._follow(Decision(decision.rank), now_s)

    def _follow(self, decision: Decision[Any], now_s: float) -> Actions:
        """Send the command of a decision, and the request to land once per LAND_S."""
        withheld = self._withheld(decision, now_s)
        command = decision.command if withheld is None else None
        if self._watch:
            self._watch.commanded(command if isinstance(command, BodyVelocity) else None)
        is_driven = decision.rank is Rank.HOLD or decision.command is not None
        actions = [*(self._stopped(now_s) if is_driven else []), *self._waited(decision.rank, now_s)]
        land: Actions = []
        is_due = decision.rank is Rank.LANDING and LAND in self._robot.requests and now_s >= self._land_s
        if is_due and not (now_s < self._land_s + LAND_S and self._is_busy(now_s)):  # a repeat waits
            self._land_s = now_s + LAND_S
            assert self._end
            land = self._sent(self._robot.all_requests[LAND].encoded(self._end.robot))
            self._expect_other(self._robot.all_requests[LAND].timeout_s, LAND)
        return [*actions, *self._in_turn(command, now_s), *(withheld or []), *land]

    def _judge(self, now_s: float) -> Actions:
        """Handle the newest report of whether the robot obeys, and why not. Its motion is not sent from then on."""
        is_judged = self.state == CONNECTED or self._is_resumed
        reason = self._report_disobeys
        if not is_judged or not reason or self._disobeys or self._stops_left or now_s < self._judged_from_s:
            return []
        self._disobeys, self.state, self._test = reason, CONNECTED, None
        self.disobedience = self.disobedience[0] + 1, reason
        return [*self._drive(None), Note("", Obstacle.DISOBEYS.sentence(reason=reason))]

    def _expect_other(self, seconds: float, name: str = "") -> None:
        """Record that a packet is sent whose answer, within this time, is no outcome. `name`: that of its request."""
        self._others = [*self._others[-MOST_OTHERS:], _Other(lambda _: True, self._now_s + seconds, name)]

    def _answers_other(self, packet: Packet, now_s: float) -> bool:
        """Return whether an answer may be another packet's than the longest pending request's: then it decides nothing.

        One like the last that came for nothing, within ANSWERS_S, is of those: the robot answers its commands.
        """
        if packet.meaning.name:
            return False
        if packet.meaning == self._unasked[0] and now_s <= self._unasked[1] + ANSWERS_S:
            self._unasked = packet.meaning, now_s
            self.outstanding.count_answer()
            return True
        for each in self._others:
            if now_s <= each.until_s and each.name not in list(self._asked)[:1] and _passes(each.test, packet.data):
                self._others.remove(each)
                return True
        return False

    def _is_responsive(self, now_s: float) -> bool:
        """Return whether the robot is connected and not silent."""
        is_silent = self.received_s is None or self.silent_s(now_s) > self._parameters.link_timeout
        return self.state == CONNECTED and not (self._hears and is_silent)

    def _located(self, packet: StatePacket, now_s: float) -> tuple[StatePacket, Actions]:
        """Return a report with its pose in `odom`, and actions if the robot's own pose has begun again.

        Its position is by dead reckoning if the robot has none of its own.
        """
        measured, restarted = continued(self._pose, packet.meaning, now_s)
        if self._pose and self.state == GREETING:
            self._pose.greeted()  # a step of the greeting may reset it
        pose = self._reckoning.update(measured, now_s) if self._reckoning else None
        measured = replace(measured, position=pose[:3], yaw=pose.yaw) if pose else measured
        return packet if measured is packet.meaning else replace(packet, meaning=measured), restarted

    def _received(self, now_s: float) -> None:
        """Record that the robot is responsive."""
        self.received_s, self._moved_at, self._withholds, self.noise = now_s, math.inf, False, None

    def _reported(self, packet: StatePacket, now_s: float) -> Actions:
        """Execute a report, and measure the gap to the last one. Those of one burst count as one."""
        packet, restarted = self._located(packet, now_s)
        self._received(now_s)
        if self._reported_at is not None and now_s > self._reported_at:
            self._gaps_s.append(now_s - self._reported_at)
        self._reported_at, self.blocked, self.unread, self._unread = now_s, None, None, ""
        self._report_disobeys = packet.meaning.disobeys
        judged = self._judge(now_s)
        if self.state == CONNECTED:
            self.is_proven = True
            for each in (self._feedback, self._watch):
                if each:
                    each.measured(packet.meaning, now_s)
        velocity = self._derived.update(packet.meaning, now_s)
        published = replace(packet, meaning=replace(packet.meaning, velocity=velocity))
        return [*judged, *restarted, Publish(published), Note(REPORTS)]

    def _is_unproven(self) -> bool:
        """Return whether a robot that reports is not to be moved yet: none of its reports or answers was decoded.

        Over a stream or a line, since it was greeted, whose answer shows nothing. Over datagrams, an answer to the
        greeting is enough while no packet is rejected: a firewall may block the port of the reports of a drone, which
        has to be flown to its landing.
        """
        if not (self._hears and self._robot.topics) or self._reported_at is not None:
            return False
        is_rejected = bool(self._unread or self.unread) and not is_stream(self._robot)
        return not self._has_answered or is_rejected

    def _withheld(self, decision: Decision[Any], now_s: float) -> Actions | None:
        """Return the notes of a motion that is not sent. None if it is.

        It is not for OBEYS_S after the greeting of a robot that was lost, until the robot is proven, and over a stream
        that has been silent too long.
        """
        is_motion = decision.rank is not Rank.LANDING and decision.command not in (None, *NEUTRALS)
        if not is_motion or now_s < self._moves_from_s:
            return [] if is_motion else None
        is_unproven = self._is_unproven()
        if not (is_unproven or (self._is_stream and self._hears)):
            return None
        self._moved_at = min(self._moved_at, now_s)
        limit_s = self._parameters.link_timeout
        if self._gaps_s or is_unproven:
            limit_s = max(self._parameters.command_timeout, REPORTS_MISSED * max(self._gaps_s, default=0.0))
        if now_s - self._moved_at <= limit_s:
            return [] if is_unproven else None
        was_withheld, self._withholds = self._withholds, True
        silence = f"{self.peer} was moved for {limit_s:.1f} s without a report: neutral until it sends one."
        return [Note(WITHHELD, "" if was_withheld else UNPROVEN.format(self.peer) if is_unproven else silence)]

    def _ended(self, *, is_gone: bool = False) -> Actions:
        """End the connection, with a final neutral unless the peer has disconnected."""
        actions: list[Action] = []
        stops_left = self._stops_left
        if not is_gone and (self.state == CONNECTED or not self._is_neutral):  # it may be landing while it is greeted
            actions += [*self._stopped(self._now_s), *self._drive(None), *self._left()]
        if not is_gone and self._is_stream:
            actions.append(Close(self._to))
        self._end, self.state, self.is_open, self.due_s = None, WAITING, False, math.inf
        self._stops_left = stops_left  # what was sent may be lost with the link
        self.received_s = self.since_s = self._test = None
        return [*actions, *self._unanswered("The link to the robot was lost before its answer.")]

    def _answered(self, answer: Answer, now_s: float) -> Actions:
        """Return the outcomes that an answer decides.

        Without a name it is the longest pending request's. Datagrams get lost: there, several pending requests have
        their outcomes once all are answered.
        """
        names, answers = [answer.name], [answer]
        if not answer.name:
            names, answers = list(self._asked), [*self._held, answer]
            self._held = answers if not self._is_stream and len(answers) < len(names) else []
            if self._held:
                return []
        outcomes = []
        for name, each in zip(names, answers, strict=False):
            if pending := self._asked.pop(name, None):
                sentence = each.reason or ("ok" if each.is_success else "The robot refused the request.")
                outcomes.append(Outcome(pending.request, each.is_success, sentence))
        if not outcomes:
            self._unasked = answer, now_s
            self.outstanding.count_answer()
        return outcomes

    def _is_busy(self, now_s: float) -> bool:
        """Return whether an answer is outstanding, for which other packets wait."""
        return self.state == CONNECTED and self.outstanding.is_busy(now_s)

    def _split(self, data: bytes) -> list[bytes]:
        """Return the packets in bytes to the robot."""
        try:
            return list(packets(self._framing, data)) or [data]
        except Exception:
            return [data]

    def _in_turn(self, command: Command | None, now_s: float) -> Actions:
        """Send a command, unless an answer is outstanding. The first neutral after motion is sent at once."""
        is_stop = command in (None, *NEUTRALS) and not self._is_neutral
        self._is_skipped = self._is_busy(now_s) and not is_stop
        if self._is_skipped:
            return []
        self.outstanding.count_command(now_s)
        return self._drive(command, is_whole=is_stop)

    def _waited(self, rank: Rank, now_s: float) -> Actions:
        """Send a request that has waited, unless it is void meanwhile, if no answer is outstanding."""
        if not self._waiting or self._is_busy(now_s):
            return []
        request = self._waiting.pop(0)
        is_held = rank is Rank.HOLD and self._robot.all_requests[request.name].moves
        if not is_held and now_s <= self.expires_at(request):
            return self._requested(request, now_s)
        del self._asked[request.name]
        return [Outcome(request, False, f"{request.name} had to wait, and was not sent. Please call again.")]

    def _matched(self, meaning: Any, now_s: float) -> Actions:
        """Handle the answer to a packet, of any meaning, and send what has waited for it."""
        if not self._robot.answered:
            return []
        answer = meaning if isinstance(meaning, Answer) else Answer("")
        request = self.outstanding.answered(now_s, answer.name)
        if self.outstanding.is_doubtful:
            answer = Answer("", False, f"{UNANSWERED} {UNKNOWN.format(request.name)}")
        is_awaited = any(each.request is request for each in self._asked.values())
        outcome = self._answered(replace(answer, name=request.name), now_s) if is_awaited else []
        if self._rest and not self._is_busy(now_s):
            return [*self._sent(self._rest.pop(0)), *outcome]
        if self._is_skipped or self._waiting:
            self.due_s = now_s
        return outcome

    def _unanswered(self, sentence: str, now_s: float = math.inf) -> Actions:
        """Give up the requests that had to be answered by now. A later answer to one is no outcome of another."""
        late = [name for name, pending in self._asked.items() if now_s > pending.until_s]
        self._waiting = [each for each in self._waiting if each.name not in late]
        for name in late:
            self._held = []
            self._expect_other(self._robot.all_requests[name].timeout_s, name)
        return [Outcome(self._asked.pop(name).request, False, f"{sentence} {UNKNOWN.format(name)}") for name in late]

    def _neutral_of_datagrams(self) -> Actions:
        return [] if self._is_stream else self._drive(None)

    def _drive(self, command: Command | None, *, is_whole: bool = True) -> Actions:
        """Send a command, or the first of its packets. Neutral replaces an unencodable one, and last words neutral."""
        assert self._end
        faults: list[Action] = []
        self._rest = []
        for each in dict.fromkeys((command, None)):
            try:
                data = encoded(self._end.robot, each)
                if self._robot.answered and each is command and not is_whole:
                    data, *self._rest = self._split(data)
                sent = self._sent(data, if_sent=(SENT,))
                self._is_neutral = each in (None, *NEUTRALS)
                self._is_unstoppable = self._is_unstoppable and not self._is_neutral
                return [*sent, *faults]
            except Exception as error:
                faults.append(self._once(UNENCODABLE, f"{each or 'Neutral'} can't be encoded: {described(error)}."))
        self._is_unstoppable = True
        with contextlib.suppress(Exception):
            self._words = self._end.robot.last_words()
        return [*(action for each in self._words for action in self._sent(each)), *faults]

    def _left(self) -> Actions:
        assert self._end
        try:
            return self._sent(self._end.robot.encode_goodbye())
        except Exception as error:
            return [self._once(UNENCODABLE, f"The last packet can't be sent: {described(error)}.")]

    def _once(self, counter: Counter, sentence: str) -> Note:
        """Return the note of an error of the description: counted each time, and worded once for its line."""
        place = _VALUES.sub("", ": ".join(sentence.split(": ")[:2]))
        is_new = place not in self._said and len(self._said) < MOST_SAID
        self._said |= {place} if is_new else set()
        return Note(counter, sentence if is_new else "")

    def _sent(self, data: bytes, asked: Request | None = None, **options: Any) -> Actions:
        """Send data, if there are any, perhaps of a request. Options are those of Send."""
        if data and self._robot.answered:
            timeout_s = self._robot.all_requests[asked.name].timeout_s if asked else 0.0
            self.outstanding.sent(len(self._split(data)), self._now_s, asked, timeout_s)
        return [Send(data, self._to, UNSENT, **options)] if data else []


def _passes(test: Test, data: bytes) -> bool:
    """Return whether a packet passes a description's test. One that fails is not passed."""
    try:
        return test(data)
    except ANY_ERROR:
        return False
