# SPDX-License-Identifier: Apache-2.0
"""How long a peer has been silent, regardless of the state of its link."""

import time

from drone_bridge.ros.stall_watch import PROCESS


class Liveness:
    """The duration of silence while a link is open, accumulated over all links since the peer was last heard.

    While this process stood still, nobody was silent: it did not listen.

    The system of a hung peer often still accepts connections: links that open and close without a message from the peer
    do not restart the count. `opened`, `heard` and `closed` are for the link's thread, the rest for any.
    """

    def __init__(self, may_be_silent: bool = False) -> None:
        """`may_be_silent`: a peer that has never sent anything does not count as silent."""
        self._counts = not may_be_silent
        self._since_s: float | None = None  # of the silence on the open link; None: there is none
        self._before_s = 0.0  # silence on the links before

    def opened(self) -> None:
        self._since_s = time.monotonic()

    def heard(self) -> None:
        """Note that a valid message was received."""
        self._since_s, self._before_s, self._counts = time.monotonic(), 0.0, True

    def closed(self) -> None:
        if self._since_s is not None and self._counts:
            self._before_s += PROCESS.silent_s(self._since_s)
        self._since_s = None

    @property
    def is_open(self) -> bool:
        """Whether there is a link."""
        return self._since_s is not None

    @property
    def silence_s(self) -> float:
        """How long the peer has been silent while connected; 0 without a link."""
        since_s = self._since_s
        return self._before_s + PROCESS.silent_s(since_s) if since_s is not None and self._counts else 0.0
