# SPDX-License-Identifier: Apache-2.0
"""Viewers: each has a connection of its own to the Foxglove server, and an outbox between the two."""

import asyncio

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from drone_bridge.tools.web.front_door import FOXGLOVE_SUBPROTOCOL
from drone_bridge.tools.web.outbox import Outbox, OverflowingError
from drone_bridge.tools.web.subscriptions import RETRY_DELAY_S, Subscriptions


class Relay:
    """Passes frames between viewers and the Foxglove server, at the pace that each viewer can take."""

    def __init__(self, host: str, port: int, max_viewers: int) -> None:
        """Prepare to connect viewers to the Foxglove server that listens there."""
        self._address = f"ws://{host}:{port}"
        self._max_viewers = max_viewers
        self.viewers: set[ServerConnection] = set()
        self._entering = asyncio.Lock()

    async def __call__(self, viewer: ServerConnection) -> None:
        """Serve a viewer until either side leaves."""
        if len(self.viewers) >= self._max_viewers:
            await viewer.close(CloseCode.TRY_AGAIN_LATER, f"{self._max_viewers} viewers are looking already.")
            return
        self.viewers.add(viewer)
        try:
            # One after the other, so that the server numbers its clients and its sinks alike: graph.py relies on it.
            async with self._entering:
                server = await connect(
                    self._address,
                    subprotocols=[FOXGLOVE_SUBPROTOCOL],
                    compression=None,
                    proxy=None,
                    max_size=None,
                    ping_interval=None,
                    close_timeout=0.2,
                )
                greeting = await server.recv()
            async with server:
                await self._pass_on(viewer, server, greeting)
        finally:
            self.viewers.discard(viewer)

    async def _pass_on(self, viewer: ServerConnection, server: ClientConnection, greeting: str | bytes) -> None:
        outbox = Outbox()
        outbox.put(greeting)
        filled = asyncio.Event()
        filled.set()

        subscriptions = Subscriptions()
        refused = asyncio.Event()

        async def read_server() -> None:
            async for frame in server:
                if isinstance(frame, str) and subscriptions.refuses(frame):
                    refused.set()
                    continue
                outbox.put(frame)
                filled.set()

        async def subscribe_again() -> None:
            while True:
                await refused.wait()
                refused.clear()
                await asyncio.sleep(RETRY_DELAY_S)
                if request := subscriptions.request_again():
                    await server.send(request)

        async def write_viewer() -> None:
            while True:
                await filled.wait()
                filled.clear()
                while (frame := outbox.pop()) is not None:
                    await viewer.send(frame)  # waits while the viewer's socket is full

        async def read_viewer() -> None:
            async for frame in viewer:
                if isinstance(frame, str):
                    subscriptions.note(frame)
                await server.send(frame)

        tasks = [asyncio.ensure_future(work()) for work in (read_server, subscribe_again, write_viewer, read_viewer)]
        done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        for task in done:
            error = task.exception()
            if isinstance(error, OverflowingError):
                await viewer.close(CloseCode.TRY_AGAIN_LATER, "The connection is too slow.")
            elif error is not None and not isinstance(error, ConnectionClosed):
                raise error
