# SPDX-License-Identifier: Apache-2.0
"""RosbridgeServer: connections of rosbridge's clients. What uses ROS runs on the executor's thread, by the inbox."""

import asyncio
import contextlib
from functools import partial

from rclpy.node import Node
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from drone_bridge.ros.steady_timer import steady_timer
from drone_bridge.tools.web.access import MAX_VIEWERS
from drone_bridge.tools.web.calls import Calls
from drone_bridge.tools.web.client_goals import ClientGoals
from drone_bridge.tools.web.inbox import Inbox
from drone_bridge.tools.web.messages import messages_from
from drone_bridge.tools.web.outbox import Outbox
from drone_bridge.tools.web.rosbridge.client import RosbridgeClient

LOOK_S = 1.0
"""Period of looking for the action servers of goals, s."""


class RosbridgeServer:
    """Handler of connections."""

    def __init__(self, node: Node, inbox: Inbox, calls: Calls) -> None:
        self._node, self._inbox, self._calls = node, inbox, calls
        self._clients: set[RosbridgeClient] = set()
        steady_timer(node, LOOK_S, self._look)

    async def __call__(self, connection: ServerConnection, may_change: bool) -> None:
        """Serve a client until it disconnects."""
        if len(self._clients) >= MAX_VIEWERS:
            await connection.close(CloseCode.TRY_AGAIN_LATER, f"The limit of {MAX_VIEWERS} clients is reached.")
            return
        loop, filled = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(filled.set)

        outbox = Outbox(wake, large_bytes=0)  # of each topic, the newest message waits
        goals = ClientGoals(self._node, self._inbox)
        client = RosbridgeClient(self._node, self._calls, goals, outbox, may_change=may_change)
        self._clients.add(client)
        sending = asyncio.ensure_future(_send(connection, client, outbox, filled))
        try:
            async for frame in messages_from(connection):
                self._inbox.put(partial(client.receive, frame))
                await self._inbox.done()  # until then, the next request stays in the socket
        finally:
            sending.cancel()
            self._clients.discard(client)
            self._inbox.put(client.close)

    def _look(self) -> None:
        for client in tuple(self._clients):
            client.goals.look()


async def _send(connection: ServerConnection, client: RosbridgeClient, outbox: Outbox, filled: asyncio.Event) -> None:
    """Send what waits for a client, at its pace. Messages are converted on another thread, and only those."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(ConnectionClosed):
        while True:
            await filled.wait()
            filled.clear()
            while waiting := outbox.pop():
                if text := await loop.run_in_executor(None, client.text, waiting):
                    await connection.send(text)
