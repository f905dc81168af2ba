# SPDX-License-Identifier: Apache-2.0
"""Answers to keep-alives that wait for the robot: for the link's thread."""

from collections import deque
from collections.abc import Callable
from typing import Final

from drone_bridge.robot.codec import FromRobot, KeepAlive

_MOST: Final = 100  # per driver: ten seconds' worth at usual rates


class LateAnswers:
    """Keeps back the answers to one driver's keep-alives while the robot behind a bridge says nothing.

    As with a direct connection to the robot, they come late, or not at all.
    """

    def __init__(self, is_silent: Callable[[], bool]) -> None:
        self._is_silent = is_silent
        self._kept: deque[KeepAlive] = deque(maxlen=_MOST)

    def keeps(self, packet: FromRobot) -> bool:
        """Return whether a packet is kept back."""
        if not isinstance(packet, KeepAlive) or not self._is_silent():
            return False
        self._kept.append(packet)
        return True

    def tick(self, send: Callable[[FromRobot], None]) -> None:
        """Send what was kept back once the robot is heard again; `send` sends to the driver, by way of `keeps`."""
        while self._kept and not self._is_silent():
            send(self._kept.popleft())
