# SPDX-License-Identifier: Apache-2.0
"""Buttons: presses that tolerate packet loss. Pure.

A press is down for its time, and for PACKETS_PER_LEVEL packets at least, then up for as many packets, then over. It is
broken off by a doubt: up at once, and failed. One that has to last begins again if it may not have been received.
"""

import math

#: Number of packets with a button pressed, and released, after which the edge has certainly been received.
PACKETS_PER_LEVEL = 3


class Press:
    """Press of a button."""

    def __init__(self, button: str, hold_s: float) -> None:
        """Create a press of at least `hold_s`."""
        self.button, self._hold_s = button, hold_s
        #: Time until which it begins again instead of being broken off, if it has to last.
        self.lasts_until_s = -math.inf
        self._first_sent_s = 0.0
        self._packets_down = self._packets_up = 0
        #: Reason why it was broken off, as a sentence; empty if it was not.
        self.broken_off = ""

    @property
    def was_sent(self) -> bool:
        """Whether a packet with the button pressed was sent."""
        return self._packets_down > 0

    @property
    def is_over(self) -> bool:
        """Whether it was completely released, or never begins."""
        return self._packets_up >= PACKETS_PER_LEVEL or bool(self.broken_off and not self.was_sent)

    @property
    def may_be_lost(self) -> bool:
        """Whether a press that has to last was in so few packets that it may not have been received."""
        return self.lasts_until_s > -math.inf and self._packets_down < PACKETS_PER_LEVEL and not self.broken_off

    def is_down(self, now_s: float) -> bool:
        """Return whether the button is pressed in the next packet."""
        if self.broken_off:
            return False
        return self._packets_down < PACKETS_PER_LEVEL or now_s < self._first_sent_s + self._hold_s

    def sent(self, now_s: float) -> None:
        """Record a packet."""
        if not self.is_down(now_s):
            self._packets_up += 1
            return
        if not self.was_sent:
            self._first_sent_s = now_s
        self._packets_down += 1

    def break_off(self, why: str, now_s: float) -> None:
        """Release the button early, or do not press it at all."""
        if self.may_be_lost and now_s <= self.lasts_until_s:
            self._packets_down = 0
        else:
            self.broken_off = self.broken_off or why


class Buttons:
    """Current presses, one of each button."""

    def __init__(self) -> None:
        self._presses: dict[str, Press] = {}

    def current(self, button: str) -> Press | None:
        """Return the press of a button that is not over, if any."""
        press = self._presses.get(button)
        return press if press and not press.is_over else None

    def check_released(self, button: str) -> None:
        """Raise ValueError with a sentence while the button is pressed."""
        if self.current(button):
            raise ValueError(f"{button} is still being pressed.")

    def press(self, press: Press) -> Press:
        """Start a press. Raises ValueError with a sentence while the button is pressed."""
        self.check_released(press.button)
        self._presses[press.button] = press
        return press

    def break_off(self, why: str, now_s: float, *buttons: str) -> None:
        """Break off the presses of these buttons, of all without any."""
        for press in self._presses.values():
            if press.button in buttons or not buttons:
                press.break_off(why, now_s)

    def down(self, now_s: float) -> frozenset[str]:
        """Return the buttons that are pressed in the next packet."""
        return frozenset(button for button, press in self._presses.items() if press.is_down(now_s))

    def sent(self, now_s: float) -> None:
        """Record a packet."""
        for press in self._presses.values():
            press.sent(now_s)
