# SPDX-License-Identifier: Apache-2.0
"""Relay: connects each viewer to the Foxglove server, with an outbox for its subscriptions.

The Foxglove server announces topics and services, and calls services. Messages of topics bypass it, because it queues
them by number, of any size.
"""

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.protocol import State

from drone_bridge.tools.web.access import MAX_VIEWERS, VIEW_ONLY
from drone_bridge.tools.web.gateway import FOXGLOVE_SUBPROTOCOL
from drone_bridge.tools.web.messages import messages_from
from drone_bridge.tools.web.outbox import Outbox
from drone_bridge.wire.json_numbers import whole_number

ROOM_PERIOD_S = 0.1
"""Retry interval for messages of the Foxglove server without room in the outbox, s."""
_WARNING, _ERROR = 1, 2  # levels of a status message in Foxglove's protocol
_MAX_ID = 2**32 - 1
# For viewers that may not make changes: permitted announcements, hidden messages of the server, and the one permitted
# request besides subscriptions.
_CAPABILITIES = {"playbackControl", "time"}
_UNHEARD = {"advertiseServices", "unadvertiseServices"}
_PLAYBACK_CONTROL = b"\x03"


async def _at_once() -> None:
    pass


class Relay:
    """Sends viewers their subscriptions, at the pace of each viewer."""

    def __init__(
        self,
        host: str,
        port: int,
        on_subscribed: Callable[[int, int, bool], None],
        followed: Callable[[], Awaitable[object]] = _at_once,
    ) -> None:
        """Prepare to connect viewers to the Foxglove server.

        Args:
            host: address of the Foxglove server.
            port: port of the Foxglove server.
            on_subscribed: callback on the event loop with the numbers of a viewer and a channel, and whether it
                subscribes or unsubscribes.
            followed: waits until earlier requests of viewers are done. Until then, a viewer's next request stays in its
                socket, so that memory is limited.
        """
        self._address = f"ws://{host}:{port}"
        self._on_subscribed = on_subscribed
        self._followed = followed
        self._numbers = itertools.count(1)
        self._outboxes: dict[int, Outbox] = {}
        self._present: Counter[bool] = Counter()  # number of viewers by permission to make changes

    @property
    def has_viewers(self) -> bool:
        """Whether a viewer is connected."""
        return bool(self._outboxes)

    def publish(self, channel: int, viewer: int | None, data: bytes, time_ns: int) -> None:
        """Send a message of a topic to one viewer, or to all that subscribe to it. Thread-safe."""
        for number, outbox in list(self._outboxes.items()):
            if viewer is None or viewer == number:
                outbox.put(channel, data, time_ns)

    def send_all(self, content: str | bytes) -> None:
        """Send a message to all viewers on behalf of the Foxglove server. Thread-safe."""
        for outbox in list(self._outboxes.values()):
            outbox.put_control(content)

    def refuse(self, viewer: int, channel: int) -> None:
        """Report an unknown or removed channel to a viewer. Thread-safe."""
        if outbox := self._outboxes.get(viewer):
            outbox.withdraw(channel)
            outbox.put_control(_status(_ERROR, f"Unknown channel ID: {channel}"))

    def withdraw(self, channel: int) -> None:
        """End all subscriptions to a channel. Thread-safe."""
        for outbox in list(self._outboxes.values()):
            outbox.withdraw(channel)

    async def __call__(self, viewer: ServerConnection, may_change: bool) -> None:
        """Serve a viewer until either side disconnects. Viewers without permission are not told about changes."""
        if self._present[may_change] >= MAX_VIEWERS:
            await viewer.close(CloseCode.TRY_AGAIN_LATER, f"The limit of {MAX_VIEWERS} viewers is reached.")
            return
        loop = asyncio.get_running_loop()
        filled = asyncio.Event()
        number, outbox = next(self._numbers), Outbox(wake=lambda: loop.call_soon_threadsafe(filled.set))
        self._outboxes[number] = outbox
        self._present[may_change] += 1
        try:
            async with connect(
                self._address,
                subprotocols=[FOXGLOVE_SUBPROTOCOL],
                compression=None,
                proxy=None,
                max_size=None,
                ping_interval=None,
                close_timeout=0.2,
            ) as server:
                await self._serve(
                    self._take_from_server(server, outbox, may_change),
                    self._send_to_viewer(viewer, outbox, filled),
                    self._take_from_viewer(viewer, server, number, outbox, may_change),
                )
        finally:
            del self._outboxes[number]
            self._present[may_change] -= 1
            for channel in outbox.channels():
                self._on_subscribed(number, channel, False)

    async def _serve(self, *work: Any) -> None:
        """Run all tasks of a viewer concurrently, until one of them ends."""
        tasks = [asyncio.ensure_future(each) for each in work]
        done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        for task in done:
            if (error := task.exception()) and not isinstance(error, ConnectionClosed):
                raise error

    async def _take_from_server(self, server: ClientConnection, outbox: Outbox, may_change: bool) -> None:
        async for frame in server:
            heard = frame if may_change else _for_looking(frame)
            while heard and not outbox.put_control(heard):
                await asyncio.sleep(ROOM_PERIOD_S)

    async def _send_to_viewer(self, viewer: ServerConnection, outbox: Outbox, filled: asyncio.Event) -> None:
        while True:
            await filled.wait()
            filled.clear()
            while frame := outbox.pop():
                # waits while the viewer's socket is full
                await viewer.send(frame.fragments() if frame.is_large else frame.content())

    async def _take_from_viewer(
        self, viewer: ServerConnection, server: ClientConnection, number: int, outbox: Outbox, may_change: bool
    ) -> None:
        async for frame in messages_from(viewer):
            if isinstance(frame, str) and self._subscribe(frame, number, outbox):
                pass
            elif may_change or frame[:1] == _PLAYBACK_CONTROL:
                await server.send(frame)
            else:
                outbox.put_control(_status(_ERROR, VIEW_ONLY))
            # Messages and service calls have their own limits. Requests of a disconnected viewer are not awaited: when
            # this node ends, nothing handles them any more.
            if isinstance(frame, str) and viewer.state is State.OPEN:
                await self._followed()

    def _subscribe(self, frame: str, viewer: int, outbox: Outbox) -> bool:
        """Execute a request to subscribe or unsubscribe. Other requests are left to the server."""
        if "ubscribe" not in frame:
            return False
        try:
            request = json.loads(frame)
            if request["op"] == "subscribe":
                wanted = [(_id(each["id"]), _id(each["channelId"])) for each in request["subscriptions"]]
                for subscription, channel in wanted:
                    if problem := outbox.subscribe(subscription, channel):
                        outbox.put_control(_status(_WARNING, problem))
                    else:
                        self._on_subscribed(viewer, channel, True)
            elif request["op"] == "unsubscribe":
                for subscription in [_id(each) for each in request["subscriptionIds"]]:
                    left = outbox.unsubscribe(subscription)
                    if left is not None:
                        self._on_subscribed(viewer, left, False)
            else:
                return False
        except (ValueError, TypeError, KeyError, RecursionError):
            return False
        return True


def _for_looking(frame: str | bytes) -> str | bytes | None:
    """Filter the server's messages for a viewer that may not make changes."""
    if isinstance(frame, bytes):
        return frame
    said = json.loads(frame)
    if said["op"] == "serverInfo":
        return json.dumps({**said, "capabilities": [each for each in said["capabilities"] if each in _CAPABILITIES]})
    return None if said["op"] in _UNHEARD else frame


def _id(value: object) -> int:
    number = whole_number(value)
    if number is None or not 0 <= number <= _MAX_ID:
        raise ValueError
    return number


def _status(level: int, text: str) -> str:
    return json.dumps({"op": "status", "level": level, "message": text})
