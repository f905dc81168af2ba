# SPDX-License-Identifier: Apache-2.0
"""EmergencyBit: the bit of REF that cuts the motors when it is pressed, and that ends an emergency. Pure.

It toggles, and nothing acknowledges it, so navdata decides what a press would mean. It is pressed for PRESS_S, and then
released, as by last words. After any doubt it is up until navdata decides, but a call in a doubt about nothing presses.
An emergency waits from its call to its outcome.

The first row that applies decides, else nothing changes. An empty cell is any:

| the bit is | event | navdata shows | waits | then it is | answer |
|---|---|---|---|---|---|
| down for reset | emergency is called |  |  | up until navdata decides |  |
|  | emergency is called | an emergency |  | as before | The motors are off already. |
| down | emergency is called |  |  | as before |  |
| up until navdata decides | emergency is called |  | an emergency, one that is too old | as before |  |
|  | emergency is called | an emergency, before a stall |  | up until navdata decides |  |
|  | emergency is called |  |  | down |  |
| down, up until navdata decides | reset is called |  |  | as before | \
emergency was called just now. Look at the drone, and call again. |
| up | reset is called |  |  | down for reset |  |
| down, up until navdata decides | navdata arrives | an emergency |  | up |  |
| up until navdata decides | navdata arrives | no emergency | an emergency | down |  |
| down for reset, up until navdata decides | navdata arrives | no emergency |  | up |  |
| down, down for reset | it is released |  |  | up |  |
|  | a stall |  |  | up until navdata decides |  |
"""

import math
from collections.abc import Set
from functools import cache
from typing import NamedTuple

PRESS_S = 0.5
#: Packets without the bit between two presses, as some get lost.
RELEASE_PACKETS = 3
# The bit.
UP, RESETTING, PRESSED, DOUBTED = "up", "down for reset", "down", "up until navdata decides"
# Events.
CALLED, RESET_CALLED, REPORTED = "emergency is called", "reset is called", "navdata arrives"
RELEASED, STALLED = "it is released", "a stall"
# What fresh navdata shows, and who waits.
SHOWN, SHOWN_BEFORE, NOT_SHOWN, UNKNOWN = "an emergency", "an emergency, before a stall", "no emergency", "nothing"
WAITS, TOO_OLD, NOBODY = "an emergency", "one that is too old", "nobody"
# Answers.
OFF = "The motors are off already."
JUST_CALLED = "emergency was called just now. Look at the drone, and call again."


class BitRow(NamedTuple):
    """The situations in which a row applies, the next state, unless it is empty, and the answer to a call."""

    bits: Set[str] = frozenset()
    events: Set[str] = frozenset()
    shown: Set[str] = frozenset()
    waits: Set[str] = frozenset()
    then: str = ""
    answer: str = ""


ROWS = (
    BitRow({RESETTING}, {CALLED}, then=DOUBTED),
    BitRow(events={CALLED}, shown={SHOWN}, answer=OFF),
    BitRow({PRESSED}, {CALLED}),
    BitRow({DOUBTED}, {CALLED}, waits={WAITS, TOO_OLD}),
    BitRow(events={CALLED}, shown={SHOWN_BEFORE}, then=DOUBTED),
    BitRow(events={CALLED}, then=PRESSED),
    BitRow({PRESSED, DOUBTED}, {RESET_CALLED}, answer=JUST_CALLED),
    BitRow({UP}, {RESET_CALLED}, then=RESETTING),
    BitRow({PRESSED, DOUBTED}, {REPORTED}, {SHOWN}, then=UP),
    BitRow({DOUBTED}, {REPORTED}, {NOT_SHOWN}, {WAITS}, then=PRESSED),
    BitRow({RESETTING, DOUBTED}, {REPORTED}, {NOT_SHOWN}, then=UP),
    BitRow({RESETTING, PRESSED}, {RELEASED}, then=UP),
    BitRow(events={STALLED}, then=DOUBTED),
)


@cache
def row_of(*situation: str) -> BitRow:
    """Return the row for a bit, an event, what navdata shows, and who waits."""
    for row in ROWS:
        if all(not any_of or each in any_of for any_of, each in zip(row, situation, strict=False)):
            return row
    return BitRow()


class EmergencyBit:
    """The bit in the packets to one drone."""

    def __init__(self) -> None:
        """Start released."""
        self.state, self._until_s = UP, math.inf
        # Whether a packet has carried this press, and packets since the last one that has carried any.
        self._is_sent, self._released = False, RELEASE_PACKETS

    @property
    def is_down(self) -> bool:
        """Whether it is being pressed."""
        return self.state in (RESETTING, PRESSED)

    def on(self, event: str, now_s: float, shown: str = UNKNOWN, waits: str = NOBODY) -> str:
        """Change by the row that applies, and return its answer."""
        row = row_of(self.state, event, shown, waits)
        if row.then:
            self.state, self._until_s, self._is_sent = row.then, now_s + PRESS_S, False
        return row.answer

    def in_packet(self, now_s: float) -> bool:
        """Return whether the bit is set in the packet that is sent now."""
        if now_s >= self._until_s:
            self.on(RELEASED, now_s)
        # Packets without it come before a press, which needs its own edge.
        if not self.is_down or (not self._is_sent and self._released < RELEASE_PACKETS):
            self._released += 1
            return False
        self._is_sent, self._released = True, 0
        return True
