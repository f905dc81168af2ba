# SPDX-License-Identifier: Apache-2.0
"""Handles requests of clients."""

from __future__ import annotations

from drone_bridge.simulator.codec import Added, AddObject, ItemType, Ok, Request, Response
from drone_bridge.simulator.device import observer_requests, world_requests
from drone_bridge.simulator.device.items import Client, RefusedError
from drone_bridge.simulator.device.quirks import is_ignored
from drone_bridge.simulator.device.world_requests import Context

_HANDLERS = {**world_requests.HANDLERS, **observer_requests.HANDLERS}


class RequestHandler:
    """Answers the requests of all clients."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._objects_added = 0  # by clients

    def handle(self, client: Client, request: Request) -> Response:
        """Carry out a request, and return the answer."""
        is_real = self._context.is_real
        if is_real and is_ignored(request):
            return Ok()
        try:
            response = _HANDLERS[type(request)](self._context, client, request)
        except RefusedError as error:
            return error.answer
        if is_real and isinstance(request, AddObject):
            # The CUAUV server returns a separate count, but removes by the IDs of forces, of which gravity is 0.
            response = Added(ItemType.OBJECT, self._objects_added)
            self._objects_added += 1
        return response
