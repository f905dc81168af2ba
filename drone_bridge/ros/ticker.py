# SPDX-License-Identifier: Apache-2.0
"""Ticker: calls a function at steady intervals of real time, in a thread of its own."""

import threading
import traceback
from collections.abc import Callable


class Ticker:
    """Calls a function periodically in real time, until it is stopped."""

    def __init__(self, name: str, period_s: float, call: Callable[[], None], on_failure: Callable[[str], None]) -> None:
        """`call` must not block for long; its exceptions go to `on_failure` as tracebacks."""
        self._period_s = period_s
        self._call = call
        self._on_failure = on_failure
        # Held until it is to stop. To wait for an Event makes another lock each time.
        self._running = threading.Lock()
        self._running.acquire()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, after a call in progress has returned."""
        self._running.release()
        self._thread.join()

    def _run(self) -> None:
        while not self._running.acquire(timeout=self._period_s):
            try:
                self._call()
            except Exception:
                self._on_failure(traceback.format_exc())
