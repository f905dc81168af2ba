# SPDX-License-Identifier: Apache-2.0
"""Buttons: presses that tolerate packet loss. Pure.

| press | button | until |
|---|---|---|
| waits for its first packet | up | that packet; it is cancelled after a stall, on hold, or when sending stops: \
an emergency only after `begins_until_s` |
| is down | down | `hold_s` and PACKETS_PER_LEVEL packets have passed, or it is cancelled: then it is up |
| is up again | up | PACKETS_PER_LEVEL packets later it has ended |
| was refused: the port was closed, as reported after its second packet | up | it ends immediately |

A press that has begun is always completed and released: its meaning was decided when it began.
"""

from collections.abc import Iterator

#: Number of packets with a button pressed, and released, after which the edge has certainly been received.
PACKETS_PER_LEVEL = 3


class Press:
    """Press of a button."""

    def __init__(self, button: str, hold_s: float, begins_until_s: float, asked_by: str) -> None:
        """Create a press of at least `hold_s`. Until `begins_until_s`, no stall, hold or lost packet cancels it."""
        #: Its button, and the name of the request.
        self.button, self.asked_by = button, asked_by
        self._hold_s, self.begins_until_s = hold_s, begins_until_s
        self._first_sent_s = 0.0
        self._packets_down = self._packets_up = 0
        self._is_given_up = False
        #: Whether it was completely released, or was cancelled.
        self.is_over = False
        #: Whether the port was closed for one of the packets.
        self.was_refused = False
        #: Reason why it must not begin any more, as a sentence; empty if it may.
        self.outdated_by = ""

    @property
    def was_sent(self) -> bool:
        """Whether a packet with the button pressed was sent."""
        return self._packets_down > 0

    @property
    def was_released(self) -> bool:
        return self._packets_up >= PACKETS_PER_LEVEL

    @property
    def may_be_lost(self) -> bool:
        """Whether the button was pressed in fewer than PACKETS_PER_LEVEL packets so far."""
        return not self.is_over and not self._is_given_up and 0 < self._packets_down < PACKETS_PER_LEVEL

    def is_down(self, now_s: float) -> bool:
        """Return whether the button is pressed in the next packet."""
        if self.is_over or self._is_given_up:
            return False
        return self._packets_down < PACKETS_PER_LEVEL or now_s < self._first_sent_s + self._hold_s

    def sent(self, was_down: bool, now_s: float) -> None:
        """Record a packet that is sent."""
        if not was_down:
            self._packets_up += self.was_sent and not self.is_over
            self.is_over |= self.was_released
            return
        if not self.was_sent:
            self._first_sent_s = now_s
        self._packets_down += 1

    def unsent(self, was_down: bool) -> None:
        """Record that the packet was not sent after all."""
        if was_down:
            self._packets_down -= 1
        elif self._packets_up:
            self._packets_up -= 1

    def refuse(self) -> None:
        """Record that the port was closed for a packet: a GUI that starts now does not get the rest of the press.

        If only the first packet of the press was sent, the refusal may concern an earlier one, and the press continues.
        If the port is closed, the next packet is refused, too.
        """
        if self._packets_down + self._packets_up > 1:
            self.was_refused = self.is_over = True

    def pressed_elsewhere(self, now_s: float) -> None:
        """Record that another process has pressed the button, and released it."""
        if not self.was_sent:
            self.sent(was_down=True, now_s=now_s)
        self.give_up(at_once=False)

    def give_up(self, *, at_once: bool) -> None:
        """Release the button early; with `at_once`, without packets that report the release."""
        self._is_given_up = True
        self.is_over |= at_once or not self.was_sent

    def outdate(self, sentence: str, now_s: float) -> None:
        """Cancel a press that has not begun, with the reason: its effect may be the opposite by now."""
        if not self.was_sent and now_s > self.begins_until_s:
            self.outdated_by, self.is_over = sentence, True


class Buttons:
    """Current presses, each until it is forgotten."""

    def __init__(self) -> None:
        self._presses: dict[str, Press] = {}
        self._last_down: frozenset[str] = frozenset()  # buttons in the last packet

    def __iter__(self) -> Iterator[Press]:
        return iter(self._presses.values())

    def check_released(self, button: str) -> None:
        """Raise ValueError with a sentence while the button is pressed."""
        if button in self._presses:
            raise ValueError(f"{button} is still being pressed.")

    def of(self, asked_by: str) -> Iterator[Press]:
        """Return the presses of requests of this name."""
        return (each for each in self._presses.values() if each.asked_by == asked_by)

    def press(self, button: str, hold_s: float, begins_until_s: float, asked_by: str) -> Press:
        """Start a press. Raises ValueError with a sentence while the button is pressed."""
        self.check_released(button)
        self._presses[button] = Press(button, hold_s, begins_until_s, asked_by)
        return self._presses[button]

    def newest(self, button: str) -> Press | None:
        """Return the press of a button, unless it was forgotten."""
        return self._presses.get(button)

    def forget(self, button: str) -> None:
        """Allow a button to be pressed again after the end of its press."""
        self._presses.pop(button, None)

    def down(self, now_s: float) -> frozenset[str]:
        """Return the buttons that are pressed in the next packet."""
        return frozenset(button for button, press in self._presses.items() if press.is_down(now_s))

    def sent(self, down: frozenset[str], now_s: float) -> None:
        """Record a packet with these buttons pressed."""
        self._last_down = down
        for button, press in self._presses.items():
            press.sent(button in down, now_s)

    def unsent(self) -> None:
        """Record that the last packet was not sent after all."""
        for button, press in self._presses.items():
            press.unsent(button in self._last_down)
