# SPDX-License-Identifier: Apache-2.0
"""Clients: who of several peers on streams has a place, and by when each has to have completed a message.

A place is not kept for nothing: a client that has sent nothing whole for a while loses its place to the next one, and
one that takes too long for a message loses it by itself, however its bytes trickle.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from drone_bridge.session.session import Actions, Close, Note

HandlerT = TypeVar("HandlerT")

#: From the connection to the end of the first message, unless a server allows less.
FIRST_MESSAGE_S = 60.0
#: From the first byte of a message to its last.
WHOLE_MESSAGE_S = 10.0
#: Who has completed a message within this time keeps its place when more come than there is room for.
KEEPS_PLACE_S = 1.0
#: Counters.
LOST, REFUSED = "lost_connections", "refused_peers"


@dataclass(slots=True, eq=False)
class Client(Generic[HandlerT]):
    """One client. Times are seconds of the session's clock."""

    peer: Any
    handler: HandlerT
    heard_s: float
    """When its last message was complete; before the first one, since when it is connected."""
    deadline_s: float
    """When the message that it has begun, or the first one, has to be complete; infinity for never."""
    has_spoken: bool = False
    """Whether it has ever completed a message."""


class Admission(NamedTuple):
    """Whether one more peer gets a place, and at whose cost."""

    refusal: Actions = ()
    """What is done if it gets none, else nothing."""
    loser: Any = None
    """The peer whose conversation has to be ended first, None for nobody."""
    reason: str = ""
    """Why that one: half a sentence, whose subject is the loser."""


class Clients(Generic[HandlerT]):
    """The clients of one session, by their peers."""

    def __init__(
        self,
        most: int,
        *,
        first_message_s: float = FIRST_MESSAGE_S,
        whole_message_s: float = WHOLE_MESSAGE_S,
        keeps_place_s: Callable[[], float] = lambda: KEEPS_PLACE_S,
        mute_keeps_place_s: float = 0.0,
    ) -> None:
        """Begin with none.

        Args:
            most: clients at once.
            first_message_s: how long one may take for its first message.
            whole_message_s: and for each message that it has begun.
            keeps_place_s: returns for how long one may be silent without losing its place to the next one.
            mute_keeps_place_s: the same for one that has never completed a message.
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
        """Return all, in the order of their connections."""
        return tuple(self._by_peer.values())

    def admit(self, peer: Any, now_s: float) -> Admission:
        """Return whether one more peer gets a place; the caller removes the loser, then adds the peer."""
        if len(self._by_peer) < self._most:
            return Admission()
        idle = min(self._by_peer.values(), key=lambda each: (each.has_spoken, each.heard_s))
        silence_s, keeps_s = now_s - idle.heard_s, self._keeps_place_s()
        if silence_s >= (keeps_s if idle.has_spoken else min(keeps_s, self._mute_keeps_place_s)):
            return Admission(loser=idle.peer, reason=f"was silent for {silence_s:.1f} s, and is replaced by {peer}")
        full = f"{self._most} clients are connected already."
        if self._most == 1:
            full = f"{idle.peer} is connected, and only one peer is served."
        return Admission([Note(REFUSED, f"{peer} was refused: {full}", is_ongoing=True), Close(peer)])

    def add(self, peer: Any, handler: HandlerT, now_s: float) -> Client[HandlerT]:
        """Give a peer a place."""
        self._by_peer[peer] = client = Client(peer, handler, now_s, now_s + self._first_message_s)
        return client

    def remove(self, peer: Any) -> Client[HandlerT] | None:
        """Take a peer's place away; return who that was, None for nobody."""
        return self._by_peer.pop(peer, None)

    def heard(self, client: Client[HandlerT], now_s: float, *, is_inside_message: bool, has_spoken: bool) -> None:
        """Note, after a chunk, whether it completed a message, and whether another one has begun."""
        if has_spoken:
            client.has_spoken, client.heard_s, client.deadline_s = True, now_s, math.inf
        if is_inside_message:
            client.deadline_s = min(client.deadline_s, now_s + self._whole_message_s)

    def resume(self, now_s: float) -> None:
        """Give all of them their time anew, as this process stood still."""
        for client in self._by_peer.values():
            client.heard_s = now_s
            if math.isfinite(client.deadline_s):
                within_s = self._whole_message_s if client.has_spoken else self._first_message_s
                client.deadline_s = now_s + within_s

    @property
    def due_s(self) -> float:
        """When `overdue` is to be looked at."""
        return min((client.deadline_s for client in self._by_peer.values()), default=math.inf)

    def overdue(self, now_s: float) -> list[tuple[Client[HandlerT], str]]:
        """Return whose time is up, each with what it has not done."""
        late = [client for client in self._by_peer.values() if now_s >= client.deadline_s]
        return [(client, f"has not completed {self._expected(client)}") for client in late]

    def _expected(self, client: Client[HandlerT]) -> str:
        if client.has_spoken:
            return f"a message within {self._whole_message_s:g} s"
        return f"a first message within {self._first_message_s:g} s"
