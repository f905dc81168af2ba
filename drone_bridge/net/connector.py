# SPDX-License-Identifier: Apache-2.0
"""Connector: connects to a peer by name, with retries; what it waits and is cancelled with, and the errors of links."""

import contextlib
import os
import queue
import random
import select
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

from drone_bridge.wire.addresses import address_name


class LinkError(Exception):
    """The link is no longer usable; the text is a human-readable sentence."""


class UnknownHostError(LinkError):
    """No address is known for the peer's name."""


class LinkTimeoutError(LinkError):
    """The peer did not respond in time."""


class LinkCancelledError(LinkError):
    """Waiting was cancelled by our own side."""


class LinkClosedError(LinkError):
    """The one peer of a link has gone, as its session knows."""


class LinkRefusedError(LinkError):
    """Nobody listens at the datagram's destination. The link stays usable, as the peer may still come up."""


def reason(error: Exception) -> str:
    """Return the operating system's description of an error, without Python's errno prefix."""
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


class Selectable(Protocol):
    """Anything with a descriptor for `select.poll`."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable."""


# Taps, which get a copy of what links read and send. wire_log.py makes those that write it down.


#: The directions.
RECEIVED = "received"
SENT = "sent"


class Tap(Protocol):
    """Gets the bytes of one connection, from any thread. It neither blocks nor raises."""

    def __call__(self, direction: str, data: bytes | memoryview, who: str = ..., /) -> None:
        """Take a piece of a stream, empty at its end, or a datagram, of this peer where there may be several."""


#: Makes the tap of a connection: of tcp or udp, our address, and the peer's, empty for a port that serves anybody.
MakeTap = Callable[[str, str, str], Tap]


# Ways to interrupt another thread's wait, to cancel it or to give it work.


class Cancellation:
    """A flag that is set once, and that `select.poll` can wait for together with sockets.

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


def wait_readable(files: Sequence[Selectable], timeout_s: float | None) -> list[bool]:
    """Wait until a file is readable or has failed, or for the timeout; return for each whether it is."""
    poll = select.poll()
    for file in files:
        poll.register(file, select.POLLIN)
    ready = dict(poll.poll(None if timeout_s is None else timeout_s * 1000))
    return [file.fileno() in ready for file in files]


# How long to wait before trying again.


FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 5.0
JITTER = 0.25  # of the delay, to both sides: machines that lost one peer together do not come back together


class Backoff:
    """Delays that double from attempt to attempt, with jitter, from FIRST_DELAY_S to the longest."""

    def __init__(self, source: random.Random | None = None, longest_s: float = LONGEST_DELAY_S) -> None:
        self._random = source or random.Random()
        self._longest_s = longest_s
        self._delay_s = FIRST_DELAY_S

    def next_delay_s(self) -> float:
        """Return the delay before the next attempt, and increase the one after it."""
        # Cutting a jittered delay off at the bounds would give half of all machines the very same first delay.
        shortest_s = max((1 - JITTER) * self._delay_s, FIRST_DELAY_S)
        longest_s = min((1 + JITTER) * self._delay_s, self._longest_s)
        self._delay_s = min(2 * self._delay_s, self._longest_s)
        return self._random.uniform(shortest_s, longest_s)

    def reset(self) -> None:
        """Start over. To be called once the peer has proved useful, not merely reachable."""
        self._delay_s = FIRST_DELAY_S


# Connects to a host by name, with retries, for a thread that can be cancelled.


#: The longest delay after a port refused: its machine is there, its program may be about to be, and a vehicle waits.
LONGEST_REFUSED_DELAY_S = 1.0


ConnectedT = TypeVar("ConnectedT")


class Retrying:
    """Opens something again and again, for a thread that can be cancelled."""

    def __init__(
        self,
        on_failure: Callable[[LinkError, float], None],
        backoff: Backoff | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        """`on_failure` gets the error of each attempt that failed and the seconds until the next one.

        `cancellation` ends all waiting, by default one that only `cancel` sets.
        """
        self._cancellation = cancellation or Cancellation()
        self._owns_cancellation = cancellation is None
        self._on_failure = on_failure
        self.backoff = backoff or Backoff()

    def cancel(self) -> None:
        """End all waiting, now and later."""
        self._cancellation.cancel()

    def close(self) -> None:
        """Close what is waited with."""
        if self._owns_cancellation:
            self._cancellation.close()

    def _retried(self, connect: Callable[[], ConnectedT]) -> ConnectedT:
        """Return what a function returns once it raises no LinkError. Raises LinkCancelledError."""
        while True:
            try:
                return connect()
            except LinkCancelledError:
                raise
            except LinkError as error:
                delay_s = self.backoff.next_delay_s()
                if isinstance(error.__cause__, ConnectionRefusedError):
                    delay_s = min(delay_s, LONGEST_REFUSED_DELAY_S)
                self._on_failure(error, delay_s)
                if self._cancellation.wait(delay_s):
                    raise LinkCancelledError("Connecting was cancelled.") from error


class Connector(Retrying, ABC):
    """Connects a socket to a peer, retrying forever. How depends on the transport."""

    kind: ClassVar[socket.SocketKind]

    def __init__(
        self,
        host: str,
        port: int,
        on_failure: Callable[[LinkError, float], None],
        backoff: Backoff | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        """See Retrying."""
        super().__init__(on_failure, backoff, cancellation)
        self._host = host
        self._port = port

    @property
    def port(self) -> int:
        return self._port

    def _connect_once(self) -> socket.socket:
        """Try every address once, without delay. Raises LinkError and LinkCancelledError."""
        try:
            return self._connect_to_any(self._resolve())
        except OSError as error:
            is_unknown = isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME
            sentence = f"{address_name(self._host, self._port)} can't be reached: {reason(error)}."
            raise (UnknownHostError if is_unknown else LinkError)(sentence) from error

    @abstractmethod
    def _connect_to(self, connecting: socket.socket, address: Any) -> None:
        """Connect a new socket. Raises OSError and LinkCancelledError."""

    def _connect_to_any(self, addresses: Iterable[Any]) -> socket.socket:
        failure = OSError("the name does not resolve to an address")
        for family, kind, protocol, _, address in addresses:
            try:
                connecting = socket.socket(family, kind, protocol)
            except OSError as error:  # IPv6 may be turned off, whatever the name stands for
                failure = error
                continue
            try:
                self._connect_to(connecting, address)
            except OSError as error:
                connecting.close()
                failure = error
            except LinkCancelledError:
                connecting.close()
                raise
            else:
                return connecting
        raise failure

    def _resolve(self) -> list[Any]:
        """Look the host up; a name in a thread, as the system's resolver can't be cancelled and may take long."""
        with contextlib.suppress(OSError, ValueError, OverflowError):  # the answer about what is no address is below
            return socket.getaddrinfo(self._host, self._port, type=self.kind, flags=socket.AI_NUMERICHOST)
        answers: queue.SimpleQueue[list[Any] | OSError] = queue.SimpleQueue()
        done = Cancellation()

        def resolve() -> None:
            try:
                answers.put(list(socket.getaddrinfo(self._host, self._port, type=self.kind)))
            except OSError as error:
                answers.put(error)
            except (ValueError, OverflowError) as error:  # no name at all, 'a..b' for instance, or no port
                answers.put(OSError(str(error)))
            done.cancel()

        threading.Thread(target=resolve, name="resolve", daemon=True).start()
        wait_readable([done, self._cancellation], None)
        done.close()
        if self._cancellation.is_set:
            raise LinkCancelledError("Connecting was cancelled.")
        answer = answers.get()
        if isinstance(answer, OSError):
            raise answer
        return answer
