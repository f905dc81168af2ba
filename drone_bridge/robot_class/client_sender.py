# SPDX-License-Identifier: Apache-2.0
"""ClientSender: what is sent to one robot: commands, the `stop` of a request, and last words. Pure.

A robot that is declared to answer each packet has one outstanding, for whose answer further packets of a command wait.
"""

from __future__ import annotations

import contextlib
from typing import Any

from drone_bridge.kind import Side
from drone_bridge.robot_class.connection import RobotClassConnection, packets
from drone_bridge.robot_class.outstanding import OutstandingPackets
from drone_bridge.robot_class.returned import described
from drone_bridge.robot_class.robot import (
    NEUTRALS,
    Command,
    Robot,
    encoded,
    first_link,
    framing_of,
    has_last_words,
    is_stream,
)
from drone_bridge.session.session import Action, Actions, LastWords, Note, Request, Send
from drone_bridge.wire.counters import problems, rates
from drone_bridge.wire.outgoing import UNENCODABLE

#: The newest command.
NEUTRAL, MOVING, UNSTOPPABLE = "neutral", "moving", "neutral that can't be encoded"
#: Counters.
(SENT,), (UNSENT,) = rates("sent_commands"), problems("unsent_packets")


class ClientSender:
    """Packets to one robot."""

    def __init__(self, robot: type[Robot], *, is_line: bool, login: str) -> None:
        """Start without a connection. Arguments are those of the session."""
        self.end, self.to = RobotClassConnection(robot, Side.OPERATOR, is_line=is_line), None
        self.end.robot.login = login or self.end.robot.login
        #: Whether the link is a stream that can be closed. A line stays open: opening it resets many boards.
        self.is_stream = is_stream(robot) and not is_line
        #: What ends the motion of a request, for each time at which it is due: before the next command, on hold, after
        #: a stall, at the end, and with the last words. Until then the robot counts as moving.
        self.stops: list[bytes] = []
        #: Packets that await an answer.
        self.outstanding = OutstandingPackets(is_stream=self.is_stream)
        self._words = (b"", b"") if has_last_words(robot) else None  # the newest ones of the description
        self.connect(None)

    def connect(self, to: Any) -> None:
        """Begin a connection. `to` is the peer, as the link identifies it."""
        self.end, self.to = self.end.renewed(), to
        self.command, self._words = NEUTRAL, self._words and (b"", b"")
        self.outstanding.restart()
        self._rest: list[bytes] = []  # further packets of the newest command; then b"" if the next one was skipped

    def take_turn(self, command: Command | None, now_s: float, *, is_busy: bool) -> Actions:
        """Send a command, unless an answer is outstanding (`is_busy`)."""
        is_stop = command in (None, *NEUTRALS) and self.command != NEUTRAL  # sent at once, and whole
        if is_stop or not is_busy:
            return self.drive(command, now_s, is_whole=is_stop)
        self._rest = [*filter(None, self._rest), b""]  # the command is decided anew with the answer
        return []

    def next_packet(self, now_s: float) -> Actions | None:
        """Send the next packet of the newest command, if there is one. None if a command was skipped."""
        data = self._rest.pop(0) if self._rest else None
        return None if data == b"" else self.send(data or b"", now_s)

    def drive(self, command: Command | None, now_s: float, *, is_whole: bool = True) -> Actions:
        """Send a command, or the first of its packets. Neutral replaces an unencodable one, and last words neutral."""
        faults: list[Action] = []
        for each in dict.fromkeys((command, None)):
            try:
                is_cut = self.end.robot.answered and each is command and not is_whole
                data = encoded(self.end.robot, each)
                data, *self._rest = self._split(data) if is_cut else [data]
                self.command = NEUTRAL if each in (None, *NEUTRALS) else MOVING
                return [*self.send(data, now_s, if_sent=(SENT,)), *faults]
            except Exception as error:
                sentence = f"{each or 'Neutral'} can't be encoded: {described(error)}."
                faults.append(Note(UNENCODABLE, sentence, is_ongoing=True))
        # Then a stream is closed, and others are greeted, until neutral can be encoded.
        self.command, self._rest = UNSTOPPABLE, []
        words = self._words or (b"", b"")
        with contextlib.suppress(Exception):
            words = self.end.robot.last_words()
        return [*(action for each in words for action in self.send(each, now_s)), *faults]

    def leave(self, now_s: float) -> Actions:
        """Send the last packet."""
        try:
            return self.send(self.end.robot.encode_goodbye(), now_s)
        except Exception as error:
            return [Note(UNENCODABLE, f"The last packet can't be sent: {described(error)}.")]

    def last_words(self) -> LastWords | None:
        """Return neutral and `encode_goodbye`, by the robot's description."""
        if (self.command == NEUTRAL and not self.stops) or self._words is None:
            return None
        with contextlib.suppress(Exception):  # a check of the class has found it: earlier ones are used
            self._words = self.end.robot.last_words()
        neutral, last = self._words
        return LastWords(tuple(filter(None, (*self.stops[:1], neutral))), (last,) if last else (), self.to)

    def send(self, data: bytes, now_s: float, asked: Request | None = None, **options: Any) -> Actions:
        """Send data, if there are any, perhaps of a request. Options are those of Send."""
        if data and self.end.robot.answered:
            timeout_s = self.end.robot.all_requests[asked.name].timeout_s if asked else 0.0
            self.outstanding.sent(len(self._split(data)), now_s, asked, timeout_s)
        return [Send(data, self.to, UNSENT, **options)] if data else []

    def _split(self, data: bytes) -> list[bytes]:
        """Return the packets in bytes to the robot."""
        try:
            return list(packets(framing_of(first_link(type(self.end.robot)), to_robot=True), data)) or [data]
        except Exception:
            return [data]
