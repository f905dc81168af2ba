# SPDX-License-Identifier: Apache-2.0
"""Greeting: the steps of a description's `handshake`, and the answers that they await. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from drone_bridge.robot_class.connection import Packet, StatePacket
from drone_bridge.robot_class.robot import Robot, Step, step_bytes
from drone_bridge.session.obstacles import Obstacle

AGAIN_S = 0.5
#: How long a step may be answered. An earlier one has reached nobody: the robot was switched off.
ANSWERS_S = 2.0
#: Number of times that a step is sent before it counts as unanswered.
UNANSWERED_SENT = 4
#: Errors in a greeting. Whatever it raises, the robot is not driven until it ends.
ANY_ERROR = (Exception, SystemExit)


class Greeting:
    """One greeting of a robot."""

    def __init__(self) -> None:
        """Start before the first step."""
        self._steps: Iterator[Step] | None = None
        #: Step that awaits its answer, and the test of it.
        self.pending: tuple[bytes | Callable[[], bytes], Callable[[bytes], bool]] | None = None
        #: Time at which the pending step is sent again.
        self.again_s = -math.inf
        #: Whether it is interrupted by a landing that the limits require.
        self.is_landing = False
        self._heard, self._sent = b"", 0  # newest packet that does not answer the pending step; how often it was sent

    def proceed(self, robot: Robot, now_s: float, *, is_answered: bool) -> Iterator[bytes]:
        """Yield the pending step again, or what follows it, to the next one with an answer or the end.

        Raises ANY_ERROR.
        """
        self.again_s = now_s + AGAIN_S
        if self.pending and not is_answered:
            self._sent += 1
            yield step_bytes(self.pending[0])
            return
        self.pending, self._heard, self._sent = None, b"", 1
        self._steps = self._steps or robot.handshake()
        for step in self._steps:
            self.pending = None if isinstance(step, bytes) else step
            yield step_bytes(step if isinstance(step, bytes) else step[0])
            if self.pending:
                return

    def is_answer(self, data: bytes) -> bool:
        """Return whether a packet answers the pending step. A test that fails says no. Noise is an empty packet."""
        try:
            return bool(self.pending and data and self.pending[1](data))
        except ANY_ERROR:
            return False

    def hear(self, packet: Packet) -> None:
        """Record a packet that does not answer the pending step. Reports tell the least."""
        if packet.data.strip():
            self._heard = (isinstance(packet, StatePacket) and self._heard) or packet.data

    def problem(self, disobeys: str, *, is_secret: bool) -> tuple[Obstacle, dict[str, object]] | None:
        """Return the step that awaits its answer, unless it is secret, and what the robot sends instead, if anything.

        `disobeys`: why it does not obey, by its reports.
        """
        if not self.pending or not (self._heard or self._sent >= UNANSWERED_SENT):
            return None
        step = self.pending[0]
        is_shown = isinstance(step, bytes) and not is_secret  # of which a step may have any part
        shown: dict[str, object] = {"step": _text(step) if is_shown and isinstance(step, bytes) else "a step"}
        if not self._heard:
            return Obstacle.UNANSWERED, shown | {"number": self._sent}
        sent = f"it reports that {disobeys}" if disobeys else f"it has sent {_text(self._heard)}"
        return Obstacle.UNGREETED, shown | {"sent": sent}


def _text(data: bytes) -> str:
    """Return the beginning of a packet: of text as such, of others in hexadecimal."""
    return f"{data!r:.80}" if data.isascii() and data.strip().decode().isprintable() else f"{data[:20].hex(' ')} ..."
