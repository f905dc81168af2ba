# SPDX-License-Identifier: Apache-2.0
"""Which requests simulator_bridge's services do, where they are offered. Everything else is answered here."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from textwrap import shorten
from typing import Any, Final, NamedTuple

from drone_bridge import srv
from drone_bridge.protocols import simulator as sim
from drone_bridge.protocols.simulator import Attribute, Error, ItemType, Request, Response
from drone_bridge.servers.simulator.calls import BridgeCalls
from drone_bridge.servers.simulator.mirror import Mirrored, MirroredScene
from drone_bridge.servers.simulator.sources import EntityPlan
from drone_bridge.translate import simulator_calls as translate
from drone_bridge.translate.simulator import Axes
from drone_bridge.translate.simulator_errors import simulators_own_text
from drone_bridge.translate.simulator_mirror import wire_value
from drone_bridge.vehicle_side.simulator.items import Client, Item
from drone_bridge.vehicle_side.simulator.world import World
from drone_bridge.vehicle_side.simulator.world_requests import NO_EXTENDED

#: Of an error that is not the simulator's own, bytes: an answer of 90 that a visualizer reads, less what is before it.
LONGEST_TEXT: Final = 77
_STEERED: Final = (Attribute.VELOCITY, Attribute.ANGULAR_VELOCITY)

_OF_CAMERAS: Final = (sim.SetCamera, sim.StreamCamera, sim.ViewCamera, sim.BroadcastCamera)


@dataclass(slots=True, kw_only=True)
class Elsewhere(Item):
    """A camera, trigger or stream that the bridge's simulator has; its ID is the same there."""


class Errand(NamedTuple):
    """A call of a service, and what is made of its response: the answer, or what is to be done next."""

    service: str
    request: Any
    finish: Callable[[Any], "Response | Errand"]
    #: What is made of a response that tells of a failure, or of none at all (None); None: the Error.
    recover: "Callable[[Any], Response | Errand] | None" = None


def _brief(text: str) -> str:
    """Return as much of a text as visualizers have room for: they take the rest for the next answer."""
    return shorten(text, LONGEST_TEXT, placeholder=" ...").encode()[:LONGEST_TEXT].decode(errors="ignore")


def _name_of(entity: int) -> str:
    """Return what the bridge calls an entity that nobody gives a name; a server after this one can tell it as well."""
    return f"entity_{entity}"


class Errands:
    """Makes errands of requests."""

    def __init__(  # noqa: PLR0917 # each of them once
        self,
        calls: BridgeCalls,
        axes: Axes,
        world: World,
        scene: MirroredScene,
        vehicle: int,
        mirror: Callable[[EntityPlan], None],
        answer_here: Callable[[Client, Request], Response],
        engage: Callable[[Client], None],
    ) -> None:
        """Prepare to make errands.

        Args:
            calls: the services.
            axes: of the world and of bodies.
            world: what clients share.
            scene: the entities in it.
            vehicle: the ID of the one that is steered by a topic.
            mirror: has the topics of another entity subscribed to.
            answer_here: answers a request without services.
            engage: notes that a client steers the vehicle, though by a service: where it points is not known.
        """
        self._calls, self._axes, self._world, self._scene = calls, axes, world, scene
        self._vehicle = vehicle
        self._mirror = mirror
        self._answer_here = answer_here
        self._engage = engage
        self._names: dict[int, str] = {}  # of entities, as the bridge calls them
        self._triggers = count(1)
        self._makers: dict[type[Request], Callable[[Client, Any], Errand | Response | None]] = {
            sim.Run: lambda _, q: self._ok("run", srv.Run.Request(steps=q.steps)),
            sim.Pause: lambda _, q: self._ok("pause", srv.SimulatorRequest.Request()),
            sim.GetConfig: self._get_config,
            sim.Remove: self._remove,
            sim.ListEntities: self._list_entities,
            sim.AddEntity: self._add_entity,
            sim.SetEntity: self._set_entity,
            sim.GetEntity: self._get_entity,
            sim.StreamEntity: self._stream_entity,
            sim.SetExtended: lambda _, q: self._ok("set_attribute", translate.set_attribute(q)),
            sim.GetExtended: self._get_extended,
            sim.StreamExtended: self._stream_extended,
            sim.AddCamera: self._add_camera,
            sim.SetCamera: self._set_camera,
            sim.StreamCamera: self._stream_camera,
            sim.ViewCamera: self._view_camera,
            sim.BroadcastCamera: self._broadcast_camera,
            sim.AddTrigger: self._add_trigger,
            sim.ListObjectClasses: lambda _, q: Errand(
                "list_object_classes",
                srv.ListObjectClasses.Request(),
                lambda r: sim.ObjectClassesListed(tuple(r.names)),
            ),
            sim.ListObjects: lambda _, q: Errand(
                "list_objects", srv.ListItems.Request(), lambda r: sim.ObjectsListed(tuple(r.ids))
            ),
            sim.AddObject: lambda _, q: Errand(
                "add_object",
                srv.AddObject.Request(class_name=q.class_name, data=list(q.data)),
                lambda r: sim.Added(ItemType.OBJECT, r.id),
            ),
            sim.GetObject: lambda _, q: Errand(
                "get_object",
                srv.GetObject.Request(id=q.id, attribute=q.attribute),
                lambda r: sim.ObjectGot(q.attribute, bytes(r.data)),
            ),
            sim.SetObject: lambda _, q: self._ok(
                "set_object", srv.SetObject.Request(id=q.id, attribute=q.attribute, data=list(q.data))
            ),
        }

    def errand_for(self, client: Client, request: Request) -> Errand | Response | None:
        """Return the errand that a request takes; None where it is answered here, or an answer if it can't be done."""
        make = self._makers.get(type(request))
        try:
            errand = make(client, request) if make else None
        except ValueError as error:
            return Error(0, str(error))
        if isinstance(errand, Errand) and not self._calls.offers(errand.service):
            return self._refusal(request, errand.service)
        return errand

    def _refusal(self, request: Request, service: str) -> Response | None:
        """Return the Error for what only a service can do; None where it can be done here."""
        if isinstance(request, sim.AddEntity):
            return Error(0, f"No node offers the service {service}.")
        if isinstance(request, sim.Remove) and request.type == ItemType.ENTITY and self._scene.has_entity(request.id):
            return Error(0, f"No node offers the service {service}.")
        cameras = self._world.items.of(ItemType.CAMERA)
        if isinstance(request, _OF_CAMERAS) and isinstance(cameras.get(request.id), Elsewhere):
            return Error(0, f"No node offers the service {service} any more.")
        return None

    @staticmethod
    def failure(response: Any) -> Error:
        """Return the Error for a service that has failed, the simulator's own if it has one, or not answered (None)."""
        if response is None:
            return Error(0, "The service has not answered in time.")
        if response.code < 0:  # the bridge's, for people
            return Error(0, _brief(response.message))
        return Error(response.code, simulators_own_text(response.message))

    @staticmethod
    def _ok(service: str, request: Any) -> Errand:
        return Errand(service, request, lambda _: sim.Ok())

    # The world.

    def _get_config(self, client: Client, request: sim.GetConfig) -> Errand:
        return Errand(
            "get_configuration",
            srv.GetConfiguration.Request(),
            lambda r: sim.Configured(r.frequency, r.speed, r.non_real_time, r.use_desired_thrusters),
        )

    def _remove(self, client: Client, request: sim.Remove) -> Errand | None:
        kind = ItemType(request.type) if request.type in tuple(ItemType) else None
        if kind is None or kind is ItemType.SPY:
            return None
        if kind not in (ItemType.ENTITY, ItemType.OBJECT):
            item = self._world.items.of(kind).get(request.id)
            is_unknown_camera = item is None and kind is ItemType.CAMERA
            if not isinstance(item, Elsewhere) and not is_unknown_camera:
                return None

        def finish(_: Any) -> Response:
            if kind is ItemType.ENTITY:
                self.forget(request.id)
            if kind is not ItemType.OBJECT and self._world.has(kind, request.id):
                self._world.remove((kind, request.id))
            return sim.Ok()

        return Errand("remove", translate.remove(request), finish)

    # Entities.

    def _list_entities(self, client: Client, request: sim.ListEntities) -> Errand:
        def finish(response: Any) -> Response:
            self._learn_names(response)
            listed = list(response.ids)
            for number in listed:
                self.note(number)
            return listed_with_ours(listed)

        def listed_with_ours(listed: list[int]) -> Response:
            here = [number for number in reversed(self._scene.entities) if self._scene.has_source(number)]
            return sim.EntitiesListed((*(number for number in here if number not in listed), *listed))

        # A visualizer takes an error for a list of nothing, and connects once more without closing, ten times a second.
        return Errand("list_entities", srv.ListEntities.Request(), finish, lambda _: listed_with_ours([]))

    def _learn_names(self, response: Any) -> None:
        self._names.update((number, name) for number, name in zip(response.ids, response.names, strict=False) if name)

    def note(self, entity: int) -> None:
        """Note an entity that the bridge knows of."""
        if not self._scene.has_entity(entity):
            self._scene.put(entity, Mirrored())
            self._world.entity_added(entity, {})

    def forget(self, entity: int) -> None:
        """Forget what the bridge called an entity that has gone."""
        self._names.pop(entity, None)

    @staticmethod
    def removal(kind: ItemType, number: int) -> Any:
        """Return what asks the bridge to remove an item."""
        return translate.remove(sim.Remove(kind, number))

    def _add_entity(self, client: Client, request: sim.AddEntity) -> Errand:
        def finish(response: Any) -> Response:
            entity = response.id
            self.note(entity)
            self._scene.put(entity, Mirrored(request.radius, request.corporeal))
            self._names[entity] = _name_of(entity)
            self._mirror_entity(entity)
            return sim.Added(ItemType.ENTITY, entity)

        return Errand("spawn", translate.spawn(request, "", self._axes), finish)

    def _mirror_entity(self, entity: int) -> None:
        topic = f"entities/{self._names[entity]}"
        self._scene.expect_source(entity)
        self._mirror(EntityPlan(entity, self._names[entity], pose=f"{topic}/pose", twist=f"{topic}/twist"))

    def _set_entity(self, client: Client, request: sim.SetEntity) -> Errand | None:
        if request.attribute not in tuple(Attribute):
            return None
        state = self._scene.state(request.id)
        if request.id == self._vehicle and request.attribute in _STEERED:
            is_needed = request.attribute == Attribute.VELOCITY and state is None and any(request.value)  # type: ignore[arg-type]
            if not is_needed or not self._calls.offers("get_entity_state"):
                return None
            self._engage(client)  # else nobody stops it
        if request.attribute != Attribute.VELOCITY or state:
            return self._ok(
                "set_entity_state", translate.set_state(request, state.orientation if state else None, self._axes)
            )

        def finish(response: Any) -> Errand:
            orientation = translate.state_from_response(response).orientation
            return self._ok("set_entity_state", translate.set_state(request, orientation, self._axes))

        return Errand("get_entity_state", srv.GetState.Request(id=request.id), finish)

    def _get_entity(self, client: Client, request: sim.GetEntity) -> Errand | None:
        if request.attribute not in tuple(Attribute) or self._scene.is_current(request.id):
            return None

        def finish(response: Any) -> Response:
            state = translate.state_from_response(response)
            return sim.EntityGot(
                request.attribute, wire_value(state, response.corporeal, request.attribute, self._axes)
            )

        return Errand("get_entity_state", srv.GetState.Request(id=request.id), finish)

    def _stream_entity(self, client: Client, request: sim.StreamEntity) -> Errand | None:
        if self._scene.has_source(request.id) or not set(request.attributes) <= set(Attribute):
            return None
        if request.id in self._names:
            self._follow(request.id)
            return None
        asked = srv.StreamEntity.Request(id=request.id, name=_name_of(request.id))

        def finish(_: Any) -> Response:
            self._names.setdefault(request.id, asked.name)
            return follow()

        def follow() -> Response:
            self._follow(request.id)
            return self._answer_here(client, request)

        def recover(failure: Any) -> Response | Errand:
            """Look whether the bridge refuses as it publishes the entity already, by a name that is not known here."""
            if failure is None or failure.code >= 0:  # the simulator's own
                return self.failure(failure)

            def find(response: Any) -> Response:
                self._learn_names(response)
                return follow() if request.id in self._names else self.failure(failure)

            return Errand("list_entities", srv.ListEntities.Request(), find, lambda _: self.failure(failure))

        return Errand("stream_entity", asked, finish, recover)

    def _follow(self, entity: int) -> None:
        self.note(entity)
        self._mirror_entity(entity)

    # Extended attributes.

    def _get_extended(self, client: Client, request: sim.GetExtended) -> Errand | Response:
        is_silent = self._scene.has_source(request.id) and not self._scene.is_current(request.id)
        if is_silent and not self._calls.offers("get_attribute"):
            # What visualizers ask first: so they draw nothing where nothing is known.
            return Error(0, NO_EXTENDED)
        return Errand(
            "get_attribute",
            srv.GetAttribute.Request(id=request.id, key=request.key),
            lambda r: translate.extended_from_response(request.key, r),
        )

    def _stream_extended(self, client: Client, request: sim.StreamExtended) -> Errand:
        asked = srv.StreamAttributes.Request(id=request.id, period=request.period, keys=list(request.keys))
        return self._adding("stream_attributes", asked, ItemType.EXTENDED_STREAM, "stream_id", client)

    # Cameras and triggers.

    def _adding(self, service: str, asked: Any, kind: ItemType, field: str, client: Client | None) -> Errand:
        def finish(response: Any) -> Response:
            number: int = getattr(response, field)
            self._world.add(kind, Elsewhere(client=client), number)
            return sim.Added(kind, number)

        return Errand(service, asked, finish)

    def _is_here(self, camera: int) -> bool:
        item = self._world.items.of(ItemType.CAMERA).get(camera)
        return item is not None and not isinstance(item, Elsewhere)

    def _add_camera(self, client: Client, request: sim.AddCamera) -> Errand:
        asked = translate.add_camera(request, "", self._axes)  # the bridge finds a name that it does not have yet
        return self._adding("add_camera", asked, ItemType.CAMERA, "id", None)

    def _set_camera(self, client: Client, request: sim.SetCamera) -> Errand | None:
        if self._is_here(request.id) or request.attribute not in tuple(sim.CameraAttribute):
            return None
        return self._ok("set_camera", translate.set_camera(request, self._axes))

    def _stream_camera(self, client: Client, request: sim.StreamCamera) -> Errand | None:
        if self._is_here(request.id):
            return None
        asked = srv.StreamCamera.Request(camera_id=request.id, target_id=request.target, period=request.period)
        return self._adding("stream_camera", asked, ItemType.CAMERA_STREAM, "stream_id", client)

    def _view_camera(self, client: Client, request: sim.ViewCamera) -> Errand | None:
        if self._is_here(request.id):
            return None
        return Errand(
            "view_camera",
            srv.ViewCamera.Request(camera_id=request.id, target_id=request.target),
            lambda r: sim.CameraGot(r.view.x, r.view.y, r.view.radius, r.view.depth),
        )

    def _broadcast_camera(self, client: Client, request: sim.BroadcastCamera) -> Errand | None:
        if self._is_here(request.id):
            return None
        asked = srv.BroadcastCamera.Request(camera_id=request.id)
        return self._adding("broadcast_camera", asked, ItemType.CAMERA_BROADCAST, "broadcast_id", client)

    def _add_trigger(self, client: Client, request: sim.AddTrigger) -> Errand | None:
        if isinstance(request.trigger, sim.UnknownTrigger):
            return None
        asked = translate.add_trigger(request.trigger, f"operator_trigger_{next(self._triggers)}", self._axes)
        return self._adding("add_trigger", asked, ItemType.TRIGGER, "id", client)
