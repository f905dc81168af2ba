# SPDX-License-Identifier: Apache-2.0
"""The endpoint for drivers: answers discovery requests and serves all connected drivers."""

import asyncio
import contextlib
import functools
import socket
import time
from collections.abc import Callable
from typing import Any, Final

from drone_bridge.links.backoff import Backoff
from drone_bridge.links.cancellation import Cancellation, Wakeup
from drone_bridge.links.discovery import DiscoveryResponder
from drone_bridge.links.errors import LinkCancelledError
from drone_bridge.links.tcp_clients import TcpClients

#: How long drivers get to read the last packets when the server ends.
GOODBYE_S: Final = 0.1
_LONGEST_WAIT_S: Final = 3600.0


class Drivers:
    """All who are connected, as the one peer of a link node."""

    def __init__(self, endpoint: "DriverEndpoint", peer: str) -> None:
        self._endpoint = endpoint
        #: Who came first.
        self.peer = peer
        self._is_over = False

    def serve(self) -> None:
        """Serve until nobody is connected any more, or the link is cancelled."""
        self._is_over = self._endpoint.serve()

    def close(self) -> None:
        """Close all connections, unless they have ended by themselves."""
        if not self._is_over:
            self._is_over = True
            self._endpoint.hang_up()


class DriverEndpoint:
    """An asyncio loop on the link's thread. `open` waits for the first driver, `serve` for the end of the last one."""

    def __init__(
        self,
        clients: TcpClients,
        responder: DiscoveryResponder | None,
        cancellation: Cancellation,
        wakeup: Wakeup,
        *,
        tick: Callable[[float], float],
        may_be_found: Callable[[], bool],
        on_found: Callable[[str], None],
        on_fault: Callable[[str], None],
    ) -> None:
        """Prepare to serve.

        Args:
            clients: who connects.
            responder: answers who looks for robots; None: nobody does.
            cancellation: ends all waiting.
            wakeup: has `tick` called soon.
            tick: does what is due at a time (time.monotonic), and returns when there is something to do next.
            may_be_found: tells whether there is a robot to be found.
            on_found: is told who was answered.
            on_fault: is told of faults of our own.
        """
        self._clients, self._responder, self._cancellation, self._wakeup = clients, responder, cancellation, wakeup
        self._tick, self._may_be_found, self._on_found, self._on_fault = tick, may_be_found, on_found, on_fault
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._report_fault)
        self._changed = asyncio.Event()
        self.backoff = Backoff()

    @property
    def port(self) -> int:
        """Where drivers connect."""
        return self._clients.port

    def changed(self) -> None:
        """Have `tick` called, on the link's thread."""
        self._changed.set()

    def open(self) -> Drivers:
        """Wait for a driver. Raises LinkCancelledError."""
        self._run_until(lambda: bool(self._clients.connections))
        if self._cancellation.is_set:
            raise LinkCancelledError("Waiting for drivers was cancelled.")
        return Drivers(self, self._clients.connections[0].peer)

    def serve(self) -> bool:
        """Serve until nobody is connected any more; return whether it is so, and not that the link is cancelled."""
        while self._clients.connections and not self._cancellation.is_set:
            # Somebody may come in the very turn of the loop in which the last one goes.
            self._run_until(lambda: not self._clients.connections)
        return not self._clients.connections

    def hang_up(self) -> None:
        """Close all connections, and let what was said before go out."""
        if self._clients.connections:
            self._clients.hang_up()
            self._loop.run_until_complete(asyncio.sleep(GOODBYE_S))

    def close(self) -> None:
        """Give everything back, once the link's thread has ended."""
        self._clients.close()
        if self._responder:
            self._responder.close()
        self._loop.close()

    def _run_until(self, is_over: Callable[[], bool]) -> None:
        self._loop.run_until_complete(self._turn_until(is_over))

    async def _turn_until(self, is_over: Callable[[], bool]) -> None:
        await self._clients.start()
        with contextlib.ExitStack() as stack:
            self._watch(self._cancellation, self._changed.set, stack)
            self._watch(self._wakeup, self._wake, stack)
            for opened in self._responder.sockets if self._responder else ():
                self._watch(opened, functools.partial(self._answer, opened), stack)
            while not self._cancellation.is_set and not is_over():
                self._changed.clear()
                wait_s = self._tick(time.monotonic()) - time.monotonic()
                if wait_s > 0 and not self._cancellation.is_set and not is_over():
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(self._changed.wait(), min(wait_s, _LONGEST_WAIT_S))
                else:
                    await asyncio.sleep(0)

    def _watch(self, file: Any, callback: Callable[[], None], stack: contextlib.ExitStack) -> None:
        self._loop.add_reader(file.fileno(), callback)
        stack.callback(self._loop.remove_reader, file.fileno())

    def _wake(self) -> None:
        self._wakeup.clear()
        self._changed.set()

    def _answer(self, readable: socket.socket) -> None:
        assert self._responder
        for peer in self._responder.answer(readable, is_silent=not self._may_be_found()):
            self._on_found(peer)

    def _report_fault(self, _: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self._on_fault(f"{context.get('message')}: {error!r}" if error else str(context.get("message")))
