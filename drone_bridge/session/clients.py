# SPDX-License-Identifier: Apache-2.0
"""Clients: admission of several stream peers, and their message timeouts.

The number of places is limited. A client that has completed no message for a while loses its place to the next peer.
One that takes too long for a message loses it in any case, even if its bytes trickle in.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from drone_bridge.session.session import Actions, Close, Note
from drone_bridge.wire.addresses import peer_name
from drone_bridge.wire.counters import faults, problems

HandlerT = TypeVar("HandlerT")

#: Timeout of the first message, from the connection to its last byte, unless a server sets a shorter one.
FIRST_MESSAGE_S = 60.0
#: Timeout of a message, from its first byte to its last.
WHOLE_MESSAGE_S = 10.0
#: If all places are taken, a client keeps its place for this time after a complete message.
KEEPS_PLACE_S = 1.0
#: Counters.
(LOST,), (REFUSED,) = faults("lost_connections"), problems("refused_peers")


@dataclass(slots=True, eq=False)
class Client(Generic[HandlerT]):
    """Connected client. Times are seconds of the session's clock."""

    peer: Any
    handler: HandlerT
    received_s: float
    """Time of its last complete message; before the first one, the time of its connection."""
    deadline_s: float
    """Deadline of the current message, or of the first one; infinity for none."""
    has_sent_message: bool = False
    """Whether it has ever completed a message."""


class Admission(NamedTuple):
    """Decision about a further peer: admitted, admitted in place of another one, or refused."""

    refusal: Actions = ()
    """Actions of a refusal; empty if the peer is admitted."""
    loser: Any = None
    """Peer to disconnect first, or None."""
    reason: str = ""
    """Reason for the choice: a sentence without its subject, the loser."""


def client_name(peer: Any) -> str:
    """Return a client's name: a socket address, or a stream's peer."""
    return peer_name(peer) if isinstance(peer, tuple) else str(peer)


class Clients(Generic[HandlerT]):
    """Clients of one session, by peer."""

    def __init__(
        self,
        most: int,
        *,
        first_message_s: float = FIRST_MESSAGE_S,
        whole_message_s: float = WHOLE_MESSAGE_S,
        keeps_place_s: Callable[[], float] = lambda: KEEPS_PLACE_S,
        mute_keeps_place_s: float = 0.0,
    ) -> None:
        """Start empty.

        Args:
            most: the number of places.
            first_message_s: the timeout of a client's first message, s.
            whole_message_s: the timeout of each message that has begun, s.
            keeps_place_s: returns how long a client may be silent without losing its place to the next peer, s.
            mute_keeps_place_s: the same for a client that has never completed a message.
        """
        self._most, self._first_message_s, self._whole_message_s = most, first_message_s, whole_message_s
        self._keeps_place_s, self._mute_keeps_place_s = keeps_place_s, mute_keeps_place_s
        self._by_peer: dict[Any, Client[HandlerT]] = {}

    def __len__(self) -> int:
        return len(self._by_peer)

    def __contains__(self, peer: Any) -> bool:
        return peer in self._by_peer

    def __getitem__(self, peer: Any) -> Client[HandlerT]:
        """Return the client of a peer. Raises KeyError."""
        return self._by_peer[peer]

    def all(self) -> tuple[Client[HandlerT], ...]:
        """Return all clients, in the order of their connections."""
        return tuple(self._by_peer.values())

    def admit(self, peer: Any, now_s: float) -> Admission:
        """Decide whether to admit a further peer. The caller removes the loser, then adds the peer."""
        if len(self._by_peer) < self._most:
            return Admission()
        idle = min(self._by_peer.values(), key=lambda each: (each.has_sent_message, each.received_s))
        silence_s, keeps_s, name = now_s - idle.received_s, self._keeps_place_s(), client_name(peer)
        if silence_s >= (keeps_s if idle.has_sent_message else min(keeps_s, self._mute_keeps_place_s)):
            return Admission(loser=idle.peer, reason=f"was silent for {silence_s:.1f} s, and is replaced by {name}")
        full = f"{self._most} clients are connected already."
        if self._most == 1:
            full = f"{client_name(idle.peer)} is connected, and only one peer is served."
        return Admission([Note(REFUSED, f"{name} was refused: {full}", is_ongoing=True), Close(peer)])

    def add(self, peer: Any, handler: HandlerT, now_s: float) -> Client[HandlerT]:
        """Add a client for a peer."""
        self._by_peer[peer] = client = Client(peer, handler, now_s, now_s + self._first_message_s)
        return client

    def remove(self, peer: Any) -> Client[HandlerT] | None:
        """Remove the client of a peer, and return it. Return None for an unknown peer."""
        return self._by_peer.pop(peer, None)

    def data_received(
        self, client: Client[HandlerT], now_s: float, *, is_inside_message: bool, has_sent_message: bool
    ) -> None:
        """Update the timeouts after a chunk: whether it completed a message, and whether another one has begun."""
        if has_sent_message:
            client.has_sent_message, client.received_s, client.deadline_s = True, now_s, math.inf
        if is_inside_message:
            client.deadline_s = min(client.deadline_s, now_s + self._whole_message_s)

    def resume(self, now_s: float) -> None:
        """Restart all timeouts after a stall of this process."""
        for client in self._by_peer.values():
            client.received_s = now_s
            if math.isfinite(client.deadline_s):
                within_s = self._whole_message_s if client.has_sent_message else self._first_message_s
                client.deadline_s = now_s + within_s

    @property
    def due_s(self) -> float:
        """Time of the next call of `overdue`, s."""
        return min((client.deadline_s for client in self._by_peer.values()), default=math.inf)

    def overdue(self, now_s: float) -> list[tuple[Client[HandlerT], str]]:
        """Return the clients whose timeout has passed, each with the reason: a sentence without its subject."""
        late = [client for client in self._by_peer.values() if now_s >= client.deadline_s]
        return [(client, f"has not completed {self._expected(client)}") for client in late]

    def _expected(self, client: Client[HandlerT]) -> str:
        if client.has_sent_message:
            return f"a message within {self._whole_message_s:g} s"
        return f"a first message within {self._first_message_s:g} s"
