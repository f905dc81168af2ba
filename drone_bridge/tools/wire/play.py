# SPDX-License-Identifier: Apache-2.0
"""drone-bridge wire play: play one side of a recorded conversation, and report differing answers."""

import argparse
import contextlib
import socket
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path

from drone_bridge.kind import Side
from drone_bridge.net.connector import address_name
from drone_bridge.programs.options import port, positive
from drone_bridge.tools.wire.conversation import Connection, Entry, WireError
from drone_bridge.tools.wire.decoding import Decoder, Message, Violation
from drone_bridge.tools.wire.describing import differences
from drone_bridge.tools.wire.sources import add_pcap_options, only_section, pcap_options
from drone_bridge.wire import ConnectionClosed

_NANOSECONDS = 1e9
SAME, DIFFERENT = 0, 1  # exit status


@dataclass(frozen=True, slots=True)
class Turn:
    """What our side sent in one go."""

    due_s: float  # since the first of them
    data: bytes | memoryview
    answers_before: int  # messages of the other side that had come by then


@dataclass(frozen=True, slots=True)
class Script:
    """A conversation, as seen from one side."""

    connection: Connection
    side: Side
    turns: tuple[Turn, ...]
    answers: tuple[Message, ...]  # of the other side
    lacks_pixels: bool  # of images, which were not logged


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command."""
    parser = commands.add_parser("play", help="play one side of a recorded conversation", description=__doc__)
    parser.add_argument("file", type=Path, help="a file of a wire log, or a capture of tcpdump")
    parser.add_argument(
        "--as", dest="role", required=True, metavar="ROLE", help="testbed, autopilot, robot, driver, ..."
    )
    parser.add_argument("--host", default="127.0.0.1", help="where the other side is, or with --listen our address")
    parser.add_argument("--at", type=port, required=True, metavar="PORT", help="its port, or with --listen ours")
    parser.add_argument("--listen", action="store_true", help="wait for the other side instead of connecting to it")
    parser.add_argument(
        "--fast", action="store_true", help="as fast as answers come, where it otherwise keeps the recorded times"
    )
    parser.add_argument(
        "--patience", type=positive, default=2.0, metavar="S", help="for how long to wait for an answer (default: 2 s)"
    )
    parser.add_argument("--peer", default="", help="which peer to play, where a UDP port has several")
    parser.add_argument(
        "--ignore", default="", metavar="NAMES", help="don't compare these messages, or fields: KeepAlive,EntityData.id"
    )
    add_pcap_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Play, and print the differences; return the exit status. Raises WireError."""
    section = only_section(options.file, pcap_options(options))
    if not section.has_beginning:
        raise WireError(f"{options.file} continues files that no longer exist, and can't be played without them.")
    script = read_script(section.connection, section.entries, options.role, options.peer)
    if script.lacks_pixels:
        print("The log is without pixels: zeros are sent in their place, and those that come are not compared.")
    with contextlib.closing(
        Peer(section.connection.transport, options.host, options.at, is_listening=options.listen, say=print)
    ) as peer:
        replay = Replay(script, peer, None if options.fast else 1.0, options.patience)
        replay.play()
    ignored = {name.strip() for name in options.ignore.split(",") if name.strip()}
    found = [*replay.problems, *compare(script.answers, replay.answers, ignored)]
    for sentence in found:
        print(sentence)
    them = section.connection.role(script.side.other)
    print(
        f"Sent {replay.sent} of {len(script.turns)} pieces; the {them} sent {len(replay.answers)} messages, "
        f"{len(script.answers)} were recorded: {'different' if found else 'the same'}."
    )
    return DIFFERENT if found else SAME


def read_script(connection: Connection, entries: Iterable[Entry], role: str, peer: str = "") -> Script:
    """Return the script of one side. Raises WireError."""
    side = connection.side_of(role)
    whole = _without_gaps(list(entries)) if connection.is_stream else _of_one_peer(list(entries), peer)
    decoder = Decoder(connection)
    turns: list[Turn] = []
    answers: list[Message] = []
    start_ns = None
    for entry in whole:
        if entry.sender is side and (entry.data or not connection.is_stream):
            start_ns = entry.time_ns if start_ns is None else start_ns
            turns.append(Turn((entry.time_ns - start_ns) / _NANOSECONDS, entry.data, len(answers)))
        answers += _messages(decoder, entry, side.other)
    if not turns and not answers:
        raise WireError("There is nothing in the log.")
    if found := decoder.found_parameters:  # else only the answer to a message would show where that has ended
        return read_script(replace(connection, parameters={**connection.parameters, **found}), whole, role, peer)
    lacks_pixels = any(entry.is_left_out for entry in whole)
    return Script(connection, side, tuple(turns), tuple(answers), lacks_pixels)


def _without_gaps(entries: list[Entry]) -> list[Entry]:
    for entry in entries:
        if entry.sender is None:
            raise WireError(f"The log has a gap, and can't be played: {entry.note}")
    return entries


def _of_one_peer(entries: list[Entry], peer: str) -> list[Entry]:
    """Return what went to and came from a peer of a UDP port, without a name the one that there is most of."""
    peers = [entry.peer for entry in entries if entry.sender]
    if peer and peer not in peers:
        raise WireError(
            f"The log has no peer {peer!r}; it has: {', '.join(sorted(filter(None, set(peers)))) or 'none'}."
        )
    chosen = peer or max(set(peers), key=peers.count, default="")
    return [entry for entry in entries if entry.peer == chosen]


def _messages(decoder: Decoder, entry: Entry, sender: Side, problems: list[str] | None = None) -> list[Message]:
    found = []
    for outcome in decoder.feed(entry):
        if isinstance(outcome, Message):
            if outcome.sender is sender and not isinstance(outcome.event, ConnectionClosed):
                found.append(outcome)
        elif isinstance(outcome, Violation) and outcome.sender is sender and problems is not None:
            problems.append(f"It breaks the protocol: {outcome.sentence}")
    return found


CONNECT_TIMEOUT_S = 5.0
SEND_TIMEOUT_S = 10.0
_LEAVE_TIMEOUT_S = 0.3  # for the peer to read what was sent last
_RECEIVE_BYTES = 1 << 16


class Peer:
    """The other end of a TCP connection, or the one that UDP datagrams go to and come from."""

    def __init__(
        self, transport: str, host: str, port: int, *, is_listening: bool, say: Callable[[str], object]
    ) -> None:
        """Connect, or wait for whoever connects or sends first. Raises WireError."""
        self._is_tcp = transport == "tcp"
        where = address_name(host, port)
        try:
            kind = socket.SOCK_STREAM if self._is_tcp else socket.SOCK_DGRAM
            family, *_, address = socket.getaddrinfo(host, port, type=kind)[0]
            self._socket = socket.socket(family, kind)
            if is_listening:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self._socket.bind(address)
                self._listen(say)
            else:
                self._socket.settimeout(CONNECT_TIMEOUT_S)
                self._socket.connect(address)
            if self._is_tcp:
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            problem = "can't be listened on" if is_listening else "can't be reached"
            raise WireError(f"{where} {problem}: {error.strerror or error}.") from error

    def _listen(self, say: Callable[[str], object]) -> None:
        opened = self._socket
        if self._is_tcp:
            opened.listen(1)
        say(f"Waiting on {address_name(*opened.getsockname()[:2])}.")
        if self._is_tcp:
            self._socket, _ = opened.accept()
            opened.close()
        else:
            _, caller = opened.recvfrom(0, socket.MSG_PEEK)
            opened.connect(caller)

    def send(self, data: bytes | memoryview) -> None:
        """Send a piece or a datagram. Raises WireError after SEND_TIMEOUT_S, and OSError."""
        self._socket.settimeout(SEND_TIMEOUT_S)
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise WireError(f"The other side has taken nothing for {SEND_TIMEOUT_S:g} s.") from None
        except ConnectionRefusedError:  # reported for an earlier datagram
            if self._is_tcp:
                raise

    def receive(self, timeout_s: float) -> bytes:
        """Return what comes next; nothing at all is the end of a stream. Raises TimeoutError, and OSError."""
        until_s = time.monotonic() + timeout_s
        while (left_s := until_s - time.monotonic()) > 0:
            self._socket.settimeout(left_s)
            with contextlib.suppress(ConnectionRefusedError):  # nobody has that UDP port: somebody may have it yet
                return self._socket.recv(_RECEIVE_BYTES)
        raise TimeoutError

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            self._socket.settimeout(_LEAVE_TIMEOUT_S)
            while self._is_tcp and self._socket.recv(_RECEIVE_BYTES):
                pass
        self._socket.close()


class Replay:
    """One replay of a script."""

    def __init__(self, script: Script, peer: Peer, rate: float | None, patience_s: float) -> None:
        """`rate`: of the recorded times; None to wait for nothing but answers."""
        self.sent = 0
        self.answers: list[Message] = []
        self.problems: list[str] = []
        self._script = script
        self._peer = peer
        self._rate = rate
        self._patience_s = patience_s
        self._decoder = Decoder(script.connection)
        self._has_ended = False  # the other side
        self._is_late = False  # and said so

    def play(self) -> None:
        """Send our side, and receive until as many messages have come as in the recording."""
        start_s = time.monotonic()
        try:
            for turn in self._script.turns:
                if self._rate is not None:
                    self._receive(until_s=start_s + turn.due_s / self._rate)
                self._await(turn.answers_before)
                self._feed(self._script.side, turn.data)
                self._peer.send(turn.data)
                self.sent += 1
            self._await(len(self._script.answers))
        except OSError as error:
            self.problems.append(f"After {self.sent} of {len(self._script.turns)} pieces: {error.strerror}.")

    def _await(self, answers: int) -> None:
        """Wait until the other side has sent as many messages as in the recording, or is silent for too long."""
        while len(self.answers) < answers and not self._has_ended:
            count = len(self.answers)
            if not self._receive(until_s=time.monotonic() + self._patience_s, is_once=True):
                if not self._is_late:
                    self._is_late = True
                    self.problems.append(
                        f"No answer for {self._patience_s:g} s after piece {self.sent}: {answers} messages were "
                        f"recorded by then, and {count} have come."
                    )
                return

    def _receive(self, until_s: float, *, is_once: bool = False) -> bool:
        """Receive until then, or only the next piece; return whether anything came."""
        came = False
        while not self._has_ended and (left_s := until_s - time.monotonic()) > 0 and not (came and is_once):
            try:
                data = self._peer.receive(left_s)
            except TimeoutError:
                break
            came = True
            self._has_ended = not data and self._script.connection.is_stream
            self._feed(self._script.side.other, data)
        if self._has_ended and not is_once:
            time.sleep(max(0.0, until_s - time.monotonic()))
        return came

    def _feed(self, sender: Side, data: bytes | memoryview) -> None:
        entry = Entry(time.time_ns(), sender, "", data)
        self.answers += _messages(self._decoder, entry, self._script.side.other, self.problems)


def compare(then: Sequence[Message], now: Sequence[Message], ignored: Collection[str] = ()) -> Iterator[str]:
    """Yield a sentence for each message that is missing, new or different.

    `ignored` has names of messages, and of their fields as in EntityData.id.
    """
    before = [message for message in then if message.name not in ignored]
    after = [message for message in now if message.name not in ignored]
    matcher = SequenceMatcher(None, [one.name for one in before], [one.name for one in after], autojunk=False)
    for tag, first, last, now_first, now_last in matcher.get_opcodes():
        if tag == "equal":
            for index, (one, other) in enumerate(
                zip(before[first:last], after[now_first:now_last], strict=True), first
            ):
                changed = [
                    change
                    for change in differences(one.meaning, other.meaning)
                    if f"{one.name}.{change.partition(' ')[0]}" not in ignored
                ]
                if changed:
                    yield f"Message {index + 1}, {one.name}: then {', then '.join(changed)}."
            continue
        for index, one in enumerate(before[first:last], first):
            yield f"Message {index + 1} is missing: {one.text}"
        for other in after[now_first:now_last]:
            yield f"New after message {last}: {other.text}"
