# SPDX-License-Identifier: Apache-2.0
"""Takes turns at a session: it belongs to the link's thread, and while that waits, to a service call.

A call that is handed to the link's thread, and whose answer is handed back, takes two thread changes and, per second,
gets through 0.83 of the calls of a script that sends and receives in its callback. With turns it is 1.0: see
benchmark/README.md.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from drone_bridge.net.shared_watch import SharedWatch
from drone_bridge.simulator.bridge.link import RECEIVE_BYTES
from drone_bridge.simulator.bridge.session import SimulatorSession


class Turns:
    """Decides which thread uses the session."""

    def __init__(self, start_requests: Callable[[SimulatorSession], None]) -> None:
        """`start_requests` starts what services ask for."""
        self._start_requests = start_requests
        self._turn = threading.Lock()  # held by the thread whose turn it is
        self._session: SimulatorSession | None = None
        self._watch: SharedWatch | None = None  # that the link's thread waits for
        self._buffer = memoryview(bytearray(RECEIVE_BYTES))
        self._failure: Exception | None = None  # of a call
        self._was_taken = False  # by a call, since the link's thread began to wait

    # For the link's thread.

    @contextlib.contextmanager
    def of(self, session: SimulatorSession) -> Iterator[None]:
        """Use a session, and let calls use it during `wait`."""
        with self._turn:
            self._session, self._failure = session, None
            try:
                yield
            finally:
                self._session = self._watch = None

    def wait(self, watch: SharedWatch, timeout_s: float | None) -> list[bool]:
        """Wait as the watch does. Raises what has gone wrong in a call's turn."""
        self._watch, self._was_taken = watch, False
        self._turn.release()
        try:
            are_readable = watch.wait(timeout_s)
        finally:
            self._turn.acquire()
        if self._failure:
            raise self._failure
        # A call may have read what was there to be read; what is still there ends the next wait at once.
        return [False] * len(are_readable) if self._was_taken else are_readable

    # For the executor.

    def call(self, patience_s: float) -> bool:
        """Start requests and receive their answers, if the link's thread waits and nothing else is pending.

        Return False if there is something left to do for the link's thread, which then has to be woken.
        """
        if not self._turn.acquire(blocking=False):
            return False
        try:
            session, watch = self._session, self._watch
            return bool(session and watch and session.is_idle and self._exchange(session, watch, patience_s))
        except Exception as error:
            self._failure = error
            return False
        finally:
            self._turn.release()

    def _exchange(self, session: SimulatorSession, watch: SharedWatch, patience_s: float) -> bool:
        requests, deadline_s = session.requests, time.monotonic() + patience_s
        self._was_taken, has_events = True, False
        with watch.taken_over(requests.stream) as wait_for_it_alone:
            # Nothing of what was sent before is unread, so there is room for these, and sending does not wait.
            self._start_requests(session)
            while requests.outstanding and wait_for_it_alone(deadline_s - time.monotonic()):
                for event in requests.read(self._buffer):
                    session.handle(event, requests)
                    has_events = True
        return session.is_idle and not has_events
