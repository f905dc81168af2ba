# SPDX-License-Identifier: Apache-2.0
"""Ticker: periodic callback in real time, in a separate thread."""

import threading
import traceback
from collections.abc import Callable


class Ticker:
    """Thread that calls a function periodically in real time, until `stop`."""

    def __init__(self, name: str, period_s: float, call: Callable[[], None], on_failure: Callable[[str], None]) -> None:
        """`call` must not block for long. Its exceptions are passed to `on_failure` as tracebacks."""
        #: Period, s. May be changed from the called function.
        self.period_s = period_s
        self._call = call
        self._on_failure = on_failure
        # Locked until `stop`. An Event would allocate a lock for each wait.
        self._running = threading.Lock()
        self._running.acquire()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, after a call in progress."""
        self._running.release()
        self._thread.join()

    def _run(self) -> None:
        while not self._running.acquire(timeout=self.period_s):
            try:
                self._call()
            except Exception:
                self._on_failure(traceback.format_exc())
