# SPDX-License-Identifier: Apache-2.0
"""Captures of tcpdump, read with dpkt: datagrams, and TCP streams put together from their segments.

A capture is read whole before anything is put in order. So what came twice, late or never needs no guessing: the
segments of a direction are sorted by their place in the stream, and what lies between two of them was not captured.
"""

import heapq
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any, NamedTuple

from drone_bridge.kind import Side, kinds, load
from drone_bridge.net.connector import address_name
from drone_bridge.tools.wire.conversation import Connection, Entry, WireError

_SEQUENCES = 1 << 32
_FRAGMENT_UNIT = 8  # bytes, of offsets in IP headers
Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class PcapOptions:
    """What a capture does not tell by itself."""

    protocol: str = ""  # by the port, if it is not named
    port: int = 0  # any that a protocol has
    is_reversed: bool = False  # the port is the operator's, where it usually is the vehicle's, or the other way round

    @property
    def senders(self) -> dict[int, tuple[str, Side]]:
        """The protocol of each port, and the side that sends to it."""
        known = {
            each.default: (kind.name, each.side.other)
            for kind in kinds().values()
            for each in kind.ports
            # A port of discovery is another conversation.
            if self.protocol in ("", kind.name) and not each.parameter.startswith("discovery")
        }
        if self.port:
            usual = next(iter(known.values())) if self.protocol else None
            meant = known.get(self.port, usual)
            known = {self.port: meant} if meant else {}
        return {port: (name, side.other if self.is_reversed else side) for port, (name, side) in known.items()}


class _Segment(NamedTuple):
    position: int  # of its first byte, counted on where sequence numbers begin again from 0
    time_ns: int
    data: bytes


@dataclass(slots=True)
class _Stream:
    """One direction of a TCP connection."""

    begin: int | None = None  # where its first byte has to be, if its SYN was captured
    end_ns: int | None = None  # when it was ended
    position: int | None = None  # of the last segment
    segments: list[_Segment] = field(default_factory=list)

    def add(self, sequence: int, time_ns: int, data: bytes) -> None:
        if self.position is None:
            self.position = sequence
        half = _SEQUENCES // 2
        self.position += (sequence - self.position + half) % _SEQUENCES - half
        self.segments.append(_Segment(self.position, time_ns, data))

    def entries(self, sender: Side, peer: str) -> Iterator[Entry]:
        """Yield the bytes in order, when each was there with all before it, and notes of what was not captured."""
        expected, time_ns = self.begin, 0
        for position, captured_ns, data in sorted(self.segments):
            if expected is None:
                expected = position
            new = data[max(0, expected - position) :]
            if not new:
                continue
            time_ns = max(time_ns, captured_ns)
            if position > expected:
                yield Entry(time_ns, None, peer, b"%d bytes were not captured here." % (position - expected))
            yield Entry(time_ns, sender, peer, new)
            expected = position + len(data)
        if self.end_ns is not None:
            yield Entry(max(time_ns, self.end_ns), sender, peer, b"")


@dataclass(slots=True)
class _CapturedConnection:
    connection: Connection
    sender_to_port: Side
    datagrams: list[Entry] = field(default_factory=list)  # and notes
    streams: dict[Side, _Stream] = field(default_factory=lambda: {side: _Stream() for side in Side})

    @property
    def is_begun(self) -> bool:
        return bool(self.datagrams or any(stream.segments for stream in self.streams.values()))

    def note(self, time_ns: int, sentence: str) -> None:
        self.datagrams.append(Entry(time_ns, None, self.connection.peer, sentence.encode()))

    def entries(self) -> list[Entry]:
        directions = [stream.entries(side, self.connection.peer) for side, stream in self.streams.items()]
        return list(heapq.merge(self.datagrams, *directions, key=lambda entry: entry.time_ns))


def read_pcap(path: Path, options: PcapOptions) -> list[tuple[Connection, list[Entry]]]:
    """Return the conversations in a capture. Raises WireError and OSError."""
    try:
        import dpkt
    except ImportError:
        raise WireError("Captures of tcpdump need dpkt: pip install dpkt.") from None
    capture = _Capture(dpkt, options)
    with path.open("rb") as file:
        problem, time_ns = capture.read(file)
    conversations = [*capture.finished, *capture.open.values()]
    if not conversations:
        if problem:
            raise WireError(f"{path} can't be read as a capture: {problem}.")
        raise WireError(f"{path} has no traffic on a known port: name --protocol and --port.")
    begun = [each for each in conversations if each.is_begun]
    for conversation in begun if problem else ():
        conversation.note(time_ns, f"The capture can't be read any further: {problem}.")
    return [(each.connection, each.entries()) for each in begun]


def _packet(dpkt: Any, link: int, frame: bytes) -> Any:
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


class _Capture:
    """The conversations of a capture, by transport, listening port and client."""

    def __init__(self, dpkt: Any, options: PcapOptions) -> None:
        self.open: dict[tuple[str, Address, Address], _CapturedConnection] = {}
        self.finished: list[_CapturedConnection] = []  # the same caller has called again
        self._dpkt = dpkt
        self._senders = options.senders
        self._fragments: dict[Any, dict[int, bytes]] = {}  # of IP packets larger than a frame, by offset

    def read(self, file: IO[bytes]) -> tuple[str, int]:
        """Add all packets of a file; return why no more can be read, or nothing, and the time of the last one, ns."""
        dpkt, time_ns = self._dpkt, 0
        try:
            reader = dpkt.pcap.UniversalReader(file)
            for time_s, frame in reader:
                time_ns = round(time_s * 1e9)
                if packet := _packet(dpkt, reader.datalink(), frame):
                    self.add(packet, time_ns)
        except (ValueError, dpkt.dpkt.Error) as error:  # as after tcpdump was killed
            return str(error) or type(error).__name__, time_ns
        return "", time_ns

    def add(self, packet: Any, time_ns: int) -> None:
        """Add what an IP packet carries to its conversation."""
        dpkt, segment = self._dpkt, self._whole(packet)
        if not isinstance(segment, dpkt.tcp.TCP | dpkt.udp.UDP):
            return
        is_tcp = isinstance(segment, dpkt.tcp.TCP)
        source, target = self._addresses(packet, segment)
        is_to_port = target[1] in self._senders
        port, caller = (target, source) if is_to_port else (source, target)
        if port[1] not in self._senders:
            return
        called = "tcp" if is_tcp else "udp", port, caller
        is_syn = is_tcp and bool(segment.flags & dpkt.tcp.TH_SYN)
        conversation = self.open.get(called)
        if conversation and conversation.is_begun and is_syn and is_to_port:
            self.finished.append(self.open.pop(called))
            conversation = None
        conversation = conversation or self._begin(called, time_ns, is_begin=is_syn)
        sender = conversation.sender_to_port if is_to_port else conversation.sender_to_port.other
        if is_tcp:
            self._add_segment(segment, time_ns, conversation.streams[sender])
        else:
            self._add_datagram(segment, time_ns, sender, conversation)

    def _addresses(self, packet: Any, segment: Any) -> tuple[Address, Address]:
        """Return from where and to where a packet goes."""
        family = socket.AF_INET6 if isinstance(packet, self._dpkt.ip6.IP6) else socket.AF_INET
        source, target = (socket.inet_ntop(family, host) for host in (packet.src, packet.dst))
        return (source, int(segment.sport)), (target, int(segment.dport))

    def _whole(self, packet: Any) -> Any:
        """Return what a packet carries; of a datagram in fragments once it is complete, else None."""
        is_datagram = isinstance(packet, self._dpkt.ip.IP) and packet.p == self._dpkt.ip.IP_PROTO_UDP
        if not (is_datagram and (packet.mf or packet.offset)):
            return packet.data
        key = packet.src, packet.dst, packet.id
        parts = self._fragments.setdefault(key, {})
        parts[packet.offset * _FRAGMENT_UNIT] = bytes(packet.data)
        if not packet.mf:
            parts[packet.offset * _FRAGMENT_UNIT + len(packet.data)] = b""  # the end
        together = b"".join(parts[offset] for offset in sorted(parts))
        if parts[max(parts)] or len(together) != max(parts):
            return None
        del self._fragments[key]
        return self._dpkt.udp.UDP(together)

    def _begin(self, called: tuple[str, Address, Address], time_ns: int, *, is_begin: bool) -> _CapturedConnection:
        transport, port, caller = called
        protocol, side = self._senders[port[1]]
        started = datetime.fromtimestamp(time_ns / 1e9, timezone.utc).isoformat()
        names = address_name(*caller), address_name(*port)
        connection = Connection(protocol, transport, side, *names, name="captured", started=started)
        conversation = self.open[called] = _CapturedConnection(connection, side)
        kind = connection.kind
        has_opening = load(kind.recorded)(kind, {}).answer_to(None) is not None  # what the vehicle says by itself
        if transport == "tcp" and has_opening and not is_begin:
            conversation.note(time_ns, "The beginning was not captured, without which the rest can't be decoded.")
        return conversation

    def _add_datagram(self, datagram: Any, time_ns: int, sender: Side, conversation: _CapturedConnection) -> None:
        data = bytes(datagram.data)
        size = datagram.ulen - datagram.__hdr_len__
        if size > len(data):
            conversation.note(time_ns, f"Only {len(data)} of the {size} bytes of a datagram were captured.")
        else:
            conversation.datagrams.append(Entry(time_ns, sender, conversation.connection.peer, data))

    def _add_segment(self, segment: Any, time_ns: int, stream: _Stream) -> None:
        if segment.flags & self._dpkt.tcp.TH_SYN:
            stream.begin = stream.position = (segment.seq + 1) % _SEQUENCES
            return
        if segment.data:
            stream.add(segment.seq, time_ns, bytes(segment.data))
        if segment.flags & self._dpkt.tcp.TH_FIN and stream.end_ns is None:
            stream.end_ns = time_ns
