# SPDX-License-Identifier: Apache-2.0
"""RobotClassVehicleSession: session of a Robot's end with its client. Pure.

There is a place for one client. Over TCP, another one is refused, unless the first has been silent for
`silence_warning`. Over datagrams, any sender is the client. A velocity is published at once, and repeated for
`command_timeout`. After that, or when its client disconnects, neutral is published. A robot that never stops by itself
keeps a velocity while its client sends anything. A request is called as a service, and its answer is sent to the client
that requested it. A Move is executed by the odometry of telemetry. It is answered when it ends, or another command, a
request that moves the robot, or a stall ends it. Another Move is refused meanwhile, or takes its place. A Refusal is
counted and logged. Telemetry is sent at the robot's `report_rate` once the description provides
it, over datagrams until its client has been silent for `silence_warning`: the sender may be forged.

The emulator uses it, too. A simulated robot does not detect that a connection has ended: with `is_body`, only the
timeout, its watchdog, ends a command, and telemetry does not end. An error of its class is a note of CLASS_ERRORS, with
which the emulator ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from drone_bridge.kind import Side
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.robot_class import Answer, Move, Refusal, Request, Robot, Telemetry
from drone_bridge.robot_class.connection import RobotClassConnection
from drone_bridge.robot_class.returned import WrongResultError, described
from drone_bridge.robot_class.robot import NEUTRALS, Command, clamped, is_stream
from drone_bridge.robot_class.vehicle.moves import MoveInProgress
from drone_bridge.session import session
from drone_bridge.session.clients import REFUSED, Client, Clients, client_name
from drone_bridge.session.node_parameters import NodeParameters
from drone_bridge.session.operator_command import OPERATORS_LOST, OperatorCommand
from drone_bridge.session.session import (
    AFTER_STALLS,
    CONNECTIONS,
    REJECTED,
    Action,
    Actions,
    Call,
    Close,
    Note,
    Send,
    Session,
    next_due,
)
from drone_bridge.wire import NEED_DATA, ConnectionClosed, RemoteProtocolError
from drone_bridge.wire.addresses import AllowedPeers
from drone_bridge.wire.counters import Counter, ProblemCounter, RateCounter
from drone_bridge.wire.outgoing import UNENCODABLE

REPEAT_RATE = 20.0
WAITING, SERVING, CLOSED = "waiting for a peer", "serving", "closed"
OTHER_COMMAND = "another command came"
REPORTS, CLASS_ERRORS = RateCounter("reports"), Counter("class_errors")
#: Counter of commands that the robot's end does not execute.
UNSUPPORTED = ProblemCounter("unsupported_commands")


class RobotClassVehicleSession(Session):
    """Session of a robot with its client."""

    def __init__(
        self,
        robot: type[Robot],
        parameters: NodeParameters,
        telemetry: Callable[[], Telemetry | None],
        *,
        report_port: int = 0,
        allowed_peers: AllowedPeers | None = None,
        is_body: bool = False,
        is_line: bool = False,
    ) -> None:
        """Start without a client.

        Args:
            robot: the description.
            parameters: those of the node, which may change at any time.
            telemetry: returns the telemetry to report now, or None.
            report_port: of the client, for telemetry as datagrams; 0: by the link of its commands.
            allowed_peers: hosts whose datagrams are accepted; default: all.
            is_body: whether this is a simulated robot instead of a server.
            is_line: whether the link is a serial line, on which rejected packets are skipped.
        """
        self.state = WAITING
        #: Host of the client, if it has asked for the video of the robot's camera; else empty.
        self.viewer = ""
        #: Whether there is video for a viewer.
        self.has_video = False
        self._robot, self._telemetry, self._report_port = robot, telemetry, report_port
        self._parameters = parameters
        self._allowed, self._is_body = allowed_peers, is_body
        self._is_stream, self._is_line = is_stream(robot) and not is_line, is_line
        self._clients: Clients[RobotClassConnection] = Clients(1, keeps_place_s=lambda: parameters.silence_warning)
        self._command = OperatorCommand(
            NEUTRALS[robot.drone is not None], lambda: parameters.command_timeout, REPEAT_RATE
        )
        self._tell_s = -math.inf
        self._move: MoveInProgress | None = None
        self._board: Robot | None = None  # of the last client

    def connected(self, peer: Any, now_s: float) -> Actions:
        refusal, loser, reason = self._clients.admit(peer, now_s)
        if refusal:
            return refusal if self._is_stream else [each for each in refusal if isinstance(each, Note)]
        left = [] if loser is None else self._left(loser, f"{client_name(loser)} {reason}.")
        end = RobotClassConnection(self._robot, Side.VEHICLE, is_line=self._is_line)
        for name in self._board.keeps if self._board else ():  # its counters go on
            setattr(end.robot, name, getattr(self._board, name))
        self._board = end.robot
        self._clients.add(peer, end, now_s)
        self.state, self.peer, self.is_open = SERVING, client_name(peer), True
        self.since_s, self._tell_s = now_s, now_s
        self._set_due()
        return [*left, Note(CONNECTIONS, f"Serving {self.peer}.", is_expected=True)]

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        assert isinstance(data, bytes)
        actions: list[Action] = []
        if source not in self._clients and not self._is_stream:
            if self._allowed and not self._allowed.allows(source[0]):
                return [Note(REFUSED, f"Refused a datagram of {client_name(source)}, which is not in allowed_peers.")]
            actions += self.connected(source, now_s)
        if source not in self._clients:
            return actions
        client, has_sent_message = self._clients[source], False
        skipped = client.handler.skipped[0]
        unread = [data]
        while True:
            try:
                while unread:
                    client.handler.receive_data(unread.pop())
                while (packet := client.handler.next_event()) is not NEED_DATA:
                    assert not isinstance(packet, ConnectionClosed)
                    has_sent_message = True
                    is_refused = self._see(packet.data, source)
                    for meaning in () if is_refused else packet.meaning:
                        actions += self._execute(meaning, source, now_s)
                    if is_refused:
                        actions += self.answered((source, ""), False, "there is no video", now_s)
                break
            except Exception as error:  # of the description, if not of the client
                is_of_client = isinstance(error, RemoteProtocolError) and not isinstance(error, WrongResultError)
                if self._is_body and not is_of_client:
                    return [*actions, Note(CLASS_ERRORS, f"{described(error)}.")]
                of_client = str(error) if is_of_client else f"{described(error)}."
                actions.append(Note(REJECTED, of_client))
                if self._is_stream:
                    return [*actions, *self._left(source)]  # neutral after the commands before the error
        actions += self._noise(client.handler, skipped, source)
        if has_sent_message:
            self.received_s = now_s
        inside = client.handler.inside_message
        self._clients.data_received(client, now_s, is_inside_message=inside, has_sent_message=has_sent_message)
        self._set_due()
        return actions

    def _noise(self, end: RobotClassConnection, before: int, source: Any) -> Actions:
        """Report bytes of a client that are no packet, unless there are no more than before."""
        number, first, reason = end.skipped
        sentence = f"{number} bytes of {client_name(source)} are no packet: {first.hex(' ')} ...: {reason}."
        return [Note(REJECTED, sentence, is_ongoing=True)] if number > before else []

    def answered(self, tag: Any, is_success: bool, reason: str, now_s: float) -> Actions:
        """Send the outcome of a request that was called with this tag, to its client."""
        peer, name = tag
        if peer not in self._clients:
            return []
        connection = self._clients[peer].handler
        return self._packed(partial(connection.robot.encode_answer, Answer(name, is_success, reason)), peer)

    def disconnected(self, peer: Any, sentence: str, now_s: float) -> Actions:
        return self._left(peer, sentence, is_gone=True) if peer in self._clients else []

    def tick(self, now_s: float) -> Actions:
        actions = [*self._continue(now_s), *self._command.tick(self.peer, now_s)]
        for client, failing in self._clients.overdue(now_s) if self._is_stream else ():
            actions += self._left(client.peer, f"{client_name(client.peer)} {failing}.")
        if now_s >= self._tell_s:
            self._tell_s = next_due(self._tell_s, 1 / self._robot.report_rate, now_s)
            for client in self._clients.all():
                if self._is_awaited(client, now_s) and (telemetry := self._telemetry()):
                    to = _beside(client.peer, self._report_port) if self._report_port else client.peer
                    actions += self._packed(partial(client.handler.robot.encode_report, telemetry), to, (REPORTS,))
        self._set_due()
        return actions

    def silent_s(self, now_s: float) -> float:
        return 0.0 if self._move and not self._move.is_setpoint else super().silent_s(now_s)

    def resume(self, now_s: float) -> Actions:
        super().resume(now_s)
        self._clients.resume(now_s)
        return [*self._move_ended("the process was stalled", now_s), *self._command.resume(self.peer, now_s)]

    def lost(self, now_s: float) -> Actions:
        return [*self._move_ended("the link was lost", now_s), *self._command.end()]

    def end(self, now_s: float) -> Actions:
        actions = list(self._command.end())
        for client in self._clients.all():
            actions += self._left(client.peer)
        self.state, self.is_over = CLOSED, True
        return actions

    def _execute(self, meaning: Any, source: Any, now_s: float) -> Actions:
        if isinstance(meaning, Move):
            return self._begin(meaning, source, now_s)
        if isinstance(meaning, Request):
            if now_s < self.settled_s and meaning.name not in self._robot.always_accepted:
                refused = self.answered((source, meaning.name), False, session.MAY_HAVE_WAITED, now_s)
                return [Note(AFTER_STALLS, session.MAY_HAVE_WAITED), *refused]
            ended = self._move_ended(OTHER_COMMAND, now_s) if meaning.moves else []
            return [*ended, Call(meaning.name, (source, meaning.name))]
        if isinstance(meaning, Command):
            if now_s < self.settled_s and meaning not in NEUTRALS:
                return [Note(AFTER_STALLS)]
            command = clamped(self._robot, meaning) if isinstance(meaning, BodyVelocity) else meaning
            return [*self._move_ended(OTHER_COMMAND, now_s), *self._command.command(command, now_s)]
        if self._robot.robot_stops_after_s is None or self._robot.any_packet_counts:  # its client is there
            self._command.keep(now_s)
        answer = [Send(meaning, source)] if isinstance(meaning, bytes) and meaning else []
        return self._refused(meaning, source) if isinstance(meaning, Refusal) else answer

    def _begin(self, move: Move, source: Any, now_s: float) -> Actions:
        if (self._move and not move.is_setpoint) or now_s < self.settled_s:
            reason = "it is moving" if self._move else session.MAY_HAVE_WAITED
            return self._move_answered(source, reason, now_s)
        self._move = MoveInProgress(self._robot, move, source, now_s)
        return self._continue(now_s)

    def _continue(self, now_s: float) -> Actions:
        """Command the velocity of the Move in progress, if any. Answer its end."""
        if not self._move:
            return []
        move, silent_s = self._move, self.silent_s(now_s)
        velocity = move.velocity(self._telemetry(), now_s, is_body=self._is_body)
        is_late = move.is_setpoint and silent_s > self._parameters.command_timeout
        reason = move.failure
        if is_late and not move.is_done:
            reason = reason or f"it was silent for {silent_s:.1f} s (command_timeout)"
        is_over = is_late or reason or (move.is_done and not move.holds)
        return self._move_ended(reason, now_s) if is_over else self._command.command(velocity, now_s)

    def _move_ended(self, reason: str, now_s: float) -> Actions:
        """End the Move in progress, if any, and answer it."""
        move, self._move = self._move, None
        if move:  # its client has waited for that
            self.received_s = now_s
        return [*self._command.end(), *self._move_answered(move.client, reason, now_s)] if move else []

    def _move_answered(self, client: Any, reason: str, now_s: float) -> Actions:
        """Answer the end of a Move. A failure that its robot does not report is logged."""
        answer = self.answered((client, ""), not reason, reason, now_s)
        is_silent = not answer and reason not in ("", OTHER_COMMAND)
        return [Note(OPERATORS_LOST, f"A move of {client_name(client)} has ended: {reason}.")] if is_silent else answer

    def _refused(self, refusal: Refusal, source: Any) -> Actions:
        """Answer a command that is not executed, and count it."""
        sentence = f"{client_name(source)} commanded {refusal.command}, which is not executed: {refusal.reason}."
        answer = [Send(refusal.answer, source)] if refusal.answer else []
        return [*answer, Note(UNSUPPORTED, sentence)]

    def _see(self, data: bytes, source: Any) -> bool:
        """Notice the packets that begin and end the video of the camera. Return whether none can begin."""
        camera = self._robot.camera
        if camera and camera.link and data in (camera.ask, camera.off):
            self.viewer = source[0] if data == camera.ask else ""
            return data == camera.ask and not self.has_video
        return False

    def _is_awaited(self, client: Client[RobotClassConnection], now_s: float) -> bool:
        """Return whether a client may still be waiting for telemetry."""
        is_silent = now_s - client.received_s >= self._parameters.silence_warning
        return self._is_stream or self._is_body or not is_silent

    def _packed(self, pack: Callable[[], bytes | None], to: Any, counters: tuple[str, ...] = ()) -> Actions:
        """Send the bytes that a description encodes, if any."""
        try:
            data = pack()
        except Exception as error:
            if self._is_body:
                return [Note(CLASS_ERRORS, f"{described(error)}.")]
            return [Note(UNENCODABLE, f"A packet can't be encoded: {described(error)}.", is_ongoing=True)]
        return [Send(data, to, if_sent=counters)] if data else []

    def _left(self, peer: Any, sentence: str = "", *, is_gone: bool = False) -> Actions:
        """End the connection with a client, after a final neutral."""
        self._clients.remove(peer)
        self.state, self.is_open, self.received_s, self.since_s = WAITING, False, None, None
        ended = [] if self._is_body and not self._move else self._command.end()
        self._move = None
        self._set_due()
        close = [Close(peer)] if self._is_stream and not is_gone else []
        return [*ended, *close, *([Note("", sentence, is_expected=True)] if sentence else [])]

    def _set_due(self) -> None:
        tell_s = self._tell_s if self._clients else math.inf
        self.due_s = min(self._command.due_s, self._clients.due_s if self._is_stream else math.inf, tell_s)


def _beside(peer: Any, port: int) -> Any:
    """Return the socket address of a port of a client: beside its own socket address, or that of its stream."""
    if isinstance(peer, tuple):
        return (peer[0], port, *peer[2:])
    return (str(peer).rpartition(":")[0].strip("[]"), port)
