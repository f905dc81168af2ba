# SPDX-License-Identifier: Apache-2.0
"""The last packets to a vehicle, repeated because datagrams may be lost."""

import time
from collections.abc import Callable
from typing import Final

FAREWELLS: Final = 3
#: Between two of them, so that they do not share one another's fate.
FAREWELL_GAP_S: Final = 0.02


def repeat_farewell(send: Callable[[], None]) -> None:
    """Send the last packet FAREWELLS times. `send` may fail but must not raise."""
    for number in range(FAREWELLS):
        if number:
            time.sleep(FAREWELL_GAP_S)
        send()
