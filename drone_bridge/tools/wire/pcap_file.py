# SPDX-License-Identifier: Apache-2.0
"""Captures of tcpdump or Wireshark (pcap, pcapng) as the entries of a wire log."""

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from drone_bridge.kind import Side
from drone_bridge.tools.wire.log_file import LogEntry, LoggedConnection, WireError

SYN, ENDS = 2, 5  # flags; FIN or RST


def pcap_entries(path: Path, ports: Mapping[int, Side]) -> Iterator[LogEntry]:
    """Yield what ports carry, by the sides that listen on them. Raises WireError, OSError and ModuleNotFoundError."""
    packets = list(_packets(path, ports))
    sent = {
        (source, target, layer.seq): bytes(layer.data)
        for _, source, target, layer in packets
        if _is_tcp(layer) and layer.data
    }
    connections: dict[Any, LoggedConnection] = {}
    following: dict[Any, int] = {}  # next sequence number of a connection's end
    for now_ns, source, target, layer in packets:
        is_stream = _is_tcp(layer)
        key = is_stream, frozenset((source, target))
        if key not in connections or (is_stream and layer.flags & 0x12 == SYN):
            # Of two that listen, the operator begins.
            sender = ports[layer.dport].other if layer.dport in ports else ports[layer.sport]
            named = (source, target) if sender is Side.OPERATOR else (target, source)
            transport = "tcp" if is_stream else "udp"
            connections[key] = LoggedConnection(len(connections) + 1, transport, *named, now_ns)
            following = {each: number for each, number in following.items() if each[0] != key}
        connection, piece = connections[key], bytes(layer.data)
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
        if piece or not is_stream:
            yield LogEntry(now_ns, connection, sender, piece)
        if is_stream and layer.flags & ENDS:
            yield LogEntry(now_ns, connection, sender, b"")


def _is_tcp(layer: Any) -> bool:
    return hasattr(layer, "flags")


def _packets(path: Path, ports: Mapping[int, Side]) -> Iterator[tuple[int, str, str, Any]]:
    """Yield packets from or to ports: time, addresses of both ends, and the layer of TCP or UDP."""
    import dpkt  # an extra

    layers = {dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet, dpkt.pcap.DLT_LINUX_SLL: dpkt.sll.SLL}
    layers |= {dpkt.pcap.DLT_LINUX_SLL2: dpkt.sll2.SLL2, dpkt.pcap.DLT_NULL: dpkt.loopback.Loopback}
    with path.open("rb") as file:
        try:
            packets = dpkt.pcap.UniversalReader(file)
        except (ValueError, dpkt.Error):
            raise WireError(f"{path} is neither a wire log nor a capture (pcap, pcapng).") from None
        for time_s, data in packets:
            below: Any = None
            try:
                layer: Any = layers.get(packets.datalink(), dpkt.ip.IP)(data)
            except dpkt.Error:
                continue
            while isinstance(layer, dpkt.Packet) and not isinstance(layer, dpkt.tcp.TCP | dpkt.udp.UDP):
                below, layer = layer, layer.data
            if isinstance(layer, dpkt.Packet) and {layer.sport, layer.dport} & {*ports}:
                family = socket.AF_INET if len(below.src) == 4 else socket.AF_INET6
                ends = (below.src, layer.sport), (below.dst, layer.dport)
                source, target = (f"{socket.inet_ntop(family, host)}:{port}" for host, port in ends)
                yield int(time_s * 1e9), source, target, layer
