# SPDX-License-Identifier: Apache-2.0
"""ViewerRequests: other requests of viewers: publish, and read and set parameters.

The Foxglove server calls all methods on threads of its own. ROS operations are queued for the executor's thread, with a
limited number of pending messages.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from foxglove import Parameter, ParameterType
from foxglove.websocket import Client, ClientChannel, ServerListener, StatusLevel, WebSocketServer
from rcl_interfaces.msg import ParameterEvent, ParameterValue
from rcl_interfaces.msg import ParameterType as RosType
from rcl_interfaces.srv import GetParameters, ListParameters, SetParameters
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import qos_profile_parameter_events
from rclpy.serialization import deserialize_message

from drone_bridge.ros.node.parameter_values import parameter_like
from drone_bridge.tools.shared.interfaces import UnknownTypeError, import_interface
from drone_bridge.tools.web.calls import Calls
from drone_bridge.tools.web.inbox import Inbox
from drone_bridge.tools.web.vehicles import HELM_TOPIC, PILOT_TOPIC

MAX_CHANNELS = 64
"""Maximum number of topics on which viewers may publish."""
MAX_WAITING = 256
"""Maximum number of messages that wait for the executor. More are dropped."""
DEPTH = 10
LIST = "/list_parameters"


@dataclass(eq=False, slots=True)
class _PublishedTopic:
    """Topic on which viewers publish."""

    message_class: Any
    publisher: Any
    users: set[tuple[int, int]] = field(default_factory=set)
    """Clients, with their numbers of the channel."""


class ViewerRequests(ServerListener):
    """Handles requests of viewers, which arrive after `attach`. Refusals are status messages."""

    _server: WebSocketServer
    _calls: Calls

    def __init__(self, node: Node, inbox: Inbox) -> None:
        self._node = node
        self._inbox = inbox
        self._published: dict[tuple[str, str], _PublishedTopic] = {}
        self._waiting = threading.Semaphore(MAX_WAITING)
        self._events: Any = None

    def attach(self, server: WebSocketServer, calls: Calls) -> None:
        """Set the server that calls this, and the services."""
        self._server, self._calls = server, calls

    # Publishing.

    def on_client_advertise(self, client: Client, channel: ClientChannel) -> None:
        self._inbox.put(lambda: self._offer(client.id, channel))

    def on_client_unadvertise(self, client: Client, client_channel_id: int) -> None:
        self._inbox.put(lambda: self._withdraw((client.id, client_channel_id)))

    def on_message_data(self, client: Client, client_channel_id: int, data: bytes) -> None:
        if self._waiting.acquire(blocking=False):
            self._inbox.put(lambda: self._publish((client.id, client_channel_id), data))

    def _offer(self, client: int, channel: ClientChannel) -> None:
        key = (channel.topic, channel.schema_name)
        try:
            if channel.topic.rpartition("/")[2] in (HELM_TOPIC, PILOT_TOPIC):
                raise UnknownTypeError("the helm is taken on the page")
            if channel.encoding != "cdr":
                raise UnknownTypeError(f"its encoding is {channel.encoding!r:.40}, not 'cdr'")
            if key not in self._published:
                if len(self._published) >= MAX_CHANNELS:
                    raise UnknownTypeError(f"the limit of {MAX_CHANNELS} published topics is reached")
                message_class = import_interface(channel.schema_name)
                publisher = self._node.create_publisher(message_class, channel.topic, DEPTH)
                self._published[key] = _PublishedTopic(message_class, publisher)
        except Exception as error:  # rclpy raises various exceptions for an invalid name
            self._warn(f"Can't publish on '{channel.topic:.100}': {error}".rstrip(".") + ".")
            return
        self._published[key].users.add((client, channel.id))

    def _withdraw(self, user: tuple[int, int]) -> None:
        for key, outlet in list(self._published.items()):
            outlet.users.discard(user)
            if not outlet.users:
                self._node.destroy_publisher(outlet.publisher)
                del self._published[key]

    def _publish(self, user: tuple[int, int], data: bytes) -> None:
        self._waiting.release()
        for (topic, type_name), outlet in self._published.items():
            if user not in outlet.users:
                continue
            try:  # other nodes should not receive an invalid message
                message = deserialize_message(data, outlet.message_class)
            except Exception as error:  # type supports raise various exceptions
                self._warn(f"Dropped an invalid '{type_name}' for '{topic}': {error}")
                return
            outlet.publisher.publish(message)

    def _warn(self, text: str) -> None:
        self._server.publish_status(text, StatusLevel.Error)

    # Parameters, named "/node.parameter".

    def on_get_parameters(self, client: Client, param_names: list[str], request_id: str | None = None) -> Any:
        return list(self._read(param_names))

    def on_set_parameters(self, client: Client, parameters: list[Parameter], request_id: str | None = None) -> Any:
        for each in parameters:
            node, _, name = each.name.partition(".")
            try:
                request = GetParameters.Request(names=[name])
                before = self._calls.call(f"{node}/get_parameters", GetParameters, request).values[0]
                wanted = parameter_like(name, before.type, each.get_value()).to_parameter_msg()
                request = SetParameters.Request(parameters=[wanted])
                result = self._calls.call(f"{node}/set_parameters", SetParameters, request).results[0]
                if not result.successful:
                    raise RuntimeError(result.reason or "refused")
            except Exception as error:  # from the node, the service, or a value of another type
                self._warn(f"{each.name:.100} was not set: {error}")
        return list(self._read([each.name for each in parameters]))

    def on_parameters_subscribe(self, param_names: list[str]) -> None:
        def follow() -> None:
            if self._events is None:
                self._events = self._node.create_subscription(
                    ParameterEvent, "/parameter_events", self._on_event, qos_profile_parameter_events
                )

        self._inbox.put(follow)

    def _on_event(self, event: ParameterEvent) -> None:
        changed = [*event.new_parameters, *event.changed_parameters]
        if changed:
            self._server.publish_parameter_values([_parameter(event.node, each.name, each.value) for each in changed])

    def _read(self, names: list[str]) -> Iterator[Parameter]:
        """Yield the parameters of these names, or all. Nodes that do not respond are skipped."""
        calls = self._calls
        wanted: dict[str, list[str]] = {}
        for full_name in names:
            node, _, name = full_name.partition(".")
            wanted.setdefault(node, []).append(name)
        if not names:
            wanted = {name.removesuffix(LIST): [] for name in calls.names() if name.endswith(LIST)}
        for node, of_node in wanted.items():
            try:
                own = of_node or list(calls.call(node + LIST, ListParameters, ListParameters.Request()).result.names)
                request = GetParameters.Request(names=own)
                values = calls.call(f"{node}/get_parameters", GetParameters, request).values
            except Exception as error:  # as above
                self._warn(f"{node} did not list its parameters: {error}")
                continue
            yield from (_parameter(node, name, value) for name, value in zip(own, values, strict=False))


def _parameter(node: str, name: str, value: ParameterValue) -> Parameter:
    """Convert a parameter to Foxglove's type. An unset parameter has no value."""
    content: Any = parameter_value_to_python(value)
    kind = {
        RosType.PARAMETER_DOUBLE: ParameterType.Float64,
        RosType.PARAMETER_DOUBLE_ARRAY: ParameterType.Float64Array,
    }.get(value.type)
    if isinstance(content, (list, tuple)) or hasattr(content, "tolist"):
        content = list(content)
        if value.type == RosType.PARAMETER_BYTE_ARRAY:
            content = b"".join(content)
    return Parameter(f"{node}.{name}", value=content, type=kind)
