# SPDX-License-Identifier: Apache-2.0
"""Liveness: for how long the peer of a session has been silent, over all of its connections.

The link's thread follows the session with `look`, after each round of its loop. Other threads read the figures without
a lock, and may see those of one round beside those of the next: good enough for a report, not for a decision.
"""

from collections.abc import Callable

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.stall_watch import PROCESS
from drone_bridge.session.session import Session


class Liveness:
    """For how long a session's peer has been silent, over all its connections since it was last heard, for reports.

    While this process stood still, nobody was silent: it did not listen.

    The system of a hung peer often still accepts connections: those that open and close without a message from the peer
    do not restart the count. `look` is for the link's thread, the rest for any.
    """

    def __init__(self, session: Session | None = None, now_s: Callable[[], float] = elapsed_s) -> None:
        """`now_s` is the session's clock. Without a session there is no connection."""
        self._session, self._now_s = session, now_s
        self._connected: tuple[float | None] | None = None  # since when; None without a connection
        self._heard_s: float | None = None
        self._since_s: float | None = None  # of the silence on the open connection; None: there is none
        self._before_s = 0.0  # silence on the connections before
        #: The silence in which a connection has ended, until that is reported, as one may end before anybody looks.
        self.ended_in_s = 0.0

    def look(self) -> None:
        """Follow the session."""
        session = self._session
        assert session
        connected = (session.since_s,) if session.is_open else None
        if self._connected and connected != self._connected:
            self._before_s, self._since_s = self.silence_s, None
            self.ended_in_s = max(self.ended_in_s, self._before_s)
        self._connected = connected
        if connected is None:
            return
        if session.heard_s is not None and session.heard_s != self._heard_s:
            self._heard_s, self._before_s = session.heard_s, 0.0
        self._since_s = session.since_s if session.heard_s is None else session.heard_s

    @property
    def is_open(self) -> bool:
        """Whether there is a connection, as the loop saw it when it last set the state for people."""
        return self._connected is not None

    @property
    def silence_s(self) -> float:
        """How long the peer has been silent while connected; 0 without a connection."""
        since_s = self._since_s
        silent_s = 0.0 if since_s is None else max(0.0, self._now_s() - since_s)
        return self._before_s + min(silent_s, PROCESS.running_s()) if since_s is not None else 0.0  # the rest: our own
