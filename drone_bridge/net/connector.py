# SPDX-License-Identifier: Apache-2.0
"""Connector: connects to a peer by host name, with retries; cancellation, backoff, taps, and the errors of links."""

import contextlib
import os
import queue
import random
import select
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

from drone_bridge.session.obstacles import Obstacle
from drone_bridge.wire.addresses import address_name


class LinkError(Exception):
    """Base class for link failures. The text is a human-readable sentence."""


#: Set by launch files whose argument for a program's port is not named after the program.
PORT_ARGUMENT = "DRONE_BRIDGE_PORT_ARGUMENT"


class LinkInUseError(LinkError):
    """A port or a serial line that other programs use. They are looked up when the text is needed."""

    #: Argument that chooses another one; empty if unknown.
    argument = ""

    def __init__(self, address: str, place: int | str, users: Callable[[], list[str]], lsof: str) -> None:
        """`place` is the number of the port or the path of the line. `lsof` are the arguments of lsof that find it."""
        super().__init__(address)
        self.address, self.place, self._users, self._lsof = address, place, users, lsof

    def advise(self, values: Mapping[str, object], own: str, launched: str) -> None:
        """Name the argument that chooses another one, by the values that a program was started with.

        `own` is the format of a name of these. `launched` names the program if it belongs to a launch, else it is "".
        """
        name = next((name for name, value in values.items() if value == self.place), "port")
        stem = (os.environ.get(PORT_ARGUMENT) or f"{launched}_port").removesuffix("port")
        is_of_launch = launched and name in ("port", "serial")
        self.argument = f"{stem}{name}:=" if is_of_launch else own.format(name)

    def __str__(self) -> str:
        users = " and ".join(self._users()) or f"another program (`sudo lsof {self._lsof}` shows which)"
        facts = {"address": self.address, "users": users, "argument": self.argument}
        return Obstacle.PORT_IN_USE.sentence(**facts) if self.argument else f"{Obstacle.PORT_IN_USE.reason(**facts)}."


class UnknownHostError(LinkError):
    """Failed look-up: the host name has no address."""


class LinkOutdatedError(LinkError):
    """Address that is no longer valid. The link has to be reopened."""


class LinkCancelledError(LinkError):
    """Cancellation of a wait by our own side."""


class LinkClosedError(LinkError):
    """End of a link to a single peer, after its session has been notified of the disconnect."""


class LinkRefusedError(LinkError):
    """Refused datagram: nothing listens at its destination. The link stays usable, since the peer may still come up."""


def reason(error: Exception) -> str:
    """Return the operating system's description of an error, without Python's errno prefix."""
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


class Selectable(Protocol):
    """Object with a file descriptor for `select.poll`."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable."""


# Taps, which get a copy of the bytes that links receive and send. wire_log.py creates the taps that record them.


#: Directions.
RECEIVED = "received"
SENT = "sent"


class Tap(Protocol):
    """Callback for the bytes of one connection. Called from any thread; it neither blocks nor raises."""

    def __call__(self, direction: str, data: bytes | memoryview, who: str = ..., /) -> None:
        """Log a chunk of a stream (empty at its end) or a datagram. `who` is the peer, on a link with several."""


#: Factory of taps: transport, our address, and the peer's address (empty for a port that serves several peers).
MakeTap = Callable[[str, str, str], Tap]


def no_log(transport: str, own: str, peer: str) -> Tap:
    """Return a tap that logs nothing."""
    return lambda direction, data, who="": None


# Interruptible waiting.


class Cancellation:
    """One-shot flag that `select.poll` can wait for together with sockets.

    `cancel` may be called from any thread and more than once.
    """

    def __init__(self) -> None:
        self.is_set = False
        # Closing one end makes the other readable forever, without a byte that could be lost.
        self._watched, self._trigger = socket.socketpair()

    def cancel(self) -> None:
        """Set the flag and wake all waiting threads."""
        self.is_set = True
        self._trigger.close()

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the flag is set."""
        return self._watched.fileno()

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for the flag or the timeout. Return True if the flag is set."""
        return wait_readable([self], timeout_s)[0]

    def close(self) -> None:
        """Close the descriptors. No thread may be waiting."""
        self.cancel()
        self._watched.close()


def wait_readable(files: Sequence[Selectable], timeout_s: float | None) -> list[bool]:
    """Wait until a file is readable or has failed, or for the timeout. Return for each file whether it is ready."""
    poll = select.poll()
    for file in files:
        poll.register(file, select.POLLIN)
    ready = dict(poll.poll(None if timeout_s is None else timeout_s * 1000))
    return [file.fileno() in ready for file in files]


# Backoff between retries.


FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 5.0
JITTER = 0.25  # of the delay, plus or minus: clients that lost the same peer do not reconnect at the same time


class Backoff:
    """Exponential backoff with jitter, from FIRST_DELAY_S to the longest delay."""

    def __init__(self, source: random.Random | None = None, longest_s: float = LONGEST_DELAY_S) -> None:
        self._random = source or random.Random()
        self._longest_s = longest_s
        self._delay_s = FIRST_DELAY_S

    def next_delay_s(self) -> float:
        """Return the delay before the next attempt, and increase the one after it."""
        # Clamping the jittered delay instead would give half of all clients the same first delay.
        shortest_s = max((1 - JITTER) * self._delay_s, FIRST_DELAY_S)
        longest_s = min((1 + JITTER) * self._delay_s, self._longest_s)
        self._delay_s = min(2 * self._delay_s, self._longest_s)
        return self._random.uniform(shortest_s, longest_s)

    def reset(self) -> None:
        """Start over at FIRST_DELAY_S. Call this once the peer has proved useful, not merely reachable."""
        self._delay_s = FIRST_DELAY_S


# Connecting with retries.


#: Longest delay after a refused connection, or for a device in use: the other end is up, and a vehicle waits.
LONGEST_REFUSED_DELAY_S = 1.0


ConnectedT = TypeVar("ConnectedT")


class RetryingLink:
    """Base class for links that are opened with retries, and whose retries can be cancelled."""

    def __init__(
        self,
        on_failure: Callable[[LinkError, float], None],
        backoff: Backoff | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        """`on_failure` gets the error of each failed attempt and the delay until the next one, s.

        `cancellation` ends all waiting. The default is a private one that only `cancel` sets.
        """
        self._cancellation = cancellation or Cancellation()
        self._owns_cancellation = cancellation is None
        self._on_failure = on_failure
        self.backoff = backoff or Backoff()

    def cancel(self) -> None:
        """Cancel the current wait and all later ones."""
        self._cancellation.cancel()

    def close(self) -> None:
        """Close the cancellation if this object owns it."""
        if self._owns_cancellation:
            self._cancellation.close()

    def _retried(self, connect: Callable[[], ConnectedT]) -> ConnectedT:
        """Call `connect` until it succeeds, and return its result. Raises LinkCancelledError."""
        while True:
            try:
                return connect()
            except LinkCancelledError:
                raise
            except LinkError as error:
                delay_s = self.backoff.next_delay_s()
                if isinstance(error, LinkInUseError) or isinstance(error.__cause__, ConnectionRefusedError):
                    delay_s = min(delay_s, LONGEST_REFUSED_DELAY_S)
                self._on_failure(error, delay_s)
                if self._cancellation.wait(delay_s):
                    raise LinkCancelledError("Connecting was cancelled.") from error


class Connector(RetryingLink, ABC):
    """Base class that connects a socket to a peer, with unlimited retries. Subclasses implement the transport."""

    kind: ClassVar[socket.SocketKind]

    def __init__(
        self,
        host: str,
        port: int,
        on_failure: Callable[[LinkError, float], None],
        backoff: Backoff | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        """See RetryingLink."""
        super().__init__(on_failure, backoff, cancellation)
        self._host = host
        self._port = port

    @property
    def port(self) -> int:
        return self._port

    def _connect_once(self) -> socket.socket:
        """Try each address once, without delay. Raises LinkError and LinkCancelledError."""
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
            except OSError as error:  # IPv6 may be disabled on this machine
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
        """Resolve the host. A name is resolved in a thread: the system's resolver is slow and can't be cancelled."""
        with contextlib.suppress(OSError, ValueError, OverflowError):  # not a numeric address: resolved below
            return socket.getaddrinfo(self._host, self._port, type=self.kind, flags=socket.AI_NUMERICHOST)
        answers: queue.SimpleQueue[list[Any] | OSError] = queue.SimpleQueue()
        done = Cancellation()

        def resolve() -> None:
            try:
                answers.put(list(socket.getaddrinfo(self._host, self._port, type=self.kind)))
            except OSError as error:
                answers.put(error)
            except (ValueError, OverflowError) as error:  # an invalid name, such as 'a..b', or an invalid port
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
