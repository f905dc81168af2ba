# SPDX-License-Identifier: Apache-2.0
"""Replay of a wire log, which is the robot's end for a bridge. See docs/bags.md.

Each piece that the robot sent is sent at its time, once the client has sent as many packets as before it in the log: a
conversation that waits for an answer waits for ours. A client that falls behind is waited for PATIENCE_S, and not again
before its next packet. If it leaves, the log begins anew with the next one. That of a robot that sends datagrams first
begins anew each PATIENCE_S until the first client has answered, and with one that is late. Video, and streams beside
datagrams, are for a client that is connected. Where bytes are not in the log, as in a saved minute, the time without
them is skipped: the robot goes on with its next whole message, and packets are counted anew and no longer compared.
"""

import argparse
import contextlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from drone_bridge.kind import ProtocolKind, Side, kinds, unloadable
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError
from drone_bridge.net.datagram_link import DatagramPort
from drone_bridge.net.link_loop import Connected, Disconnected
from drone_bridge.net.serial_line import PseudoTerminal
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.net.tcp_port import TcpPort
from drone_bridge.programs.emulation import Emulation
from drone_bridge.programs.options import add_number, add_ports, known
from drone_bridge.programs.program import print_event, print_retry, run_program
from drone_bridge.tools.command_parser import CommandParser
from drone_bridge.tools.wire.decoding import (
    NOT_KEPT,
    SOUGHT,
    DecodedMessage,
    Decoder,
    Outcome,
    UndecodedBytes,
    Violation,
)
from drone_bridge.tools.wire.log_file import LogEntry, LogFile, LoggedConnection, LogSource, WireError, is_log
from drone_bridge.tools.wire.pcap_file import pcap_entries, pcap_source
from drone_bridge.wire.addresses import address_name

PATIENCE_S = 2.0
#: Silence that is left of the time of missing bytes. A message begins after it.
SKIPPED_NS = 100_000_000
BAUD = 115200
_TIMES = re.compile(r"\btime\w*=\d+")  # which always differ


def main(argv: Sequence[str]) -> int:
    """Replay a file. Return the exit status."""
    named = {kind.emulator.name if kind.emulator else kind.name: kind for kind in kinds().values()}
    parser = CommandParser(prog="drone-bridge emulate", description=__doc__)
    parser.add_argument("program", type=known(named, unloadable()), help="the kind of the robot")
    parser.add_argument("--replay", type=Path, required=True, metavar="FILE", help="a wire log, or a pcap")
    parser.add_argument("--host", default="127.0.0.1", help="to listen on, and of a client that listens (%(default)s)")
    parser.add_argument("--pty", help="path of a pseudo-terminal to create, for a client by serial line")
    add_number(parser, "--rate", 1.0, "speed, as a multiple of the recorded one")
    kind = named[parser.parse_known_args(argv)[0].program]
    add_ports(parser, {each.parameter: each.default for each in kind.ports}, "of the robot or its client")
    parser.set_defaults(duration=None)

    def run(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
        replay = Replay(*opened(options.replay, kind), options, cancellation, stack)
        with contextlib.suppress(LinkCancelledError):
            replay.run(replay.links, options, cancellation, None)
        return 0

    return run_program("emulate", run, parser.parse_args(argv))


def opened(path: Path, kind: ProtocolKind) -> tuple[LogSource, list[LogEntry]]:
    """Read a wire log, or a capture. Raises WireError and OSError."""
    if not is_log(path):
        return pcap_source(path, kind), list(pcap_entries(path, kind))
    with LogFile(path) as log:
        if log.source.kind.name != kind.name:
            raise WireError(f"{path} is of {log.source.kind.name}, not of {kind.name}.")
        return log.source, list(log.entries())


@dataclass(eq=False, slots=True)
class _ReplayedTalk:
    """One recorded stream, or all datagrams of a port, and the client of now."""

    link: Any
    connection: LoggedConnection
    decoder: Decoder
    client: tuple[str, int] | None  # that listens
    is_main: bool  # neither video nor a stream beside datagrams
    to: Any = None
    expected: list[str] = field(default_factory=list)  # packets of the recorded client
    heard: int = 0  # packets of the client of now
    excused: int = 0  # packets that are no longer waited for
    has_ended: bool = False
    differs: bool = False
    whole: int | None = None  # number of the recorded client's packets before missing ones


class Replay(Emulation):
    """Robot's end of a log."""

    step_s = 0.005

    def __init__(
        self,
        source: LogSource,
        entries: Sequence[LogEntry],
        options: argparse.Namespace,
        cancellation: Cancellation,
        stack: contextlib.ExitStack,
    ) -> None:
        """Open the robot's ports. Raises LinkError, and WireError if the robot sends nothing in the log."""
        self._source, self._options, self._cancellation, self._stack = source, options, cancellation, stack
        self._host = options.host  # of the client
        recorded, role = source.parameters, source.parameters.get("role")
        self._listens = role is None or (role == "listen") is (source.side is Side.VEHICLE)
        self._names = {str(recorded.get(each.parameter, each.default)): each.parameter for each in source.kind.ports}
        of_robot = {each.parameter for each in source.kind.ports if each.side is Side.VEHICLE and self._listens}
        self._robots_ports = {number for number, name in self._names.items() if name in of_robot}
        self._asked = {each.connection.number for each in entries if each.sender is Side.OPERATOR}
        self._links: dict[Any, Any] = {}
        self._talks: dict[Any, _ReplayedTalk] = {}
        entries, skipped_s = _without_gaps(entries)
        self._plan = self._planned(entries)
        if not any(entry.sender is Side.VEHICLE for entry, *_ in self._plan):
            raise WireError(f"The robot has sent nothing in {options.replay}.")
        lost = {side: sum(each.omitted for each in entries if each.sender is side and each.is_gap) for side in Side}
        if any(lost.values()):
            print_event(
                f"{lost[Side.VEHICLE]} bytes of the robot and {lost[Side.OPERATOR]} of its client are not in the log: "
                f"their messages, and {skipped_s:.0f} s with nothing else, are left out."
            )
        asked_s = (each.time_ns / 1e9 for each in entries if each.sender is Side.OPERATOR)
        #: Time from the robot's first data to the recorded client's, s.
        self._asked_s = (next(asked_s, math.inf) - self._plan[0][0].time_ns / 1e9) / options.rate
        #: Links of the robot's end.
        self.links = list(self._links.values())
        for link in self.links:
            link.open()
        self._begin()

    @property
    def time_s(self) -> float:
        return 0.0

    def _begin(self) -> None:
        """Begin with the first entry."""
        self._next, self._began_s, self._patience_s = 0, elapsed_s(), PATIENCE_S
        for talk in self._talks.values():
            if talk.connection.is_stream and talk.to and not talk.has_ended:
                talk.link.disconnect(talk.to)
            talk.to, talk.heard, talk.excused, talk.has_ended = talk.client, 0, 0, False
            talk.decoder = Decoder(self._source, talk.connection)

    # The log.

    def _planned(self, entries: Sequence[LogEntry]) -> list[tuple[LogEntry, _ReplayedTalk, int]]:
        """Return what the robot sends, with its conversation and the number of the client's packets before it.

        And the gaps of both.
        """
        plan = list[tuple[LogEntry, _ReplayedTalk, int]]()
        for entry in entries:
            talk = self._talk_of(entry.connection)
            if entry.is_gap and talk.connection.is_stream:
                _cut(plan, talk, talk.decoder.pending(Side.VEHICLE))
            outcomes = list(talk.decoder.feed(entry))
            packets = sum(len(each.expected) for each in self._joined(talk))
            if entry.is_gap and talk.is_main:
                talk.whole = len(talk.expected) if talk.whole is None else talk.whole
                plan.append((entry, talk, packets))
            elif entry.sender is Side.OPERATOR:
                talk.expected += map(_text, outcomes)
            elif talk.is_main and not any(map(partial(_is_lost, talk), outcomes)):
                plan.append((entry, talk, packets))
            elif not talk.is_main and (entry.connection.is_stream or not entry.omitted):
                plan.append((entry._replace(omitted=0, is_gap=False), talk, 0))  # lost bytes end a stream
        return plan

    def _ends(self, connection: LoggedConnection) -> tuple[Any, Any]:
        """Return transport and port of the vehicle, and those of the operator."""
        ends = [(connection.transport, each.rpartition(":")[2]) for each in (connection.peer, connection.own)]
        return (ends[0], ends[1]) if self._source.side is Side.OPERATOR else (ends[1], ends[0])

    def _talk_of(self, connection: LoggedConnection) -> _ReplayedTalk:
        """Return the conversation of a connection, and open its link. Raises LinkError."""
        vehicle, operator = self._ends(connection)
        is_stream, host = connection.is_stream, self._options.host
        is_main = connection.is_conversation and is_stream is self._source.kind.is_stream
        is_asked = self._listens if is_stream else connection.number in self._asked
        place = vehicle if is_asked else operator
        if place not in self._links:
            if is_stream and self._options.pty:
                link: Any = PseudoTerminal(self._options.pty, BAUD)
            elif is_stream and is_asked:
                link = TcpPort(host, self._number(vehicle[1] if connection.transport != "serial" else "", "port"))
            elif is_stream:
                link = TcpPeer(host, self._number(operator[1]), print_retry, cancellation=self._cancellation)
            else:
                link = DatagramPort(host, self._number(vehicle[1]) if is_asked and vehicle[1] in self._names else 0)
            self._links[place] = link
            self._stack.callback(link.close)
            print_event(f"listening on {self._options.pty or address_name(host, link.port)}")
        key = connection.number if is_stream and is_main else place
        if key not in self._talks:
            is_robots = is_asked and operator[1] in self._robots_ports  # that the client used as well
            client = None if is_stream or is_robots else (host, self._number(operator[1]))
            decoder = Decoder(self._source, connection)
            self._talks[key] = _ReplayedTalk(self._links[place], connection, decoder, client, is_main)
        return self._talks[key]

    def _joined(self, talk: _ReplayedTalk) -> list[_ReplayedTalk]:
        """Return the conversations whose packets are counted together: a stream, or all datagrams."""
        return [talk] if talk.connection.is_stream else [each for each in self._talks.values() if each.is_main]

    def _number(self, recorded: str, name: str = "") -> int:
        """Return the port of now for a recorded one: that of an option, by its parameter."""
        return int(getattr(self._options, self._names.get(recorded, name), recorded))

    # The client of now.

    def step(self, now_s: float) -> None:
        """Send what is due."""
        while self._next < len(self._plan):
            entry, talk, packets = self._plan[self._next]
            since_s = (entry.time_ns - self._plan[0][0].time_ns) / 1e9 / self._options.rate
            heard = sum(each.heard for each in self._joined(talk))
            lacks = packets - heard - sum(each.excused for each in self._joined(talk))
            if not talk.has_ended:
                if now_s < self._began_s + since_s or (talk.to is None and talk.is_main):
                    return
                if entry.is_gap:  # nobody knows how many packets are missing
                    talk.excused += max(0, lacks)
                    lacks = 0
                if lacks > 0 and not heard:
                    is_early = now_s > self._began_s + since_s + PATIENCE_S  # the robot's first datagrams are lost
                    if is_early and talk.client:
                        self._begin()
                    return
                if lacks > 0 and now_s < self._began_s + since_s + self._patience_s:
                    return
                if lacks > 0:
                    if self._patience_s:
                        print_event(f"The client has sent {heard} packets, in the log {packets}: it is not waited for.")
                    talk.excused, self._patience_s = talk.excused + lacks, 0.0
                self._send(entry, talk)
            self._began_s, self._next = max(self._began_s, now_s - since_s), self._next + 1
            if self._next == len(self._plan):
                print_event("The log ends here: silent from now on.")

    def _send(self, entry: LogEntry, talk: _ReplayedTalk) -> None:
        for _ in talk.decoder.feed(entry):
            pass
        if entry.is_gap:
            return
        data, to = entry.data or bytes(entry.omitted), talk.to
        if talk.client and to is talk.client:
            to = self._host, to[1]
        if data or not talk.connection.is_stream:
            with contextlib.suppress(LinkError):
                talk.link.send(data, to)
        elif talk.to:
            talk.link.disconnect(talk.to)
            self._end(talk)

    def _end(self, talk: _ReplayedTalk) -> None:
        talk.has_ended, talk.to = talk.is_main, talk.to if talk.is_main else None

    def receive(self, link: Any, event: Any, now_s: float) -> None:
        """See Emulation."""
        talks = [each for each in self._talks.values() if each.link is link]
        if isinstance(event, Connected):
            if self._next == len(self._plan) and talks[0].is_main:
                self._begin()
            free = [each for each in talks if each.to is None]
            if free:
                free[0].to = event.source
            else:
                link.disconnect(event.source)
            return
        talk = next((each for each in talks if each.to == event.source or not each.connection.is_stream), None)
        if talk and isinstance(event, Disconnected):
            self._end(talk)
            if talk is talks[-1] and talk.is_main:
                self._begin()
        elif talk:
            is_first = not any(each.heard for each in self._talks.values())
            if is_first and talk.client and now_s > self._began_s + self._asked_s + PATIENCE_S:
                self._begin()  # before it, the robot has told all this to nobody
            talk.to, self._host = event.source, self._host if talk.connection.is_stream else event.source[0]
            for outcome in talk.decoder.feed(LogEntry(int(now_s * 1e9), talk.connection, Side.OPERATOR, event.data)):
                self._compare(talk, _text(outcome))

    def _compare(self, talk: _ReplayedTalk, text: str) -> None:
        """Count a packet of the client, and report the first that differs from the recorded one."""
        recorded = next(iter(talk.expected[: talk.whole][talk.heard :]), "")
        talk.heard, self._patience_s = talk.heard + 1, PATIENCE_S
        if recorded and _TIMES.sub("", text) != _TIMES.sub("", recorded) and not talk.differs:
            talk.differs = True
            print_event(f"Packet {talk.heard} of the client differs: {text}; in the log: {recorded}")


def _text(outcome: Outcome) -> str:
    """Return a packet of the client as text; empty for one that was not kept."""
    if isinstance(outcome, UndecodedBytes):
        return "" if outcome.reason == NOT_KEPT else f"{outcome.size} bytes {outcome.reason}"
    return outcome.text if isinstance(outcome, DecodedMessage) else outcome.sentence


def _is_lost(talk: _ReplayedTalk, outcome: Outcome) -> bool:
    """Return whether an entry with this outcome is no part of a whole message."""
    if isinstance(outcome, UndecodedBytes):
        return outcome.reason in (NOT_KEPT, SOUGHT)
    return isinstance(outcome, Violation) and talk.whole is not None  # what was taken for the begin of a message


def _without_gaps(entries: Sequence[LogEntry]) -> tuple[list[LogEntry], float]:
    """Return entries without the silence that follows missing bytes, and how long that was, s."""
    skipped_ns, last, kept = 0, entries[0] if entries else None, list[LogEntry]()
    for entry in entries:
        if last and last.is_gap:
            skipped_ns += max(0, entry.time_ns - last.time_ns - SKIPPED_NS)
        kept.append(entry._replace(time_ns=entry.time_ns - skipped_ns))
        last = entry
    return kept, skipped_ns / 1e9


def _cut(plan: list[tuple[LogEntry, _ReplayedTalk, int]], talk: _ReplayedTalk, size: int) -> None:
    """Remove the last bytes that the robot sends in a conversation."""
    for number in reversed(range(len(plan))):
        entry, each, packets = plan[number]
        if each is talk and size > 0:
            data = entry.data or bytes(entry.omitted)
            left = data[: max(0, len(data) - size)]
            plan[number : number + 1] = [(entry._replace(data=left, omitted=0), talk, packets)] if left else []
            size -= len(data)
