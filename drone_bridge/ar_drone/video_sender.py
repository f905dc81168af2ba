# SPDX-License-Identifier: Apache-2.0
"""VideoSender: thread that draws and sends the video of an emulated AR.Drone, so that the flight is not delayed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from drone_bridge.ar_drone.flight import View
from drone_bridge.net.connector import Cancellation, wait_readable

#: Period of the checks whether there is a view.
FIRST_VIEW_S = 0.1


class Pictures(Protocol):
    """Pictures as they are sent."""

    rate: float  # pictures per second

    def next(self, view: View) -> bytes:
        """Return the next picture."""


class VideoOutlet(Protocol):
    """Where pictures are sent."""

    @property
    def has_client(self) -> bool:
        """Whether pictures are sent to a client."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with a client."""

    def accept(self) -> None:
        """Take a client that waits, in place of another one."""

    def send(self, data: bytes) -> None:
        """Send a picture."""

    def leave(self) -> None:
        """End the connection of a client."""

    def close(self) -> None:
        """Close it."""


OutletT = TypeVar("OutletT", bound=VideoOutlet)


class VideoSender(Generic[OutletT]):
    """Thread that draws and sends."""

    def __init__(self, outlet: OutletT, pictures: Callable[[], Pictures], report: Callable[[str], None]) -> None:
        """Start the thread. `close` stops it, and closes the outlet.

        Args:
            outlet: where pictures are sent.
            pictures: creates them in the thread at once: OpenCV and the ground take seconds on a busy machine, and
                clients give up after one.
            report: gets a line per change.
        """
        self.outlet, self._make_pictures, self._report = outlet, pictures, report
        self._view: View | None = None
        self._cancellation = Cancellation()
        self._thread = threading.Thread(target=self._run, name="video", daemon=True)
        self._thread.start()

    def show(self, view: View) -> None:
        """Draw the next picture from here, unless the video is stopped."""
        self._view = view

    def close(self) -> None:
        self._cancellation.cancel()
        self._thread.join()
        self._cancellation.close()
        self.outlet.close()

    def _run(self) -> None:
        outlet, due_s, had_client = self.outlet, 0.0, False
        pictures = self._make_pictures()
        while not self._cancellation.is_set:
            left_s = max(due_s - time.monotonic(), 0.0) if outlet.has_client else None
            ready = wait_readable([self._cancellation, outlet], left_s)
            if ready[1]:
                outlet.accept()
            view, now_s = self._view, time.monotonic()
            if view is None:
                due_s = now_s + FIRST_VIEW_S
            elif view.is_stopped:
                outlet.leave()
            elif outlet.has_client and now_s >= due_s:
                due_s = max(due_s + 1 / pictures.rate, now_s)
                outlet.send(pictures.next(view))
            if outlet.has_client != had_client:
                had_client = outlet.has_client
                self._report("video: a client" if had_client else "video: no client")
