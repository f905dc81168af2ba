# SPDX-License-Identifier: Apache-2.0
"""Calls: service calls through a Foxglove server."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import Any

from foxglove import MessageSchema, Schema, Service, ServiceRequest, ServiceSchema
from foxglove.websocket import WebSocketServer
from rclpy.client import Client
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message

from drone_bridge.ros.steady_timer import steady_timer
from drone_bridge.tools.shared.interfaces import ENCODING, UnknownTypeError, import_interface, service_texts
from drone_bridge.tools.web.inbox import Inbox

MAX_SERVICES = 1024
MAX_CLIENTS = 32
MAX_PENDING = 64
TIMEOUT_S = 10.0
CALL_PERIOD_S = 0.1  # retry period of requests to a newly discovered service


@dataclass(eq=False, slots=True)
class PendingCall:
    """Pending call. A thread of the server waits for the response."""

    service: str
    payload: bytes
    answer: "Future[bytes]" = field(default_factory=Future)
    sent: Any = None
    """rclpy's future"""

    def fail(self, error: str) -> None:
        if not self.answer.done():
            self.answer.set_exception(RuntimeError(error))


class Calls:
    """Offers the services of the graph, and calls them. All methods except `call` run on the executor's thread."""

    def __init__(self, node: Node, inbox: Inbox, server: WebSocketServer) -> None:
        self._node = node
        self._inbox = inbox
        self._server = server
        self._types: dict[str, Any] = {}
        self._type_names: dict[str, str] = {}
        self._refused: set[tuple[str, str]] = set()
        self._clients: OrderedDict[str, Client[Any, Any]] = OrderedDict()
        self._waiting: list[PendingCall] = []
        self._pending = threading.Semaphore(MAX_PENDING)
        self._timer = steady_timer(node, CALL_PERIOD_S, self._call_waiting)
        self._timer.cancel()  # while no call is waiting

    def update(self, services: Mapping[str, Sequence[str]]) -> None:
        """Offer new services, and withdraw removed ones.

        `services` are all services of the graph, with the names of their types.
        """
        present = {(name, types[0]) for name, types in services.items()}
        for name in [name for name, type_name in self._type_names.items() if (name, type_name) not in present]:
            self._server.remove_services([name])
            del self._types[name], self._type_names[name]
            self._drop_client(name)
        for name, type_name in sorted(present - set(self._type_names.items()) - self._refused):
            self._offer(name, type_name)
        self._refused &= present

    def _offer(self, name: str, type_name: str) -> None:
        try:
            if len(self._types) >= MAX_SERVICES:
                raise UnknownTypeError(f"The limit of {MAX_SERVICES} services is reached.")
            request, response = service_texts(type_name)
            service_type = import_interface(type_name, "srv")
        except UnknownTypeError as error:
            self._refused.add((name, type_name))
            self._node.get_logger().debug(f"Not offering the service '{name}': {error}")
            return
        schema = ServiceSchema(
            type_name,
            request=_message_schema(f"{type_name}_Request", request),
            response=_message_schema(f"{type_name}_Response", response),
        )
        self._server.add_services([Service(name, schema=schema, handler=self._handle)])
        self._types[name], self._type_names[name] = service_type, type_name

    def names(self) -> list[str]:
        """Return the names of the offered services."""
        return sorted(self._types)

    def call(self, service: str, service_type: Any, request: Any) -> Any:
        """Call a service and return its response, on any thread except the executor's. Raises RuntimeError."""
        return deserialize_message(self._answer(service, serialize_message(request)), service_type.Response)

    def _handle(self, request: ServiceRequest) -> bytes:
        return self._answer(request.service_name, request.payload)

    def _answer(self, service: str, payload: bytes) -> bytes:
        """Call a service and wait for the response, on a thread of the server."""
        if not self._pending.acquire(blocking=False):
            raise RuntimeError(f"The limit of {MAX_PENDING} pending calls is reached.")
        call = PendingCall(service, payload)
        try:
            self._inbox.put(lambda: self._begin(call))
            return call.answer.result(TIMEOUT_S)
        except FutureTimeoutError:
            self._inbox.put(lambda: self._give_up(call))
            raise RuntimeError(f"No response within {TIMEOUT_S:g} s.") from None
        finally:
            self._pending.release()

    def _begin(self, call: PendingCall) -> None:
        service_type = self._types.get(call.service)
        if service_type is None:
            call.fail("The service has disappeared.")
            return
        if call.service not in self._clients:
            self._clients[call.service] = self._node.create_client(service_type, call.service)
            if len(self._clients) > MAX_CLIENTS:
                self._drop_client(next(iter(self._clients)))
        self._clients.move_to_end(call.service)
        self._waiting.append(call)
        self._timer.reset()
        self._call_waiting()

    def _call_waiting(self) -> None:
        """Send the requests whose services have been discovered."""
        for call in list(self._waiting):
            client = self._clients.get(call.service)
            if client is None:
                self._waiting.remove(call)
                call.fail("The service has disappeared.")
            elif client.service_is_ready():
                self._waiting.remove(call)
                self._send(call, client)
        if not self._waiting:
            self._timer.cancel()

    def _send(self, call: PendingCall, client: "Client[Any, Any]") -> None:
        try:
            request = deserialize_message(call.payload, self._types[call.service].Request)
        except Exception as error:  # type supports raise various exceptions for invalid bytes
            call.fail(f"The request is invalid: {error}")
            return

        def answer(future: Any) -> None:
            if future.cancelled() or future.exception():
                call.fail(str(future.exception() or "The call was cancelled."))
            elif not call.answer.done():
                call.answer.set_result(serialize_message(future.result()))

        call.sent = client.call_async(request)
        call.sent.add_done_callback(answer)

    def _give_up(self, call: PendingCall) -> None:
        if call in self._waiting:
            self._waiting.remove(call)
        client = self._clients.get(call.service)
        if client and call.sent:
            client.remove_pending_request(call.sent)

    def _drop_client(self, name: str) -> None:
        if client := self._clients.pop(name, None):
            self._node.destroy_client(client)


def _message_schema(name: str, text: str) -> MessageSchema:
    return MessageSchema(encoding="cdr", schema=Schema(name=name, encoding=ENCODING, data=text.encode()))
