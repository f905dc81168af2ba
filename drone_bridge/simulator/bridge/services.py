# SPDX-License-Identifier: Apache-2.0
"""The services of simulator_bridge, as tasks for the link's thread."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from rclpy.callback_groups import ReentrantCallbackGroup

from drone_bridge import srv
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.link_requests import FutureCompleter, LinkRequests, ServiceResult
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge import camera_tasks, world_tasks
from drone_bridge.simulator.bridge.session import SimulatorSession
from drone_bridge.simulator.bridge.tasks import Result, Task
from drone_bridge.simulator.bridge.world_tasks import MakeTask, ask
from drone_bridge.simulator.topics import requests as translate
from drone_bridge.simulator.topics.requests import fill_state
from drone_bridge.wire.layouts import printable

#: How long an answer is waited for on the spot: a simulator on this machine takes a tenth of that.
PATIENCE_S: Final = 0.003

#: Services renamed because every lifecycle node has its own ~/get_state.
_NAMES: Final = {"get_state": "get_entity_state", "set_state": "set_entity_state"}

Fill = Callable[[Any, Any], None]


class Call(NamedTuple):
    """A service call for the link's thread."""

    make: MakeTask
    request: Any  # of the service

    def task(self, session: SimulatorSession) -> Task:
        """Return its task."""
        return self.make(session, self.request)


class Service(NamedTuple):
    """A service."""

    type: Any
    name: str
    make: MakeTask
    fill: Fill = lambda response, value: None  # the response with the task's value


def _set(field: str, attribute: str = "") -> Fill:
    """Return a function that writes a value, or one of its attributes, into a field."""
    return lambda response, value: setattr(response, field, getattr(value, attribute) if attribute else value)


def _fill_configuration(response: srv.GetConfiguration.Response, value: sim.Configured) -> None:
    response.frequency, response.speed = value.frequency, value.speed
    response.non_real_time, response.use_desired_thrusters = value.non_real_time, value.use_desired_thrusters


def _fill_entities(response: srv.ListEntities.Response, value: Any) -> None:
    response.ids, response.names = value


def _fill_attribute(response: srv.GetAttribute.Response, value: sim.ExtendedGot) -> None:
    response.attribute = translate.attribute_message(value.key, value.data)


def _fill_names(response: srv.ListObjectClasses.Response, value: sim.ObjectClassesListed) -> None:
    response.names = [printable(name) for name in value.names]


_SERVICES: Final = (
    # The world.
    Service(srv.Run, "run", world_tasks.run),
    Service(srv.SimulatorRequest, "pause", world_tasks.pause),
    Service(srv.SimulatorRequest, "reassure", ask(lambda _: sim.Reassure())),
    Service(srv.GetConfiguration, "get_configuration", ask(lambda _: sim.GetConfig()), _fill_configuration),
    Service(srv.RemoveItem, "remove", world_tasks.remove),
    # Entities.
    Service(srv.ListEntities, "list_entities", world_tasks.list_entities, _fill_entities),
    Service(srv.Spawn, "spawn", world_tasks.spawn, _set("id")),
    Service(srv.GetState, "get_state", world_tasks.get_state, lambda response, value: fill_state(response, *value)),
    Service(srv.SetState, "set_state", world_tasks.set_state),
    Service(srv.StreamEntity, "stream_entity", world_tasks.stream_entity, _set("stream_id")),
    # Extended attributes.
    Service(srv.GetAttribute, "get_attribute", ask(lambda q: sim.GetExtended(q.id, q.key)), _fill_attribute),
    Service(srv.SetAttribute, "set_attribute", ask(translate.set_attribute)),
    Service(srv.StreamAttributes, "stream_attributes", world_tasks.stream_attributes, _set("stream_id")),
    # Cameras and triggers.
    Service(srv.AddCamera, "add_camera", camera_tasks.add_camera, _set("id")),
    Service(srv.SetCamera, "set_camera", camera_tasks.set_camera),
    Service(srv.StreamCamera, "stream_camera", camera_tasks.stream_camera, _set("stream_id")),
    Service(srv.ViewCamera, "view_camera", camera_tasks.view_camera, _set("view")),
    Service(srv.ListItems, "list_cameras", ask(lambda _: sim.ListCameras()), _set("ids", "ids")),
    Service(
        srv.BroadcastCamera,
        "broadcast_camera",
        ask(lambda q: sim.BroadcastCamera(q.camera_id)),
        _set("broadcast_id", "id"),
    ),
    Service(srv.AddTrigger, "add_trigger", world_tasks.add_trigger, _set("id")),
    # Objects.
    Service(srv.AddTurbulence, "add_turbulence", world_tasks.add_turbulence, _set("id")),
    Service(srv.AddObject, "add_object", world_tasks.add_object, _set("id")),
    Service(srv.ListObjectClasses, "list_object_classes", ask(lambda _: sim.ListObjectClasses()), _fill_names),
    Service(srv.ListItems, "list_objects", ask(lambda _: sim.ListObjects()), _set("ids", "ids")),
    Service(srv.GetObject, "get_object", ask(lambda q: sim.GetObject(q.id, q.attribute)), _set("data", "data")),
    Service(srv.SetObject, "set_object", ask(lambda q: sim.SetObject(q.id, q.attribute, bytes(q.data)))),
)


class SimulatorServices:
    """Always available; without a connection to a simulator they return an error."""

    def __init__(self, node: LinkNode, start: Callable[[], None]) -> None:
        """`start` starts new requests, in this thread or the link's."""
        self._node = node
        self._start = start
        # Reentrant, as callbacks wait.
        group = ReentrantCallbackGroup()
        self.link_requests: LinkRequests[Call] = LinkRequests(FutureCompleter(node, group), "simulator")
        for service in _SERVICES:
            name = _NAMES.get(service.name, service.name)
            node.make_service(service.type, name, self._server(service), group)

    def _server(self, service: Service) -> Callable[[Any, Any], Any]:
        async def serve(request: Any, response: Any) -> Any:
            if (
                service.name == "set_state"
                and request.id == self._node.parameters["vehicle"]
                and self._node.hold.is_held
            ):
                response.message = "The vehicle is held, and its state is not set."
                return response
            result = await self._run(Call(service.make, request))
            response.success, response.message, response.code = result.success, result.message, result.code
            if result.success:
                service.fill(response, result.value)
            return response

        return serve

    async def _run(self, call: Call) -> Result:
        try:
            result = await self.link_requests.run(call, self._start, PATIENCE_S)
        except ValueError as error:
            return Result(False, str(error))
        return Result(*result) if isinstance(result, ServiceResult) else result
