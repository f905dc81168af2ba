# SPDX-License-Identifier: Apache-2.0
"""PacketSender: a driver's packets on one connection, in pieces. Pure.

The LEGO NXT adapters handle one packet per socket read. Packets that have accumulated there during a stall would stay
forever, and delay every stop. Each additional piece is a read in which such an adapter handles one more of them.
"""

import math
from dataclasses import replace
from typing import Any

from drone_bridge.robot import codec
from drone_bridge.robot.codec import HEADER_BYTES
from drone_bridge.session.session import Action, Send, encode

#: Time between the bytes of a slow packet.
BYTE_PERIOD_S = 0.01


class PacketSender:
    """Encodes packets, and adds their pieces to `out`: header and payload, or single bytes of a slow one."""

    def __init__(self, peer: Any, out: list[Action]) -> None:
        self.connection = codec.DriverConnection()
        self.peer, self._out = peer, out
        #: Time of the next byte of a slow packet.
        self.due_s = math.inf
        self._rest = b""  # of a packet that was sent in part

    def send(self, packet: codec.FromDriver, now_s: float, *, is_slow: bool = False) -> None:
        """Send a packet, after the rest of a slow one. An unencodable one falls back to zero speeds, or to nothing."""
        self.complete()
        neutral = replace(packet, left=0, right=0) if isinstance(packet, codec.SkidSteerUpdate) else None
        self._rest = encode(self.connection.send, packet, neutral, self._out) or b""
        if is_slow:
            self.due_s = now_s
            self.tick(now_s)
        else:
            self._send(HEADER_BYTES)
            self.complete()

    def tick(self, now_s: float) -> None:
        """Send the next byte of a slow packet if it is due."""
        if now_s >= self.due_s:
            self._send(1)
            self.due_s = now_s + BYTE_PERIOD_S if self._rest else math.inf

    def complete(self) -> None:
        """Send the rest of a slow packet."""
        self._send(len(self._rest))
        self.was_completed()

    def was_completed(self) -> None:
        """Record that the rest of a slow packet was sent, by last words."""
        self._rest, self.due_s = b"", math.inf

    def pieces(self, packets: list[codec.FromDriver]) -> tuple[bytes, ...]:
        """Return the pieces of last words, which follow the rest of a slow packet."""
        return tuple(codec.in_pieces(map(self.connection.send, packets)))

    def _send(self, size: int) -> None:
        piece, self._rest = self._rest[:size], self._rest[size:]
        if piece:
            self._out.append(Send(piece, self.peer, "unsent_packets", rest=self._rest))
