# SPDX-License-Identifier: Apache-2.0
"""Liveness: for how long the peer of a session has been silent, over all of its connections.

The link's thread follows the session with `look`, after each round of its loop. Other threads read the figures without
a lock, and may see those of one round beside those of the next: good enough for a report, not for a decision.
"""

from collections.abc import Callable
from typing import Protocol

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.stall_watch import PROCESS


class Conversation(Protocol):
    """A session, as far as its peer's connection goes."""

    is_open: bool
    since_s: float | None
    heard_s: float | None
    hangs: int


class Liveness:
    """For how long a session's peer has been silent, over all its connections since it was last heard, for reports.

    While this process stood still, nobody was silent: it did not listen.

    The system of a hung peer often still accepts connections: those that open and close without a message from the peer
    do not restart the count. `look` and `closed` are for the link's thread, the rest for any.
    """

    def __init__(self, session: Conversation | None = None, now_s: Callable[[], float] = elapsed_s) -> None:
        """`now_s` is the session's clock. Without a session there is no connection."""
        self._session, self._now_s = session, now_s
        self._hangs = 0
        self._connected: tuple[float | None] | None = None  # since when; None without a connection
        self._heard_s: float | None = None
        self._since_s: float | None = None  # of the silence on the open connection; None: there is none
        self._before_s = 0.0  # silence on the connections before
        #: Whether the peer was heard since it hung last. For the link's thread to set.
        self.may_hang_anew = True

    def look(self, note_end: Callable[..., None]) -> None:
        """Follow the session; `note_end(is_timeout=…)` is called when a connection has ended."""
        session = self._session
        assert session
        connected = (session.since_s,) if session.is_open else None
        if self._connected and connected != self._connected:
            note_end(is_timeout=session.hangs > self._hangs)
        self._hangs = session.hangs
        self._connected = connected
        if connected is None:
            return
        if session.heard_s is not None and session.heard_s != self._heard_s:
            self._heard_s, self._before_s, self.may_hang_anew = session.heard_s, 0.0, True
        self._since_s = session.since_s if session.heard_s is None else session.heard_s

    def closed(self) -> None:
        self._before_s, self._since_s = self.silence_s, None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection, as the loop saw it when it last set the state for people."""
        return self._connected is not None

    @property
    def open_for_s(self) -> float:
        """For how long there has been a connection; 0 without one."""
        since_s = self._session.since_s if self._session else None
        return 0.0 if since_s is None or not self.is_open else self._now_s() - since_s

    @property
    def silence_s(self) -> float:
        """How long the peer has been silent while connected; 0 without a connection."""
        since_s = self._since_s
        silent_s = 0.0 if since_s is None else max(0.0, self._now_s() - since_s)
        return self._before_s + min(silent_s, PROCESS.running_s()) if since_s is not None else 0.0  # the rest: our own
