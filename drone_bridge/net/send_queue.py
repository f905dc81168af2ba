# SPDX-License-Identifier: Apache-2.0
"""SendQueue: pieces that a stream has not accepted yet. Pure.

A message that is no longer wanted is dropped, unless a part of it was written: the peer awaits the rest. The node's
child process may complete that one in a stall: see `net.last_words`.
"""

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple


class StreamEntry(NamedTuple):
    """What is written next to a stream: the rest of a message, or a whole one."""

    position: int
    """Number of bytes written before."""
    data: bytes
    has_begun: bool
    """Whether earlier bytes of the message were written."""


class Piece(NamedTuple):
    """Piece of a message, or what is left of one."""

    data: memoryview
    rest: bytes
    """Rest of its message, which later pieces carry."""
    since_s: float
    until_s: float | None
    is_limited: bool
    """Whether it has a time limit of its own"""
    decided: Callable[[bool], None]
    """Callback: whether it was sent, or dropped."""


class SendQueue:
    """Queue of the unsent pieces of one stream."""

    def __init__(self) -> None:
        #: All pieces, the next one first. Read only.
        self.pieces: deque[Piece] = deque()
        self._written = 0
        #: Rest of a message of which a part was written, or None.
        self.begun: bytes | None = None
        #: Number of pieces with a time limit.
        self.limited = 0
        #: Size of all pieces.
        self.size_bytes = 0
        #: Callback after each change of the next entry by a write, while the peer has last words.
        self.on_write: Callable[[StreamEntry], None] | None = None

    def put(
        self,
        data: bytes | memoryview,
        rest: bytes = b"",
        *,
        since_s: float = 0.0,
        until_s: float | None = None,
        decided: Callable[[bool], None] = lambda is_sent: None,
    ) -> None:
        """Append a piece, which must not change until it is written.

        `rest` of its message follows in later pieces. `until_s` see `Send`.
        """
        is_limited = until_s is not None and until_s < math.inf
        self.pieces.append(Piece(memoryview(data), rest, since_s, until_s, is_limited, decided))
        self.size_bytes += len(data)
        self.limited += is_limited
        if self.on_write and len(self.pieces) == 1:
            self._report()

    def written(self, count: int) -> None:
        """Remove bytes of the first piece, which were written."""
        self._written += count
        self._take(count)
        self._report()

    def written_by_child(self, count: int) -> None:
        """Record how many bytes the child has written. The rest of a message that had begun is not sent again."""
        self._written += count
        while count and self.begun is not None and self.pieces:
            taken = min(count, len(self.pieces[0].data))
            self._take(taken)
            count -= taken
        if count:
            self.begun = None
        self._report()

    def next_entry(self) -> StreamEntry:
        """Return what is written next."""
        data, rest = self.pieces[0][:2] if self.pieces else (b"", self.begun or b"")
        return StreamEntry(self._written, b"".join((data, rest)), self.begun is not None)

    def drop_stale(self, now_s: float, *, oldest_s: float = -math.inf, is_leaving: bool = False) -> int:
        """Drop messages that are no longer wanted. Return the number of dropped pieces.

        Those are dropped whose time limit has passed, or that have none and were queued before `oldest_s`; at the end
        of the stream, all with a time limit. One that has begun, or whose last pieces are not queued yet, is kept.
        """
        pieces, self.pieces = self.pieces, deque()
        has_begun, dropped = self.begun is not None, 0
        while pieces:
            message = [pieces.popleft()]
            while message[-1].rest and pieces:
                message.append(pieces.popleft())
            first = message[0]
            if first.until_s is None:
                is_wanted = first.since_s >= oldest_s
            else:
                is_wanted = first.until_s > now_s and not (is_leaving and first.is_limited)
            if is_wanted or has_begun or message[-1].rest:
                self.pieces += message
            else:
                self.size_bytes -= sum(len(each.data) for each in message)
                self.limited -= sum(each.is_limited for each in message)
                dropped += len(message)
                for each in message:
                    each.decided(False)
            has_begun = False
        if dropped:
            self._report()
        return dropped

    def clear(self) -> None:
        """Drop all pieces, and forget a message that has begun: the stream has ended."""
        pieces, self.pieces = self.pieces, deque()
        for each in pieces:
            each.decided(False)
        self.begun, self.size_bytes, self.limited = None, 0, 0

    def _take(self, count: int) -> None:
        piece = self.pieces.popleft()
        self.size_bytes -= count
        unsent = piece.data[count:]
        self.begun = piece.rest if unsent else piece.rest or None
        if unsent:
            self.pieces.appendleft(piece._replace(data=unsent))
        else:
            self.limited -= piece.is_limited
            piece.decided(True)

    def _report(self) -> None:
        if self.on_write:
            self.on_write(self.next_entry())
