# SPDX-License-Identifier: Apache-2.0
"""Messages of a WebSocket, each complete within a limited time and number of fragments."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

MESSAGE_TIMEOUT_S = 5.0
"""Timeout between the first and last fragment of a message."""
MAX_FRAGMENTS = 1024


async def messages_from(connection: ServerConnection) -> AsyncIterator[str | bytes]:
    """Yield the messages of a connection until it ends. Close it if a message is not complete in time."""
    loop = asyncio.get_running_loop()
    while True:
        parts: list[Any] = []
        deadline = None
        try:
            async for part in connection.recv_streaming():
                deadline = deadline or loop.call_later(MESSAGE_TIMEOUT_S, connection.transport.abort)
                parts.append(part)
                if len(parts) > MAX_FRAGMENTS:
                    await connection.close(CloseCode.MESSAGE_TOO_BIG, f"More than {MAX_FRAGMENTS} fragments.")
                    return
        except ConnectionClosed:
            return
        finally:
            if deadline:
                deadline.cancel()
        yield parts[0] if len(parts) == 1 else type(parts[0])().join(parts)
