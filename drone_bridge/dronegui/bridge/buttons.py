# SPDX-License-Identifier: Apache-2.0
"""Button presses that survive the loss of some packets."""

import math
import threading
from typing import Final

from rclpy.task import Future

#: As many packets have to say that a button is pressed, and that it is not, for the edge to be sure to get across.
PACKETS_PER_LEVEL: Final = 3


class Press:
    """One press of a button: held for a time, then released, each for at least PACKETS_PER_LEVEL packets."""

    def __init__(self, hold_s: float) -> None:
        #: Done, in the executor, when the press is over.
        self.over: Future[None] = Future()
        self._hold_s = hold_s
        self._first_sent_s = 0.0
        self._packets_down = 0
        self._packets_up = 0
        #: Whether nobody listened to one of the packets.
        self.was_refused = False
        self._is_aborted = False

    @property
    def was_sent(self) -> bool:
        """Whether a packet with the button pressed was sent."""
        return self._packets_down > 0

    @property
    def was_released(self) -> bool:
        return self._packets_up >= PACKETS_PER_LEVEL

    @property
    def is_over(self) -> bool:
        """Whether no more packets belong to it."""
        return self.was_released or self._is_aborted

    def is_down(self, now_s: float) -> bool:
        """Return whether the next packet has the button pressed."""
        if self._packets_up or self.is_over:
            return False
        return self._packets_down < PACKETS_PER_LEVEL or now_s < self._first_sent_s + self._hold_s

    def sent(self, was_down: bool, now_s: float, was_refused: bool) -> None:
        """Note a sent packet; `was_refused`: nobody listened to the one before."""
        self.was_refused |= was_refused and self._packets_down > 0
        if not was_down:
            # One that was on its way already when the press began says nothing about it.
            self._packets_up += self._packets_down > 0
            return
        if not self._packets_down:
            self._first_sent_s = now_s
        self._packets_down += 1

    def abort(self) -> None:
        self._is_aborted = True


class ButtonPanel:
    """The buttons being pressed. The executor begins and ends presses, the link's thread sends them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._presses: dict[str, Press] = {}
        self._is_open = False
        self._waits: list[tuple[Future[None], float]] = []  # for the link, until when

    def until_open(self, deadline_s: float) -> "Future[None]":
        """Return a future that completes when there is a link, or at the deadline (time.monotonic)."""
        wait: Future[None] = Future()
        with self._lock:
            self._waits.append((wait, -math.inf if self._is_open else deadline_s))
        return wait

    def ended_waits(self, now_s: float) -> "list[Future[None]]":
        """Return, once, the waits for a link that are over."""
        with self._lock:
            ended = [wait for wait, deadline_s in self._waits if self._is_open or now_s >= deadline_s]
            self._waits = [(wait, deadline_s) for wait, deadline_s in self._waits if wait not in ended]
        return ended

    @property
    def is_open(self) -> bool:
        return self._is_open

    def open(self) -> None:
        """Allow presses, as there is a link."""
        with self._lock:
            self._is_open = True

    def close(self) -> None:
        """Allow no more presses, and abort those in progress."""
        with self._lock:
            self._is_open = False
            self._waits = [(wait, -math.inf) for wait, _ in self._waits]
            for press in self._presses.values():
                press.abort()

    def press(self, button: str, hold_s: float) -> Press:
        """Begin a press. Raises ValueError with a sentence if that is impossible."""
        self.check_released(button)
        with self._lock:
            if not self._is_open:
                raise ValueError(
                    f"{button} can't be pressed while nothing is sent: "
                    "the bridge has to be active, and to have found its GUI's host."
                )
            self._presses[button] = Press(hold_s)
            return self._presses[button]

    def check_released(self, button: str) -> None:
        """Raise ValueError with a sentence while the button is pressed. Only the executor begins presses."""
        with self._lock:
            if button in self._presses:
                raise ValueError(f"{button} is still being pressed.")

    def forget(self, button: str) -> None:
        """Allow a button to be pressed again after its press is over."""
        with self._lock:
            del self._presses[button]

    def down(self, now_s: float) -> frozenset[str]:
        """Return the buttons that are pressed in the next packet."""
        with self._lock:
            return frozenset(button for button, press in self._presses.items() if press.is_down(now_s))

    def sent(self, down: frozenset[str], now_s: float, was_refused: bool) -> bool:
        """Note a packet with these buttons pressed; return whether a press is over.

        `was_refused` tells that nobody listened to the packet before.
        """
        with self._lock:
            for button, press in self._presses.items():
                press.sent(button in down, now_s, was_refused)
            return any(press.is_over for press in self._presses.values())

    def over(self) -> list[Press]:
        """Return the presses that are over but not forgotten."""
        with self._lock:
            return [press for press in self._presses.values() if press.is_over]
