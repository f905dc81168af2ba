# SPDX-License-Identifier: Apache-2.0
"""Captures of tcpdump: datagrams, and TCP streams put together from their segments."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from drone_bridge.kind import Side, kinds, load
from drone_bridge.net.connector import address_name
from drone_bridge.tools.wire.conversation import Connection, Entry, WireError

_SEQUENCES = 1 << 32
_FRAGMENT_UNIT = 8  # bytes, of offsets in IP headers
#: Segments behind a missing one after which it is taken as not captured.
_MAX_AHEAD = 1024
Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class PcapOptions:
    """What a capture does not tell by itself."""

    protocol: str = ""  # by the port, if it is not named
    port: int = 0  # any that a protocol has
    is_reversed: bool = False  # the port is the operator's, where it usually is the vehicle's, or the other way round


@dataclass(slots=True)
class _Stream:
    """One direction of a TCP connection."""

    expected: int | None = None  # the sequence number of the next byte
    ahead: dict[int, bytes] = field(default_factory=dict)
    has_ended: bool = False

    def take(self, sequence: int, data: bytes) -> Iterator[bytes | str]:
        """Yield what is next in order, and a sentence where something was not captured."""
        if self.expected is None:
            self.expected = sequence
        if data:
            self.ahead[sequence] = max(data, self.ahead.get(sequence, b""), key=len)
        yield from self._ready()
        if len(self.ahead) > _MAX_AHEAD:
            yield from self._skip()

    def acknowledge(self, sequence: int) -> Iterator[bytes | str]:
        """Yield what the receiver has taken, across what was not captured."""
        while (
            self.ahead and self.expected is not None and 0 < (sequence - self.expected) % _SEQUENCES < _SEQUENCES // 2
        ):
            yield from self._skip()

    def finish(self) -> Iterator[bytes | str]:
        """Yield what is left at the end of the connection, or of the capture."""
        while self.ahead:
            yield from self._skip()

    def _skip(self) -> Iterator[bytes | str]:
        assert self.expected is not None
        distance = min((number - self.expected) % _SEQUENCES for number in self.ahead)
        yield f"{distance} bytes were not captured here."
        self.expected = (self.expected + distance) % _SEQUENCES
        yield from self._ready()

    def _ready(self) -> Iterator[bytes]:
        is_found = True
        while is_found:
            is_found = False
            for sequence in sorted(self.ahead):
                assert self.expected is not None
                behind = (self.expected - sequence) % _SEQUENCES
                if behind < _SEQUENCES // 2:  # begins here, or before: then it was sent again
                    data = self.ahead.pop(sequence)[behind:]
                    if data:
                        self.expected = (self.expected + len(data)) % _SEQUENCES
                        yield data
                    is_found = True


@dataclass(slots=True)
class _Fragments:
    """Of an IP packet that was larger than a frame."""

    parts: dict[int, bytes] = field(default_factory=dict)  # by offset
    size: int | None = None  # of the whole, once its last fragment has come

    def add(self, offset: int, data: bytes, is_last: bool) -> bytes | None:
        """Return the whole once it is complete."""
        self.parts[offset] = data
        self.size = offset + len(data) if is_last else self.size
        whole = b"".join(data for _, data in sorted(self.parts.items()))
        return whole if len(whole) == self.size else None


@dataclass(slots=True)
class _Conversation:
    connection: Connection
    sender_to_port: Side
    last_ns: int = 0  # of its packets
    entries: list[Entry] = field(default_factory=list)
    streams: dict[Side, _Stream] = field(default_factory=lambda: {side: _Stream() for side in Side})

    def note(self, time_ns: int, sentence: str) -> None:
        self.entries.append(Entry(time_ns, None, self.connection.peer, sentence.encode()))

    def add(self, time_ns: int, sender: Side, pieces: Iterator[bytes | str]) -> None:
        for piece in pieces:
            if isinstance(piece, str):
                self.note(time_ns, piece)
            else:
                self.entries.append(Entry(time_ns, sender, self.connection.peer, piece))


@dataclass(slots=True)
class _Found:
    """The conversations of a capture, by transport, listening port and client."""

    open: dict[tuple[str, Address, Address], _Conversation] = field(default_factory=dict)
    finished: list[_Conversation] = field(default_factory=list)  # the same caller has called again
    problem: str = ""  # beyond which the capture can't be read, as after tcpdump was killed
    fragments: dict[tuple[bytes, bytes, int], _Fragments] = field(default_factory=dict)


def read_pcap(path: Path, options: PcapOptions) -> list[tuple[Connection, list[Entry]]]:
    """Return the conversations in a capture. Raises WireError and OSError."""
    try:
        import dpkt
    except ImportError:
        raise WireError("Captures of tcpdump need dpkt: pip install dpkt.") from None
    found = _Found()
    with path.open("rb") as file:
        try:
            reader = dpkt.pcap.UniversalReader(file)
            link = reader.datalink()
            for time_s, frame in reader:
                segment = _segment(dpkt, link, frame)
                if segment:
                    _take(dpkt, segment, round(time_s * 1e9), options, found)
        except (ValueError, dpkt.dpkt.Error) as error:
            found.problem = str(error) or type(error).__name__
            if not found.open:
                raise WireError(f"{path} can't be read as a capture: {found.problem}.") from error
    conversations = [*found.finished, *found.open.values()]
    for conversation in conversations:
        for side, stream in conversation.streams.items():
            conversation.add(conversation.last_ns, side, stream.finish())
        if found.problem and conversation.entries:
            conversation.note(conversation.last_ns, f"The capture can't be read any further: {found.problem}.")
    if not conversations:
        raise WireError(f"{path} has no traffic on a known port: name --protocol and --port.")
    return [(one.connection, one.entries) for one in conversations if one.entries]


def _segment(dpkt: Any, link: int, frame: bytes) -> Any:
    """Return the IP packet in a frame; None for anything else."""
    layers = {
        dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet,
        dpkt.pcap.DLT_LINUX_SLL: dpkt.sll.SLL,
        dpkt.pcap.DLT_LINUX_SLL2: dpkt.sll2.SLL2,
        dpkt.pcap.DLT_NULL: dpkt.loopback.Loopback,
    }
    try:
        if link in layers:
            packet = layers[link](frame).data
        else:
            packet = dpkt.ip6.IP6(frame) if frame[:1] and frame[0] >> 4 == 6 else dpkt.ip.IP(frame)
    except dpkt.dpkt.Error:
        return None
    return packet if isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6) else None


def _take(dpkt: Any, packet: Any, time_ns: int, options: PcapOptions, found: _Found) -> None:
    """Add what an IP packet carries to its conversation."""
    segment = _whole_segment(dpkt, packet, found)
    if not isinstance(segment, dpkt.tcp.TCP | dpkt.udp.UDP):
        return
    family = socket.AF_INET6 if isinstance(packet, dpkt.ip6.IP6) else socket.AF_INET
    source = (socket.inet_ntop(family, packet.src), int(segment.sport))
    target = (socket.inet_ntop(family, packet.dst), int(segment.dport))
    is_to_port = _protocol(target[1], options) is not None
    port, caller = (target, source) if is_to_port else (source, target)
    known = _protocol(port[1], options)
    if known is None:
        return
    is_syn = isinstance(segment, dpkt.tcp.TCP) and bool(segment.flags & dpkt.tcp.TH_SYN)
    transport = "tcp" if isinstance(segment, dpkt.tcp.TCP) else "udp"
    called = (transport, port, caller)
    if is_syn and is_to_port and called in found.open and found.open[called].entries:
        found.finished.append(found.open.pop(called))
    conversation = _conversation(found, known, called, time_ns, is_begin=is_syn)
    conversation.last_ns = time_ns
    sender = conversation.sender_to_port if is_to_port else conversation.sender_to_port.other
    if transport == "tcp":
        _take_segment(dpkt, segment, time_ns, sender, conversation)
    else:
        _take_datagram(segment, time_ns, sender, conversation)


def _whole_segment(dpkt: Any, packet: Any, found: _Found) -> Any:
    """Return what a packet carries; of a datagram in fragments once it is complete, else None."""
    is_datagram = isinstance(packet, dpkt.ip.IP) and packet.p == dpkt.ip.IP_PROTO_UDP
    if not (is_datagram and (packet.mf or packet.offset)):
        return packet.data
    key = packet.src, packet.dst, packet.id
    fragments = found.fragments.setdefault(key, _Fragments())
    whole = fragments.add(packet.offset * _FRAGMENT_UNIT, bytes(packet.data), not packet.mf)
    if whole is None:
        return None
    del found.fragments[key]
    return dpkt.udp.UDP(whole)


def _conversation(
    found: _Found,
    known: tuple[str, Side],
    called: tuple[str, Address, Address],
    time_ns: int,
    *,
    is_begin: bool,
) -> _Conversation:
    """Return the conversation of a port with a caller."""
    if called in found.open:
        return found.open[called]
    transport, port, caller = called
    started = datetime.fromtimestamp(time_ns / 1e9, timezone.utc).isoformat()
    names = address_name(*caller), address_name(*port)
    connection = Connection(known[0], transport, known[1], *names, name="captured", started=started)
    conversation = found.open[called] = _Conversation(connection, known[1])
    kind = connection.kind
    has_opening = load(kind.recorded)(kind, {}).answer_to(None) is not None  # what the vehicle says by itself
    if transport == "tcp" and has_opening and not is_begin:
        conversation.note(time_ns, "The beginning was not captured, without which the rest can't be decoded.")
    return conversation


def _take_datagram(datagram: Any, time_ns: int, sender: Side, conversation: _Conversation) -> None:
    data = bytes(datagram.data)
    size = datagram.ulen - datagram.__hdr_len__
    if size > len(data):
        conversation.note(time_ns, f"Only {len(data)} of the {size} bytes of a datagram were captured.")
    else:
        conversation.entries.append(Entry(time_ns, sender, conversation.connection.peer, data))


def _take_segment(dpkt: Any, segment: Any, time_ns: int, sender: Side, conversation: _Conversation) -> None:
    stream = conversation.streams[sender]
    if segment.flags & dpkt.tcp.TH_SYN:
        stream.expected = (segment.seq + 1) % _SEQUENCES
        return
    if segment.flags & dpkt.tcp.TH_ACK:
        conversation.add(time_ns, sender.other, conversation.streams[sender.other].acknowledge(segment.ack))
    conversation.add(time_ns, sender, stream.take(segment.seq, bytes(segment.data)))
    if segment.flags & dpkt.tcp.TH_FIN and not stream.has_ended:
        stream.has_ended = True
        conversation.add(time_ns, sender, stream.finish())
        conversation.entries.append(Entry(time_ns, sender, conversation.connection.peer, b""))


def _protocol(port: int, options: PcapOptions) -> tuple[str, Side] | None:
    """Return the protocol of a port, and the side that sends to it."""
    if options.port and port != options.port:
        return None
    #: A port of discovery is another conversation.
    known = {
        each.default: (kind.name, each.side.other)
        for kind in kinds().values()
        for each in kind.ports
        if options.protocol in ("", kind.name) and not each.parameter.startswith("discovery")
    }
    if options.protocol and options.port:
        found: tuple[str, Side] | None = known.get(port) or next(iter(known.values()))
    else:
        found = known.get(port)
    return (found[0], found[1].other) if found and options.is_reversed else found
