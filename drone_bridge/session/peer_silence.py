# SPDX-License-Identifier: Apache-2.0
"""PeerSilence: how long the peer of a link has been silent, over several connections. Pure.

Silence is measured since the peer's last message, also of an earlier connection: the system of a hung peer often still
accepts connections. The time of a stall of this process is no silence.
"""

import math
from collections.abc import Callable


class PeerSilence:
    """Silence of one link's peer. `follow` is for the link's thread, `detect` for that of the reports."""

    def __init__(self, limit_s: float) -> None:
        #: Silence beyond this begins one, s.
        self.limit_s = limit_s
        #: Returns whether the vehicle has last reported that it flies.
        self.flies: Callable[[], bool] = lambda: False
        self._was_silent = False
        self.start_link()

    def start_link(self) -> None:
        """Reset the state of the last link's connections."""
        self._connected: tuple[float | None] | None = None  # start of the connection, s; None without one
        self._received_s: float | None = None
        self._silent_since_s: float | None = None  # on the open connection; None without one
        self._silent_before_s = 0.0  # total over earlier connections
        self._ended_in_s = 0.0  # silence at the end of a connection, until it is detected

    def follow(self, connected: tuple[float | None] | None, received_s: float | None, silence_s: float) -> None:
        """Update the connection, (its start,) or None, the time of its last message, and the silence until now, s."""
        if self._connected and connected != self._connected:
            self._silent_before_s, self._silent_since_s = silence_s, None
            self._ended_in_s = max(self._ended_in_s, self._silent_before_s)
        self._connected = connected
        if connected is not None:
            if received_s is not None and received_s != self._received_s:
                self._received_s, self._silent_before_s = received_s, 0.0
            self._silent_since_s = connected[0] if received_s is None else received_s

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connected is not None

    def lasts_s(self, now_s: float, running_s: float = math.inf) -> float:
        """Return the silence of the connected peer, s; 0 without one. `running_s`: time since this process stalled."""
        if (since_s := self._silent_since_s) is None:
            return 0.0
        return self._silent_before_s + min(max(0.0, now_s - since_s), running_s)

    def detect(self, silence_s: float) -> tuple[float, bool, bool]:
        """Detect the beginning and the end of a silence. Call this periodically.

        Return the longest silence since the last call if it is beyond the limit, s, else 0, and whether a silence
        begins, and ends.
        """
        ended_in_s, self._ended_in_s = self._ended_in_s, 0.0
        silence_s, was_silent = max(silence_s, ended_in_s), self._was_silent
        is_silent = silence_s > self.limit_s
        if is_silent or self.is_open:  # a reopened link alone ends no silence
            self._was_silent = is_silent
        ends = was_silent and self.is_open and not is_silent
        return silence_s if is_silent else 0.0, is_silent and not was_silent, ends
