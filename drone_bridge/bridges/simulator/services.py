# SPDX-License-Identifier: Apache-2.0
"""The services of simulator_bridge: what users ask of the link's thread, one for each request of the protocol."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from rclpy.callback_groups import ReentrantCallbackGroup

from drone_bridge import srv
from drone_bridge.bridges.simulator import camera_tasks, world_tasks
from drone_bridge.bridges.simulator.session import SimulatorSession
from drone_bridge.bridges.simulator.tasks import Result, Task
from drone_bridge.bridges.simulator.world_tasks import MakeTask, ask
from drone_bridge.link_node.link_node import LinkNode
from drone_bridge.link_node.link_requests import FutureCompleter, LinkRequests, ServiceResult
from drone_bridge.protocols import simulator as sim
from drone_bridge.protocols.text import printable
from drone_bridge.translate import simulator_requests as translate
from drone_bridge.translate.simulator_requests import fill_state

#: How long an answer is waited for on the spot: a simulator on this machine takes a tenth of that.
PATIENCE_S: Final = 0.003

#: What is called otherwise below the node's name, where a lifecycle node has a get_state of its own.
_NAMES: Final = {"get_state": "get_entity_state", "set_state": "set_entity_state"}

Fill = Callable[[Any, Any], None]


class Call(NamedTuple):
    """What a caller asks of the link's thread."""

    make: MakeTask
    request: Any  # of the service

    def task(self, session: SimulatorSession) -> Task:
        """Return the task that does it."""
        return self.make(session, self.request)


class Offer(NamedTuple):
    """A service."""

    type: Any
    name: str
    make: MakeTask
    fill: Fill = lambda response, value: None  # the response with the task's value


def _put(field: str, attribute: str = "") -> Fill:
    """Return how to write a value, or an attribute of it, into a field."""
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


_OFFERS: Final = (
    # The world.
    Offer(srv.Run, "run", world_tasks.run),
    Offer(srv.SimulatorRequest, "pause", world_tasks.pause),
    Offer(srv.SimulatorRequest, "reassure", ask(lambda _: sim.Reassure())),
    Offer(srv.GetConfiguration, "get_configuration", ask(lambda _: sim.GetConfig()), _fill_configuration),
    Offer(srv.RemoveItem, "remove", world_tasks.remove),
    # Entities.
    Offer(srv.ListEntities, "list_entities", world_tasks.list_entities, _fill_entities),
    Offer(srv.Spawn, "spawn", world_tasks.spawn, _put("id")),
    Offer(srv.GetState, "get_state", world_tasks.get_state, lambda response, value: fill_state(response, *value)),
    Offer(srv.SetState, "set_state", world_tasks.set_state),
    Offer(srv.StreamEntity, "stream_entity", world_tasks.stream_entity, _put("stream_id")),
    # Extended attributes.
    Offer(srv.GetAttribute, "get_attribute", ask(lambda q: sim.GetExtended(q.id, q.key)), _fill_attribute),
    Offer(srv.SetAttribute, "set_attribute", ask(translate.set_attribute)),
    Offer(srv.StreamAttributes, "stream_attributes", world_tasks.stream_attributes, _put("stream_id")),
    # Cameras and triggers.
    Offer(srv.AddCamera, "add_camera", camera_tasks.add_camera, _put("id")),
    Offer(srv.SetCamera, "set_camera", camera_tasks.set_camera),
    Offer(srv.StreamCamera, "stream_camera", camera_tasks.stream_camera, _put("stream_id")),
    Offer(srv.ViewCamera, "view_camera", camera_tasks.view_camera, _put("view")),
    Offer(srv.ListItems, "list_cameras", ask(lambda _: sim.ListCameras()), _put("ids", "ids")),
    Offer(
        srv.BroadcastCamera,
        "broadcast_camera",
        ask(lambda q: sim.BroadcastCamera(q.camera_id)),
        _put("broadcast_id", "id"),
    ),
    Offer(srv.AddTrigger, "add_trigger", world_tasks.add_trigger, _put("id")),
    # Objects.
    Offer(srv.AddTurbulence, "add_turbulence", world_tasks.add_turbulence, _put("id")),
    Offer(srv.AddObject, "add_object", world_tasks.add_object, _put("id")),
    Offer(srv.ListObjectClasses, "list_object_classes", ask(lambda _: sim.ListObjectClasses()), _fill_names),
    Offer(srv.ListItems, "list_objects", ask(lambda _: sim.ListObjects()), _put("ids", "ids")),
    Offer(srv.GetObject, "get_object", ask(lambda q: sim.GetObject(q.id, q.attribute)), _put("data", "data")),
    Offer(srv.SetObject, "set_object", ask(lambda q: sim.SetObject(q.id, q.attribute, bytes(q.data)))),
)


class SimulatorServices:
    """Always available; without a connection to a simulator they return an error."""

    def __init__(self, node: LinkNode, wake: Callable[[], None]) -> None:
        """`wake` has the link's thread look at the link requests."""
        self._wake = wake
        # One that waits keeps nobody else waiting.
        group = ReentrantCallbackGroup()
        self.link_requests: LinkRequests[Call] = LinkRequests(FutureCompleter(node, group), "simulator")
        for offer in _OFFERS:
            name = _NAMES.get(offer.name, offer.name)
            node.make_service(offer.type, name, self._server(offer), group, old_name=offer.name)

    def _server(self, offer: Offer) -> Callable[[Any, Any], Any]:
        async def serve(request: Any, response: Any) -> Any:
            result = await self._run(Call(offer.make, request))
            response.success, response.message, response.code = result.success, result.message, result.code
            if result.success:
                offer.fill(response, result.value)
            return response

        return serve

    async def _run(self, call: Call) -> Result:
        try:
            result = await self.link_requests.run(call, self._wake, PATIENCE_S)
        except ValueError as error:
            return Result(False, str(error))
        return Result(*result) if isinstance(result, ServiceResult) else result
