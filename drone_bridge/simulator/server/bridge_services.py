# SPDX-License-Identifier: Apache-2.0
"""Calls simulator_bridge's services in the executor for the link's thread, with a timeout."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from rclpy.client import Client
from rclpy.task import Future

from drone_bridge import srv
from drone_bridge.msg import ItemEvent
from drone_bridge.ros.lease import LeaseWatch
from drone_bridge.ros.link_node import LinkNode

#: The services below the bridge's name.
SERVICES = {
    "run": srv.Run,
    "pause": srv.SimulatorRequest,
    "get_configuration": srv.GetConfiguration,
    "remove": srv.RemoveItem,
    "list_entities": srv.ListEntities,
    "spawn": srv.Spawn,
    "get_entity_state": srv.GetState,
    "set_entity_state": srv.SetState,
    "stream_entity": srv.StreamEntity,
    "get_attribute": srv.GetAttribute,
    "set_attribute": srv.SetAttribute,
    "stream_attributes": srv.StreamAttributes,
    "add_camera": srv.AddCamera,
    "set_camera": srv.SetCamera,
    "stream_camera": srv.StreamCamera,
    "view_camera": srv.ViewCamera,
    "list_cameras": srv.ListItems,
    "broadcast_camera": srv.BroadcastCamera,
    "add_trigger": srv.AddTrigger,
    "add_object": srv.AddObject,
    "list_object_classes": srv.ListObjectClasses,
    "list_objects": srv.ListItems,
    "get_object": srv.GetObject,
    "set_object": srv.SetObject,
}

#: Gets the response, or None after a timeout.
OnResponse = Callable[[Any], None]


class _Call(NamedTuple):
    service: str
    request: Any
    answered: Callable[[Any], None]  # may be called from any thread


class BridgeServices:
    """The services of a bridge."""

    def __init__(self, node: LinkNode, bridge: str) -> None:
        """`bridge`: the node's name; empty for none."""
        self._node = node
        #: On one of the bridge's topics: the services of a killed node stay in DDS's graph for much longer.
        self._lease = LeaseWatch(node, ItemEvent, "item_events", lambda: None)
        self._were_offered = False
        self._clients: dict[str, Client[Any, Any]] = {}
        if bridge:
            self._clients = {name: node.make_client(kind, f"{bridge}/{name}") for name, kind in SERVICES.items()}
        self._waiting: deque[_Call] = deque()  # at most one per client
        self._guard = node.make_guard_condition(self._make_calls)

    @property
    def are_lost(self) -> bool:
        """Whether there was a bridge, and is no longer one that moves."""
        return self._were_offered and not self.offers("set_entity_state")

    def offers(self, service: str) -> bool:
        """Return whether a service is available."""
        client = self._clients.get(service)
        is_offered = client is not None and not self._lease.is_expired and client.service_is_ready()
        self._were_offered |= is_offered
        return is_offered

    def call(self, service: str, request: Any, on_response: OnResponse) -> None:
        """Call a service; `on_response` gets the response. For the link's loop, which runs it."""
        loop = asyncio.get_running_loop()
        is_settled = False

        def settle(response: Any) -> None:
            nonlocal is_settled
            if not is_settled:
                is_settled = True
                overdue.cancel()
                on_response(response)

        def answered(response: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has been closed
                loop.call_soon_threadsafe(settle, response)

        overdue = loop.call_later(self._node.parameters["request_timeout"], settle, None)
        self._waiting.append(_Call(service, request, answered))
        self._guard.trigger()

    def _make_calls(self) -> None:
        while self._waiting:
            call = self._waiting.popleft()
            future = self._clients[call.service].call_async(call.request)
            future.add_done_callback(lambda done, call=call: call.answered(_result(done)))  # type: ignore[misc]


def _result(future: "Future[Any]") -> Any:
    return None if future.cancelled() or future.exception() else future.result()
