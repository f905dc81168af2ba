# SPDX-License-Identifier: Apache-2.0
"""The endpoint for drivers: answers discovery requests and serves all connected drivers."""

import asyncio
import contextlib
import functools
import socket
import time
from collections.abc import Callable
from typing import Any, Final

from drone_bridge.net.connector import Backoff, Cancellation, LinkCancelledError, Wakeup
from drone_bridge.net.discovery import DiscoveryResponder
from drone_bridge.net.tcp_clients import TcpClients
from drone_bridge.ros.stall_watch import LoopSettling

#: How long drivers have to read the last packets when the server ends.
GOODBYE_S: Final = 0.1
_LONGEST_WAIT_S: Final = 3600.0


class Drivers:
    """All connected drivers, as the one peer of a link node."""

    def __init__(self, endpoint: "DriverEndpoint", peer: str) -> None:
        self._endpoint = endpoint
        #: The first driver.
        self.peer = peer
        self._has_ended = False

    def serve(self) -> None:
        """Serve until no driver is connected, or the link is cancelled."""
        self._has_ended = self._endpoint.serve()

    def close(self) -> None:
        """Close all connections that are still open."""
        if not self._has_ended:
            self._has_ended = True
            self._endpoint.hang_up()


class DriverEndpoint:
    """An asyncio loop on the link's thread. `open` waits for the first driver, `serve` until the last one is gone."""

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
            clients: the TCP server.
            responder: answers discovery requests; None for no discovery.
            cancellation: ends all waiting.
            wakeup: triggers `tick`.
            tick: does what is due at a time (time.monotonic), and returns when it is due next.
            may_be_found: returns whether discovery requests are to be answered.
            on_found: gets the address of each peer that was answered.
            on_fault: gets a sentence about each internal error.
        """
        self._clients, self._responder, self._cancellation, self._wakeup = clients, responder, cancellation, wakeup
        self._tick, self._may_be_found, self._on_found, self._on_fault = tick, may_be_found, on_found, on_fault
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._report_fault)
        self._changed = asyncio.Event()
        #: Whether what drivers say may have waited while this process stood still.
        self.settling = LoopSettling(self._loop)
        self.backoff = Backoff()

    @property
    def port(self) -> int:
        return self._clients.port

    def changed(self) -> None:
        """Trigger `tick`. For the link's thread."""
        self._changed.set()

    def open(self) -> Drivers:
        """Wait for a driver. Raises LinkCancelledError."""
        while True:
            self._run_until(lambda: bool(self._clients.connections))
            if self._cancellation.is_set:
                raise LinkCancelledError("Waiting for drivers was cancelled.")
            if connections := self._clients.connections:  # else it had reset its connection before the loop ended
                return Drivers(self, connections[0].peer)

    def serve(self) -> bool:
        """Serve until no driver is connected or the link is cancelled; return whether no driver is connected."""
        while self._clients.connections and not self._cancellation.is_set:
            # A driver may connect in the same turn of the loop in which the last one disconnects.
            self._run_until(lambda: not self._clients.connections)
        return not self._clients.connections

    def hang_up(self) -> None:
        """Close all connections after sending what is queued."""
        if self._clients.connections:
            self._clients.hang_up()
            self._loop.run_until_complete(asyncio.sleep(GOODBYE_S))

    def close(self) -> None:
        """Release everything, once the link's thread has ended."""
        self._clients.close()
        if self._responder:
            self._responder.close()
        self._loop.close()

    def _run_until(self, is_done: Callable[[], bool]) -> None:
        self._loop.run_until_complete(self._turn_until(is_done))

    async def _turn_until(self, is_done: Callable[[], bool]) -> None:
        await self._clients.start()
        with contextlib.ExitStack() as stack:
            self._watch(self._cancellation, self._changed.set, stack)
            self._watch(self._wakeup, self._wake, stack)
            for opened in self._responder.sockets if self._responder else ():
                self._watch(opened, functools.partial(self._answer, opened), stack)
            while not self._cancellation.is_set and not is_done():
                self._changed.clear()
                self.settling.look()
                wait_s = self._tick(time.monotonic()) - time.monotonic()
                if wait_s > 0 and not self._cancellation.is_set and not is_done():
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
