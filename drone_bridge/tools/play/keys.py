# SPDX-License-Identifier: Apache-2.0
"""Keys: control of a player from a terminal by Space, arrow keys and n, with a display of the position.

A separate thread reads the terminal and prints the position. The player is locked by itself.
"""

import os
import select
import sys
import termios
import threading
import tty
from types import TracebackType
from typing import Any

from drone_bridge.tools.play.player import Player, Span

PERIOD_S = 0.2
SKIP_S = 5.0
HELP = "Space pauses and resumes, arrow keys skip 5 s back or forward, n plays the next message while paused."
SPACE, NEXT, LEFT, RIGHT = b" ", b"n", b"\x1b[D", b"\x1b[C"
_CLEAR = "\r\x1b[K"


class Keys:
    """Context in which keys control a player. Inactive without a terminal, and in the background."""

    def __init__(self, player: Player, span: Span) -> None:
        self._player, self._span = player, span
        self._settings: list[Any] | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="keys", daemon=True)

    def __enter__(self) -> "Keys":
        if sys.stdin.isatty() and sys.stdout.isatty() and os.tcgetpgrp(0) == os.getpgrp():
            self._settings = termios.tcgetattr(0)
            tty.setcbreak(0)
            print(HELP, flush=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._settings is not None:
            self._ending.set()
            self._thread.join()
            termios.tcsetattr(0, termios.TCSADRAIN, self._settings)
            print(flush=True)

    def _run(self) -> None:
        while not self._ending.is_set():
            print(f"{_CLEAR}{position(self._player, self._span)}", end="", flush=True)
            if select.select([0], [], [], PERIOD_S)[0]:
                press(self._player, self._span, os.read(0, 8))


def position(player: Player, span: Span) -> str:
    """Return the position of a player as text."""
    return f"{player.position_s:.1f} of {span.seconds:.1f} s{', paused' if player.is_paused else ''}"


def press(player: Player, span: Span, key: bytes) -> None:
    """Execute the command of a key. Other keys are ignored."""
    if key == SPACE:
        player.control(is_paused=not player.is_paused, rate=player.rate)
    elif key == NEXT:
        player.step()
    elif key in (LEFT, RIGHT):
        skipped_ns = round((SKIP_S if key == RIGHT else -SKIP_S) * 1e9)
        player.control(is_paused=player.is_paused, rate=player.rate, position_ns=player.position_ns + skipped_ns)
