# SPDX-License-Identifier: Apache-2.0
"""Ways to interrupt another thread's wait, to cancel it or to give it work."""

import contextlib
import select
import socket
from collections.abc import Sequence
from typing import Final, Protocol

_WAKE_BYTES: Final = 64  # more than one is left only when waking was faster than waiting


class Selectable(Protocol):
    """Anything with a descriptor for select and poll."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable."""


class Cancellation:
    """A flag that is set once, and that select and poll can wait for together with sockets.

    `cancel` may be called from any thread and more than once.
    """

    def __init__(self) -> None:
        self.is_set = False
        # Closing one end of the pair makes the other readable forever: no byte to write, and none to lose.
        self._watched, self._trigger = socket.socketpair()

    def cancel(self) -> None:
        """Set the flag and wake all waiting threads."""
        self.is_set = True
        self._trigger.close()

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with the flag."""
        return self._watched.fileno()

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until the flag is set or the timeout has passed; return whether it is set."""
        return wait_readable([self], timeout_s)[0]

    def close(self) -> None:
        """Close the descriptors, when no thread waits any more."""
        self.cancel()
        self._watched.close()


class Wakeup:
    """Wakes one thread, any number of times, when another has left work for it."""

    def __init__(self) -> None:
        self._watched, self._trigger = socket.socketpair()
        self._watched.setblocking(False)
        self._trigger.setblocking(False)

    def wake(self) -> None:
        """Wake the thread, now or when it next waits. Thread-safe."""
        with contextlib.suppress(OSError):  # full: the wake-up is already pending; closed: no thread waits any more
            self._trigger.send(b"\0")

    def clear(self) -> None:
        """Reset the wake-up. Call it before looking for work."""
        with contextlib.suppress(BlockingIOError):
            while len(self._watched.recv(_WAKE_BYTES)) == _WAKE_BYTES:
                pass

    def fileno(self) -> int:
        """Return the descriptor that is readable when the thread was woken."""
        return self._watched.fileno()

    def close(self) -> None:
        """Close the descriptors, when no thread waits any more."""
        self._trigger.close()
        self._watched.close()


class Watch:
    """Waits on the same open files repeatedly, without registering them each time."""

    def __init__(self, files: Sequence[Selectable]) -> None:
        self._poll = select.poll()
        for file in files:
            self._poll.register(file, select.POLLIN)
        self._descriptors = [file.fileno() for file in files]

    def wait(self, timeout_s: float | None) -> list[bool]:
        """Wait until a file is readable or has failed, or for the timeout; return for each whether it is."""
        ready = dict(self._poll.poll(None if timeout_s is None else timeout_s * 1000))
        return [descriptor in ready for descriptor in self._descriptors]


def wait_readable(files: Sequence[Selectable], timeout_s: float | None) -> list[bool]:
    """Wait until a file is readable or has failed, or for the timeout; return for each whether it is."""
    return Watch(files).wait(timeout_s)
