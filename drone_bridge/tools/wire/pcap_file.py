# SPDX-License-Identifier: Apache-2.0
"""Captures of tcpdump or Wireshark (pcap, pcapng) as the entries of a wire log."""

import socket
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from drone_bridge.kind import ProtocolKind, Side, kinds
from drone_bridge.tools.wire.log_file import LogEntry, LoggedConnection, LogSource, WireError

SYN, ENDS = 2, 5  # flags; FIN or RST
#: Parameters of ports that carry video.
VIDEO = "video_port", "camera_port"
#: Later times, of a damaged capture, are beyond dates.
LATEST_NS = 2**63
#: Where a link's frames have the type of what follows, and where that begins.
_HEADS = {"DLT_EN10MB": (12, 14), "DLT_LINUX_SLL": (14, 16), "DLT_LINUX_SLL2": (0, 20), "DLT_NULL": (0, 4)}
_HEADS |= {"DLT_RAW": (0, 0), "DLT_IPV4": (0, 0), "DLT_IPV6": (0, 0)}
_RAW = 101  # of a file
_VLAN = b"\x81\x00", b"\x88\xa8"


class _CapturedPacket(NamedTuple):
    """Segment, or datagram."""

    time_ns: int
    source: str  # addresses
    target: str
    layer: Any
    data: bytes

    @property
    def is_stream(self) -> bool:
        return hasattr(self.layer, "flags")

    @property
    def key(self) -> Any:
        return self.is_stream, frozenset((self.source, self.target))


def pcap_source(path: Path, kind: ProtocolKind) -> LogSource:
    """Return the source of a capture, as if the operator had logged it."""
    return LogSource(kind, Side.OPERATOR, path.name, {})


def captured_kind(path: Path) -> ProtocolKind:
    """Return the kind most of whose ports are in a capture. Raises as `pcap_entries`, and if there are several."""
    seen = {port for each in _packets(path) for port in (each.layer.sport, each.layer.dport)}
    number = {kind.name: len(seen & {each.default for each in kind.ports}) for kind in kinds().values()}
    found = [name for name, ports in number.items() if 0 < ports == max(number.values())]
    if len(found) != 1:
        ports_of = f"the ports of {', '.join(found)}" if found else "no known port"
        raise WireError(f"{path} has {ports_of}: name its protocol, as by --protocol {(found or ['tello'])[0]}.")
    return kinds()[found[0]]


def pcap_entries(path: Path, kind: ProtocolKind) -> Iterator[LogEntry]:
    """Yield what the ports of a kind carry. Raises WireError, OSError and ModuleNotFoundError."""
    ports = {each.default: each.side for each in kind.ports}
    packets = [each for each in _packets(path) if {each.layer.sport, each.layer.dport} & {*ports}]
    if not packets:
        raise WireError(f"{path} has nothing to or from a port of {kind.name}: {', '.join(map(str, ports))}.")
    robots = _robots_ends(packets, ports)
    video = {each.default for each in kind.ports if each.parameter in VIDEO}
    sent = {(each.source, each.target, each.layer.seq): each.data for each in packets if each.is_stream and each.data}
    connections: dict[Any, LoggedConnection] = {}
    following: dict[Any, int] = {}  # next sequence number of a connection's end
    for packet in packets:
        now_ns, source, target, layer, piece = packet
        key, is_stream = packet.key, packet.is_stream
        if key not in connections or (is_stream and layer.flags & 0x12 == SYN):
            ends = (target, source) if robots[key] == source else (source, target)
            transport = f"{'tcp' if is_stream else 'udp'}{' video' if {layer.sport, layer.dport} & video else ''}"
            connections[key] = LoggedConnection(len(connections) + 1, transport, *ends, now_ns)
            following = {each: number for each, number in following.items() if each[0] != key}
        connection = connections[key]
        sender = Side.OPERATOR if source == connection.own else Side.VEHICLE
        if is_stream:
            at, end = layer.seq + bool(layer.flags & SYN), (key, source)
            is_begun = end in following or layer.flags & SYN
            next_at = following.get(end, at)
            while (missing := (at - next_at + 2**31) % 2**32 - 2**31) > 0 and (
                late := sent.get((source, target, next_at % 2**32), b"")[:missing]
            ):  # lost before the capture, and sent again
                yield LogEntry(now_ns, connection, sender, late)
                next_at += len(late)
            if missing > 0 or not is_begun:
                yield LogEntry(now_ns, connection, sender, b"", max(1, missing), is_gap=True)
            piece = piece[max(0, -missing) :]  # not what was sent before
            following[end] = at + max(0, -missing) + len(piece)
        elif (size := layer.ulen - 8) > len(piece):  # cut by the capture
            yield LogEntry(now_ns, connection, sender, b"", size, is_gap=True)
            continue
        if piece or not is_stream:
            yield LogEntry(now_ns, connection, sender, piece)
        if is_stream and layer.flags & ENDS:
            yield LogEntry(now_ns, connection, sender, b"")


def _robots_ends(packets: Iterable[_CapturedPacket], ports: Mapping[int, Side]) -> dict[Any, str]:
    """Return the address of the robot's end of each connection.

    It is found by the port, if only one end has one of the protocol, else by the robot's host in other connections.
    Else the operator has begun.
    """
    talks: dict[Any, list[_CapturedPacket]] = {}
    for each in packets:
        talks.setdefault(each.key, []).append(each)
    found: dict[Any, str] = {}
    for key, (first, *_) in talks.items():
        ends = {(first.target, first.layer.dport): first.source, (first.source, first.layer.sport): first.target}
        robots = {end if ports[port] is Side.VEHICLE else other for (end, port), other in ends.items() if port in ports}
        if len(robots) == 1:
            (found[key],) = robots
    hosts = {_host(each) for each in found.values()}
    for key in talks.keys() - found.keys():
        first = talks[key][0]
        known = [each for each in (first.target, first.source) if _host(each) in hosts]
        found[key] = known[0] if len(known) == 1 else first.target
    return found


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def _packets(path: Path) -> Iterator[_CapturedPacket]:
    """Yield the packets of TCP and UDP, up to one that is cut with the file."""
    import dpkt  # an extra

    heads = {getattr(dpkt.pcap, name): head for name, head in _HEADS.items()} | {_RAW: (0, 0)}
    with path.open("rb") as file:
        try:
            packets = dpkt.pcap.UniversalReader(file)
        except (ValueError, dpkt.Error):
            raise WireError(f"{path} is neither a wire log nor a capture (pcap, pcapng).") from None
        if (link := packets.datalink()) not in heads:
            raise WireError(
                f"{path} has frames of type {link}. Capture on Ethernet, Wi-Fi without monitor mode, or any."
            )
        frames = iter(packets)
        while True:
            try:
                time_s, data = next(frames)
            except (StopIteration, ValueError, dpkt.Error):
                return
            at, begin = heads[link]
            while data[at : at + 2] in _VLAN and begin > 4:
                at, begin = begin + 2, begin + 4
            try:
                network = {4: dpkt.ip.IP, 6: dpkt.ip6.IP6}[data[begin] >> 4](data[begin:])
            except Exception:  # dpkt raises various exceptions for malformed packets
                continue
            layer = network.data
            if isinstance(layer, dpkt.tcp.TCP | dpkt.udp.UDP):
                family = socket.AF_INET if len(network.src) == 4 else socket.AF_INET6
                ends = (network.src, layer.sport), (network.dst, layer.dport)
                source, target = (f"{socket.inet_ntop(family, host)}:{port}" for host, port in ends)
                time_ns = min(int(time_s * 10**9), LATEST_NS)
                yield _CapturedPacket(time_ns, source, target, layer, bytes(layer.data))
