# SPDX-License-Identifier: Apache-2.0
"""A fixed rate for the loop of a thread that can be cancelled."""

import time

from drone_bridge.net.cancellation import Cancellation
from drone_bridge.net.errors import LinkCancelledError


class FixedRate:
    """Paces a loop by the monotonic clock. After a delay it goes on from there, without a burst to catch up."""

    def __init__(self, cancellation: Cancellation) -> None:
        self._cancellation = cancellation
        self._due = time.monotonic()

    def wait(self, period_s: float) -> None:
        """Wait until the next step is due. Raises LinkCancelledError."""
        now = time.monotonic()
        self._due = max(self._due + period_s, now - period_s)
        if self._cancellation.wait(max(0.0, self._due - now)):
            raise LinkCancelledError("Pacing was cancelled.")
