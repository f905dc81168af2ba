# SPDX-License-Identifier: Apache-2.0
"""The services of simulator_bridge: what users ask of the link's thread, one for each request of the protocol."""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from rclpy.callback_groups import ReentrantCallbackGroup

from drone_bridge import srv
from drone_bridge.bridges.link_requests import FutureCompleter, LinkRequests, ServiceResult
from drone_bridge.bridges.node import BridgeNode
from drone_bridge.bridges.simulator import camera_tasks, tasks
from drone_bridge.bridges.simulator.tasks import Result, Task
from drone_bridge.protocols import simulator as sim
from drone_bridge.protocols.text import printable
from drone_bridge.translate import simulator_requests as translate
from drone_bridge.translate.simulator import Axes

#: How long an answer is waited for on the spot: a simulator on this machine takes a tenth of that.
PATIENCE_S: Final = 0.003

Make = Callable[[Any], Task]
Fill = Callable[[Any, Any], None]


class Offer(NamedTuple):
    """A service."""

    type: Any
    name: str
    make: Make  # the task of a request; raises ValueError
    fill: Fill = lambda response, value: None  # the response with the task's value
    is_implemented: bool = True  # by the CUAUV server, which closes the connection otherwise


def _put(field: str) -> Fill:
    """Return how to write a value into a field."""
    return lambda response, value: setattr(response, field, value)


def _put_attribute_of(field: str, attribute: str) -> Fill:
    return lambda response, value: setattr(response, field, getattr(value, attribute))


def _fill_configuration(response: srv.GetConfiguration.Response, value: sim.Configured) -> None:
    response.frequency, response.speed = value.frequency, value.speed
    response.non_real_time, response.use_desired_thrusters = value.non_real_time, value.use_desired_thrusters


def _fill_entities(response: srv.ListEntities.Response, value: Any) -> None:
    response.ids, response.names = value


def _offers(axes: Axes) -> Iterator[Offer]:
    """Yield all services."""
    ask = tasks.ask
    # The world.
    yield Offer(srv.Run, "run", tasks.run)
    yield Offer(srv.SimulatorRequest, "pause", lambda _: tasks.pause)
    yield Offer(srv.SimulatorRequest, "reassure", lambda _: ask(sim.Reassure()))
    yield Offer(srv.GetConfiguration, "get_configuration", lambda _: ask(sim.GetConfig()), _fill_configuration)
    yield Offer(srv.RemoveItem, "remove", lambda q: tasks.remove(q.type, q.id))
    # Entities.
    yield Offer(srv.ListEntities, "list_entities", lambda _: tasks.list_entities, _fill_entities)
    yield Offer(srv.Spawn, "spawn", tasks.spawn, _put("id"))
    yield Offer(srv.GetState, "get_state", lambda q: tasks.get_state(q.id), lambda r, v: translate.fill_state(r, *v))
    yield Offer(srv.SetState, "set_state", tasks.set_state)
    yield Offer(
        srv.StreamEntity,
        "stream_entity",
        lambda q: tasks.stream_named_entity(q.id, q.name, q.period),
        _put("stream_id"),
    )
    # Extended attributes.
    yield Offer(
        srv.GetAttribute,
        "get_attribute",
        lambda q: ask(sim.GetExtended(q.id, q.key)),
        lambda r, v: setattr(r, "attribute", translate.attribute_message(v.key, v.data)),
    )
    yield Offer(
        srv.SetAttribute,
        "set_attribute",
        lambda q: ask(sim.SetExtended(q.id, q.attribute.key, translate.attribute_data(q.attribute))),
    )
    yield Offer(
        srv.StreamAttributes,
        "stream_attributes",
        lambda q: tasks.stream_attributes(q.id, q.period, q.keys),
        _put("stream_id"),
        is_implemented=False,
    )
    # Cameras and triggers.
    yield Offer(srv.AddCamera, "add_camera", lambda q: camera_tasks.add_camera(translate.camera_plan(q)), _put("id"))
    yield Offer(srv.SetCamera, "set_camera", lambda q: camera_tasks.set_camera(q, axes))
    yield Offer(
        srv.StreamCamera,
        "stream_camera",
        lambda q: camera_tasks.stream_camera(q.camera_id, q.target_id, q.period),
        _put("stream_id"),
    )
    yield Offer(
        srv.ViewCamera,
        "view_camera",
        lambda q: camera_tasks.view_camera(q.camera_id, q.target_id),
        _put("view"),
        is_implemented=False,
    )
    yield Offer(
        srv.ListItems,
        "list_cameras",
        lambda _: ask(sim.ListCameras()),
        _put_attribute_of("ids", "ids"),
        is_implemented=False,
    )
    yield Offer(
        srv.BroadcastCamera,
        "broadcast_camera",
        lambda q: ask(sim.BroadcastCamera(q.camera_id)),
        _put_attribute_of("broadcast_id", "id"),
        is_implemented=False,
    )
    yield Offer(srv.AddTrigger, "add_trigger", lambda q: tasks.add_trigger(translate.trigger_plan(q, axes)), _put("id"))
    # Objects.
    yield Offer(
        srv.AddTurbulence,
        "add_turbulence",
        lambda q: tasks.add_object(sim.AddObject(sim.Turbulence.CLASS, translate.turbulence(q, axes).encode())),
        _put_attribute_of("id", "id"),
    )
    yield Offer(
        srv.AddObject,
        "add_object",
        lambda q: tasks.add_object(sim.AddObject(q.class_name, bytes(q.data))),
        _put_attribute_of("id", "id"),
    )
    yield Offer(
        srv.ListObjectClasses,
        "list_object_classes",
        lambda _: ask(sim.ListObjectClasses()),
        lambda r, v: setattr(r, "names", [printable(name) for name in v.names]),
        is_implemented=False,
    )
    yield Offer(
        srv.ListItems,
        "list_objects",
        lambda _: ask(sim.ListObjects()),
        _put_attribute_of("ids", "ids"),
        is_implemented=False,
    )
    yield Offer(
        srv.GetObject,
        "get_object",
        lambda q: ask(sim.GetObject(q.id, q.attribute)),
        _put_attribute_of("data", "data"),
        is_implemented=False,
    )
    yield Offer(
        srv.SetObject,
        "set_object",
        lambda q: ask(sim.SetObject(q.id, q.attribute, bytes(q.data))),
        is_implemented=False,
    )


_UNIMPLEMENTED: Final = (
    "The CUAUV server does not implement this request: it closes the connection, or gives an undefined answer. For a "
    "server that does implement it, set the parameter unimplemented_requests to send."
)
_EMPTY: Final = (
    "The CUAUV server closes the connection on an empty key, value or class name. For a server that takes it, set the "
    "parameter unimplemented_requests to send."
)


class SimulatorServices:
    """There from the start: without a simulator they say so."""

    def __init__(self, node: BridgeNode, axes: Axes, wake: Callable[[], None]) -> None:
        """`axes` may change until the node is configured; `wake` has the link's thread look at the link requests."""
        self._node = node
        self._wake = wake
        # One that waits keeps nobody else waiting.
        group = ReentrantCallbackGroup()
        self.link_requests: LinkRequests[Task] = LinkRequests(FutureCompleter(node, group), "simulator")
        for offer in _offers(axes):
            node.create_service(offer.type, offer.name, self._server(offer), callback_group=group)

    def _server(self, offer: Offer) -> Callable[[Any, Any], Any]:
        async def serve(request: Any, response: Any) -> Any:
            result = await self._run(offer, request)
            response.success, response.message, response.code = result.success, result.message, result.code
            if result.success:
                offer.fill(response, result.value)
            return response

        return serve

    async def _run(self, offer: Offer, request: Any) -> Result:
        is_bytecode = isinstance(request, srv.AddTrigger.Request) and request.type == request.BYTECODE
        may_send = self._node.parameters["unimplemented_requests"] == "send"
        if not may_send and (is_bytecode or not offer.is_implemented):
            return Result(False, _UNIMPLEMENTED)
        if not may_send and translate.has_empty_text(request):
            return Result(False, _EMPTY)
        try:
            result = await self.link_requests.run(offer.make(request), self._wake, PATIENCE_S)
        except ValueError as error:
            return Result(False, str(error))
        return Result(*result) if isinstance(result, ServiceResult) else result
