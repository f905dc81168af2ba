# SPDX-License-Identifier: Apache-2.0
"""RobotClassOperatorSession: the session of a client with a Robot. Pure.

| state | sends |
|---|---|
| waiting for a peer | nothing |
| greeting | the greeting; an unanswered step again after AGAIN_S, or all of it, with neutral, if it raises an error; \
over datagrams also neutral, as a robot may obey any sender; if the limits require it, a landing |
| connected | neutral, then at `rate` the arbiter's command, or neutral |
| closed | neutral and `encode_goodbye`; datagrams FINAL_REPEATS times, as they may be lost |

| event | state | then it is | packets reach the robot |
|---|---|---|---|
| a connection, a datagram link, or silence on one | any | greeting | as before |
| the last answer | greeting | connected | yes |
| it does not obey | connected, greeting | connected | as before |
| the hold of it ends | connected | greeting | as before |
| the link or the stream is lost | any | waiting for a peer | no |
| the end | any | closed | no |

A robot whose description decodes no reports is never silent. A stream that is silent or without neutral is closed and
reconnected. What is one concern is an object: packets and last words (`sender`), `requests`, `reports`, `obedience`,
and a greeting.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from drone_bridge.robot_class.client_requests import UNANSWERED, ClientRequests
from drone_bridge.robot_class.client_sender import NEUTRAL, UNSTOPPABLE, ClientSender
from drone_bridge.robot_class.connection import Packet, StatePacket
from drone_bridge.robot_class.greeting import AGAIN_S, ANSWERS_S, ANY_ERROR, Greeting
from drone_bridge.robot_class.heard_reports import HeardReports, OperatorParameters
from drone_bridge.robot_class.obedience import LINKED, NO_HOLD, ON_HOLD, Obedience
from drone_bridge.robot_class.returned import described
from drone_bridge.robot_class.robot import (
    NEUTRALS,
    Answer,
    Robot,
    Telemetry,
    further_links,
    is_stream,
    listens,
    reports,
)
from drone_bridge.robot_class.senders import FirstSenders
from drone_bridge.session.arbiter import CommandSource, Decision, Rank
from drone_bridge.session.clients import LOST, REFUSED
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.session.session import (
    CONNECTIONS,
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
    Publish,
    Request,
    Send,
    Session,
    next_due,
    sends_first,
)
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.wire import RemoteProtocolError
from drone_bridge.wire.addresses import AllowedPeers, peer_name, same_host
from drone_bridge.wire.counters import Counter, problems, rates
from drone_bridge.wire.outgoing import UNENCODABLE, Secret

WAITING, GREETING, CONNECTED, CLOSED = "waiting for a peer", "greeting", "connected", "closed"
ANY = {WAITING, GREETING, CONNECTED, CLOSED}
#: For each event the states in which it comes, the next one, and whether packets reach the robot then; None: as before.
ROWS: dict[str, tuple[set[str], str, bool | None]] = {
    "a connection, a datagram link, or silence on one": (ANY, GREETING, None),
    "the last answer": ({GREETING}, CONNECTED, True),
    "it does not obey": ({CONNECTED, GREETING}, CONNECTED, None),
    "the hold of it ends": ({CONNECTED}, GREETING, None),
    "the link or the stream is lost": (ANY, WAITING, False),
    "the end": (ANY, CLOSED, False),
}
#: Counters.
(REPORTS,), (WITHHELD,), UNGREETED = rates("reports"), problems("withheld_commands"), Counter("unanswered_steps")


class RobotClassOperatorSession(Session):
    """Session of a client with one robot."""

    def __init__(
        self,
        robot: type[Robot],
        arbiter: CommandSource[Any],
        parameters: OperatorParameters,
        peer: str,
        reports: HeardReports | None = None,
        *,
        pilot: TiltPilot | None = None,
        is_line: bool = False,
        login: str = "",
        allowed_peers: AllowedPeers | None = None,
    ) -> None:
        """Start without a connection.

        Args:
            robot: the description.
            arbiter: decides what to send.
            parameters: those of the node, which may change at any time.
            peer: its name for logs.
            reports: receives the robot's telemetry; None for a client without limits.
            pilot: flies the arbiter's decisions by the robot's `drone`; None for a robot without one.
            is_line: whether the link is a serial line. A robot on it is greeted again like one on datagrams.
            login: of the description, if it has one.
            allowed_peers: hosts that may be a robot that sends first. Default: all.
        """
        self.state, self.peer, self._parameters, self._arbiter, self._pilot = WAITING, peer, parameters, arbiter, pilot
        self.sender = ClientSender(robot, is_line=is_line, login=login)
        self.requests, self.obedience = ClientRequests(self.sender), Obedience()
        self.reports, self.never_stale = reports or HeardReports(robot), robot.always_accepted
        self._greeting, self._final_left = Greeting(), FINAL_REPEATS
        self._senders = FirstSenders(allowed_peers) if listens(robot) else None

    @property
    def has_peer(self) -> bool:
        """Whether packets can be sent to a robot, which may be silent. Thread-safe."""
        return self.state in (GREETING, CONNECTED)

    def _on(self, event: str) -> None:
        """Change the state by the row of an event. A greeting that follows begins with its first step."""
        states, then, is_open = ROWS[event]
        assert self.state in states, (self.state, event)
        self.state, self._greeting = then, Greeting()
        self.is_open = self.is_open if is_open is None else is_open

    def opened(self, now_s: float) -> Actions:
        return [] if is_stream(self.reports.robot) or self._senders else self.connected(None, now_s)

    def connected(self, peer: Any, now_s: float) -> Actions:
        before, began = self.peer, list[Note]()
        self.peer = before if peer is None else peer_name(peer) if self._senders else str(peer)
        if self.state == WAITING or self.peer != before:  # answers are lost with a link
            self.requests, begins = ClientRequests(self.sender), "Connected" if peer else "Sending"
            began = [Note(CONNECTIONS, f"{begins} to {self.peer}.", is_expected=True)]
        self.sender.connect(peer)
        self.reports.restart()
        self.obedience.on(LINKED)
        self._arbiter.start(now_s)
        if self._pilot:
            self._pilot.restart(now_s)
        self.since_s, self.received_s, self.is_proven = now_s, None, not reports(self.reports.robot)
        self._on("a connection, a datagram link, or silence on one")
        neutral = [] if self.sender.is_stream else self.sender.drive(None, now_s)
        return [*neutral, *self._greet(now_s), *began]

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        assert isinstance(data, bytes)
        actions = list[Action]()
        if self._senders and self.state != CLOSED:
            if refusal := self._senders.refusal(data, source, self.sender.end, now_s):
                return [Note(REFUSED, refusal, is_ongoing=True)]
            if self.state == WAITING or not same_host(source, self.sender.to):
                actions += self.connected(source, now_s)
            self.sender.to = source  # some send each datagram from a socket of its own
        end, self.is_heard = self.sender.end, True
        is_first_link = source not in further_links(self.reports.robot)
        end.receive_data(data, "" if is_first_link else source)
        while self.has_peer:
            error = ""
            try:
                packet = end.next_event()
            except RemoteProtocolError as rejected:
                packet, error, end.rejected = Packet(end.rejected), str(rejected), b""  # empty if it was no packet
            if not isinstance(packet, Packet):
                break
            actions += self._heard(packet, error, now_s, is_first_link=is_first_link)
        return sends_first(actions)

    def _heard(self, packet: Packet, error: str, now_s: float, *, is_first_link: bool) -> Actions:
        """Execute a packet. `error`: why it is rejected, or why a stream has none."""
        actions: list[Action] = []
        end, robot, answer = self.sender.end, self.reports.robot, packet.meaning
        if is_step := self._greeting.is_answer(packet.data):
            actions += self._greet(now_s, is_answered=True)
        else:
            self._greeting.hear(packet)
        if is_step or isinstance(answer, Telemetry | Answer):  # a sign of life; a step's answer need not be a report
            self.received_s = now_s
            self.reports.live()
        if error and not is_step:
            actions.append(Note(REJECTED, error, is_ongoing=True))
            self.reports.rejects = error.rstrip(".")
        elif isinstance(packet, StatePacket):
            actions += (Note(REJECTED, f"Left out: {each}.", is_ongoing=True) for each in packet.left_out)
            measured, restarted = self.reports.measured(answer, now_s, is_greeting=self.state == GREETING)
            self.obedience.reported = measured.disobeys
            actions += [*self._judge(now_s), *self.requests.reported(measured.is_flying, now_s)]
            self.is_proven = self.is_proven or self.state == CONNECTED
            actions += [*restarted, Publish(replace(packet, meaning=measured)), Note(REPORTS)]
        elif answer is None and not is_step:
            self.reports.rejects = f"decode_report() returned None for {packet.data!r:.60}"
        elif isinstance(answer, Answer):
            self.reports.has_answered |= not (is_stream(robot) and (is_step or now_s <= self.requests.mixed_until_s))
            if not (robot.answered or is_step):
                actions += self.requests.answer(answer, now_s)
        if is_first_link and robot.answered:
            actions += self.requests.match(Answer("", False, error) if error else answer, now_s)
            if not self._is_busy(now_s):
                actions += (sent := self.sender.next_packet(now_s)) or []
                self.due_s = now_s if sent is None or (not sent and self.requests.waiting) else self.due_s
        if end.has_failed:
            actions += self._ended(now_s)
        return actions

    def disconnected(self, peer: Any, sentence: str, now_s: float) -> Actions:
        return [*self._ended(now_s, is_gone=True), Note(LOST, sentence)] if self.has_peer else []

    def tick(self, now_s: float) -> Actions:
        if now_s < self.due_s:
            return []
        if self.state == CLOSED:
            return self._final(now_s)
        is_silent = reports(self.reports.robot) and self.silent_s(now_s) > self._parameters.link_timeout
        lost = [Note(LOST, self.reports.silence(self.peer, self.sender.end, self.silent_s(now_s)))] if is_silent else []
        if (lost or self.sender.command == UNSTOPPABLE) and self.sender.is_stream:
            return [*self._ended(now_s), *lost]
        if (lost or self.sender.command == UNSTOPPABLE) and self.state == CONNECTED:
            unanswered = self.requests.give_up("The robot is silent.", now_s)
            return [*unanswered, *self.connected(self.sender.to, now_s), *lost]
        unanswered = self.requests.give_up(UNANSWERED, now_s, is_all=False)
        if self.state == GREETING:
            return [*self._greet_again(now_s), *unanswered]
        self.due_s = next_due(self.due_s, 1 / self._parameters.rate, now_s)
        return [*self._command(now_s), *unanswered, *(self._pilot.notes if self._pilot else ())]

    def landing(self, now_s: float) -> Landing:
        if LAND not in (robot := self.sender.end.robot).requests and "z" not in robot.axes:
            return Landing.UNSUPPORTED
        return Landing.LANDS if self.has_peer else Landing.DISCONNECTED

    def ask(self, request: Request, now_s: float, event: str = "called", *, is_held: bool = False) -> Actions:
        """Send one of the robot's `requests`, in its turn. Its Outcome follows now or later."""
        until_s, disobeys = self.expires_at(request), self.obedience.reason
        found = {
            "no link": not self.has_peer,
            "silence": self.state != CONNECTED or (reports(self.reports.robot) and self.received_s is None),
            "stale": now_s > until_s,
            "pending": request.name in self.requests.asked,
            "landing": self.requests.is_landing(now_s),
            "unproven": self.reports.is_unproven(),
            "disobeys": bool(disobeys),
            "an answer is outstanding": self._is_busy(now_s),
            "hold": is_held,
        }
        facts = {"peer": self.peer, "disobeys": Obstacle.DISOBEYS.sentence(reason=disobeys)}
        return self.requests.on(event, request, {each for each in found if found[each]}, now_s, until_s, **facts)

    def ask_video(self, now_s: float) -> Actions:
        """Ask the robot for its video, unless answers are awaited, as it may answer this as well."""
        return self.requests.ask_video(now_s) if self.state == CONNECTED else []

    def resume(self, now_s: float) -> Actions:
        super().resume(now_s)
        self.reports.live()
        self.sender.outstanding.resume(now_s)
        return [*self._stopped(now_s), *self.sender.drive(None, now_s)] if self.state == CONNECTED else []

    def lost(self, now_s: float) -> Actions:
        return self._ended(now_s) if self.has_peer else []

    def end(self, now_s: float) -> Actions:
        unanswered = self.requests.give_up("The link to the robot was closed before its answer.", now_s)
        self.is_over = self.sender.is_stream or not self.has_peer
        ended = self.lost(now_s) if self.is_over else []
        self._on("the end")
        return [*(ended if self.is_over else self._final(now_s)), *unanswered]

    def last_words(self) -> LastWords | None:
        return self.sender.last_words() if self.since_s is not None else None

    def neutral_sent(self, now_s: float) -> Actions:
        """Record that neutral was sent, also in the description: its packet may have had a number."""
        self.sender.stops = []
        return [each for each in self.sender.drive(None, now_s) if not isinstance(each, Send)]

    def _final(self, now_s: float) -> Actions:
        self._final_left -= 1
        self.is_over = not self._final_left
        self.due_s = math.inf if self.is_over else now_s + FINAL_GAP_S
        left = self.sender.leave(now_s) if self.is_over else []
        return [*self._stopped(now_s), *self.sender.drive(None, now_s), *left]

    def _is_busy(self, now_s: float) -> bool:
        return self.state == CONNECTED and self.sender.outstanding.is_busy(now_s)

    def _stopped(self, now_s: float) -> Actions:
        """Send what ends a motion that a request began, if one was sent."""
        if self.sender.stops:
            self.obedience.started(now_s)
        return self.requests.stop(now_s, is_busy=self._is_busy(now_s))

    def _greet(self, now_s: float, *, is_answered: bool = False) -> Actions:
        """Continue the greeting, or begin it, to the next step with an answer, or to its end, which is neutral."""
        actions = list[Action]()
        self.due_s = now_s + AGAIN_S
        self.obedience.started(now_s)
        try:
            for data in self._greeting.proceed(self.sender.end.robot, now_s, is_answered=is_answered):
                # A step may have a part of the login, which no wire log keeps.
                actions += self.sender.send(Secret(data) if self.sender.end.robot.login else data, now_s)
        except ANY_ERROR as error:
            self._greeting = Greeting()
            sentence = f"The greeting has failed, and begins again: {described(error)}."
            return [*actions, *self.sender.drive(None, now_s), Note(UNENCODABLE, sentence, is_ongoing=True)]
        if not self._greeting.pending:
            actions += self.sender.drive(None, now_s)
        if self._greeting.pending or self.sender.command == UNSTOPPABLE:
            return actions
        self.reports.greeted(now_s)
        self._on("the last answer")
        self.due_s = now_s + 1 / self._parameters.rate
        return actions

    def _greet_again(self, now_s: float) -> Actions:
        """Repeat the pending step, after a landing that the limits require, or else neutral."""
        self._arbiter.start(now_s)  # a landing ends, as nothing is reported
        decision, commands, sentence = (self._pilot or self._arbiter).decide(now_s), list[Action](), ""
        was_landing, self._greeting.is_landing = self._greeting.is_landing, decision.rank is Rank.LANDING
        if self._greeting.is_landing:
            commands += self._follow(decision, now_s)
        elif was_landing or not self.sender.is_stream:
            commands += self.sender.drive(None, now_s)
        if now_s >= self._greeting.again_s and not self.obedience.waits(now_s):
            if disobeys := self._judge(now_s):
                return [*commands, *disobeys]
            reported, end = self.obedience.reported, self.sender.end
            sentence = self.reports.ungreeted(self.peer, self._greeting, reported, end, self.silent_s(now_s))
            self.requests.mix(now_s + ANSWERS_S)
            commands += self._greet(now_s)
        if self.state == GREETING:
            self.due_s = now_s + (1 / self._parameters.rate if self._greeting.is_landing else AGAIN_S)
        return [*commands, Note(UNGREETED, sentence, is_ongoing=True)] if sentence else commands

    def _command(self, now_s: float) -> Actions:
        """Send the command of now. Greet a robot that did not obey once its hold has ended."""
        decision = (self._pilot or self._arbiter).decide(now_s)
        is_sent = not self.obedience.reason or decision.rank is Rank.LANDING
        if is_sent or not self.obedience.on(ON_HOLD if decision.rank is Rank.HOLD else NO_HOLD):
            return self._follow(decision if is_sent else Decision(decision.rank), now_s)
        self._arbiter.start(now_s)
        self._on("the hold of it ends")
        self.obedience.reported = ""
        return [*self.sender.drive(None, now_s), *self._greet(now_s)]

    def _follow(self, decision: Decision[Any], now_s: float) -> Actions:
        """Send the command of a decision, and the request to land."""
        is_motion = decision.rank is not Rank.LANDING and decision.command not in (None, *NEUTRALS)
        is_held, is_stream = decision.rank is Rank.HOLD, self.sender.is_stream
        withheld = self.reports.withheld(self.peer, self._parameters, now_s, is_stream=is_stream) if is_motion else None
        command = decision.command if withheld is None else None
        self.reports.commanded(command)
        stopped = self._stopped(now_s) if is_held or decision.command is not None else []
        waiting = None if self._is_busy(now_s) else self.requests.waiting
        turn = self.ask(waiting, now_s, "its turn", is_held=is_held) if waiting else []
        land = self.requests.land(now_s, is_busy=self._is_busy(now_s)) if decision.rank is Rank.LANDING else []
        driven = self.sender.take_turn(command, now_s, is_busy=self._is_busy(now_s))
        actions = [*stopped, *turn, *driven, *land]
        return [*actions, Note(WITHHELD, withheld, is_ongoing=True)] if withheld else actions

    def _judge(self, now_s: float) -> Actions:
        """Handle the newest report of whether the robot obeys, and why not. Its motion is not sent from then on."""
        # Not during a request that moves it, such as to dock.
        if self.sender.stops or not (reason := self.obedience.judge(now_s, is_connected=self.state == CONNECTED)):
            return []
        self._on("it does not obey")
        return [*self.sender.drive(None, now_s), Note("", Obstacle.DISOBEYS.sentence(reason=reason))]

    def _ended(self, now_s: float, *, is_gone: bool = False) -> Actions:
        """End the connection, with a final neutral unless the peer has disconnected."""
        actions, stops = list[Action](), list(self.sender.stops)
        if not is_gone and (self.state == CONNECTED or self.sender.command != NEUTRAL):  # it may land while greeted
            actions += [*self._stopped(now_s), *self.sender.drive(None, now_s), *self.sender.leave(now_s)]
        actions += [Close(self.sender.to)] if self.sender.is_stream and not is_gone else []
        self._on("the link or the stream is lost")
        self.sender.stops = stops  # what was sent may be lost with the link
        self.due_s, self.received_s, self.since_s = math.inf, None, None
        return [*actions, *self.requests.give_up("The link to the robot was lost before its answer.", now_s)]
