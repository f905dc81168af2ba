# SPDX-License-Identifier: Apache-2.0
"""Forwards requests to simulator_bridge's services where it offers them; everything else is answered locally."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from drone_bridge import srv
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, Error, ItemType, Request, Response
from drone_bridge.simulator.device.requests import NO_EXTENDED
from drone_bridge.simulator.device.world import Client, Item, RunControl, World
from drone_bridge.simulator.server.bridge_services import BridgeServices
from drone_bridge.simulator.server.entity_plans import EntityPlan
from drone_bridge.simulator.server.mirror import STEERED_ATTRIBUTES, MirroredEntity, MirroredScene
from drone_bridge.simulator.server.service_calls import DIRECT_CALLS, ServiceCall, failure, ok
from drone_bridge.simulator.topics import calls as translate
from drone_bridge.simulator.topics.mirror import wire_value
from drone_bridge.simulator.topics.translation import Axes

LOST_BRIDGE = "The bridge behind this server does not answer."
_CAMERA_REQUESTS = (sim.SetCamera, sim.StreamCamera, sim.ViewCamera, sim.BroadcastCamera)


@dataclass(slots=True, kw_only=True)
class ForwardedItem(Item):
    """A camera, trigger or stream in the bridge's simulator, which has the same ID there."""


def _default_name(entity: int) -> str:
    """Return the bridge's name for an entity that nobody names, the same after a restart of this node."""
    return f"entity_{entity}"


@dataclass(slots=True)
class Forwarder:
    """Turns clients' requests into service calls."""

    services: BridgeServices
    axes: Axes
    world: World
    scene: MirroredScene
    vehicle: int  # the ID of the entity that cmd_vel steers
    mirror: Callable[[EntityPlan], None]  # subscribes to the topics of another entity
    answer_locally: Callable[[Client, Request], Response]
    note_steering: Callable[[Client], None]  # called when a client steers the vehicle by a service
    forget_entity: Callable[[int], None]  # called when the bridge has an entity no longer
    control: RunControl  # which follows the bridge's simulator
    #: Whether clients have been told since that the world runs, or is paused, without the simulator knowing.
    is_run_untold: bool = False
    _names: dict[int, str] = field(default_factory=dict)  # of entities, as the bridge calls them
    _trigger_numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def call_for(self, client: Client, request: Request) -> ServiceCall | Response | None:
        """Return the service call for a request, the error if it is impossible, or None if it is answered locally."""
        try:
            if direct := DIRECT_CALLS.get(type(request)):
                call: ServiceCall | Response | None = direct(request)
            else:
                forward = _FORWARDED.get(type(request))
                call = forward(self, client, request) if forward else None
        except ValueError as error:
            return Error(0, str(error))
        if isinstance(call, ServiceCall) and not self.services.offers(call.service):
            return self._refusal(request, call.service)
        return call

    def _refusal(self, request: Request, service: str) -> Response | None:
        """Return the answer to what only a service can do, or None if it can be done locally."""
        if isinstance(request, sim.ListEntities):
            return self._merged(())
        if isinstance(request, sim.AddEntity):
            return Error(0, f"No node offers the service {service}.")
        if isinstance(request, sim.Remove) and request.type == ItemType.ENTITY and self.scene.has_entity(request.id):
            return Error(0, f"No node offers the service {service}.")
        cameras = self.world.items.of(ItemType.CAMERA)
        if isinstance(request, _CAMERA_REQUESTS) and isinstance(cameras.get(request.id), ForwardedItem):
            return Error(0, f"No node offers the service {service} any more.")
        return None

    def _remove(self, client: Client, request: sim.Remove) -> ServiceCall | None:
        kind = ItemType(request.type) if request.type in tuple(ItemType) else None
        if kind is None or kind is ItemType.SPY:
            return None
        if kind not in (ItemType.ENTITY, ItemType.OBJECT):
            item = self.world.items.of(kind).get(request.id)
            is_unknown_camera = item is None and kind is ItemType.CAMERA
            if not isinstance(item, ForwardedItem) and not is_unknown_camera:
                return None

        def on_success(_: Any) -> Response:
            if kind is ItemType.ENTITY:
                self.forget_name(request.id)
            if kind is not ItemType.OBJECT and self.world.has(kind, request.id):
                self.world.remove((kind, request.id))
            return sim.Ok()

        return ServiceCall("remove", translate.remove(request), on_success)

    # Running.

    def _run(self, client: Client, request: sim.Run) -> ServiceCall:
        return self.run_call(is_running=True, steps=request.steps)

    def _pause(self, client: Client, request: sim.Pause) -> ServiceCall:
        return self.run_call(is_running=False)

    def run_call(self, *, is_running: bool, steps: int = 0) -> ServiceCall:
        """Return the call that runs or pauses the simulator, and has us follow it."""

        def follow() -> None:
            self.control.follow(is_running=is_running)
            self.is_run_untold = False

        def on_success(_: Any) -> Response:
            follow()
            return sim.Ok()

        def on_failure(response: Any) -> Response:
            if response is not None and response.code >= 0:  # the simulator's own: it does so already
                follow()
            return failure(response)

        if is_running:
            return ServiceCall("run", srv.Run.Request(steps=steps), on_success, on_failure)
        return ServiceCall("pause", srv.SimulatorRequest.Request(), on_success, on_failure)

    # Entities.

    def _list_entities(self, client: Client, request: sim.ListEntities) -> ServiceCall:
        def on_success(response: Any) -> Response:
            self._learn_names(response)
            listed = tuple(response.ids)
            for number in set(self.scene.entities).difference(listed):
                if not self.scene.is_configured(number):
                    self.forget_entity(number)
            for number in listed:
                self.add_entity(number)
            return self._merged(listed)

        # Visualizers take an error for an empty list, and reconnect without closing, ten times a second.
        return ServiceCall("list_entities", srv.ListEntities.Request(), on_success, lambda _: self._merged(()))

    def _merged(self, listed: tuple[int, ...]) -> Response:
        """Return the bridge's entities and our own. What a living bridge does not have must be heard of."""
        own = [number for number in reversed(self.scene.entities) if self.scene.is_configured(number)]
        own = [number for number in own if number not in listed and (not listed or self.scene.is_current(number))]
        return sim.EntitiesListed((*own, *listed))

    def _learn_names(self, response: Any) -> None:
        self._names.update((number, name) for number, name in zip(response.ids, response.names, strict=False) if name)

    def add_entity(self, entity: int) -> None:
        """Add an entity that the bridge has, unless it is known."""
        if not self.scene.has_entity(entity):
            self.scene.add(entity, MirroredEntity())
            self.world.entity_added(entity, {})

    def forget_name(self, entity: int) -> None:
        """Forget the bridge's name for a removed entity."""
        self._names.pop(entity, None)

    def _add_entity(self, client: Client, request: sim.AddEntity) -> ServiceCall:
        def on_success(response: Any) -> Response:
            entity = response.id
            self.add_entity(entity)
            self.scene.add(entity, MirroredEntity(request.radius, request.corporeal))
            self._names[entity] = _default_name(entity)
            self._mirror_entity(entity)
            return sim.Added(ItemType.ENTITY, entity)

        return ServiceCall("spawn", translate.spawn(request, "", self.axes), on_success)

    def _mirror_entity(self, entity: int) -> None:
        topic = f"entities/{self._names[entity]}"
        self.scene.expect_source(entity)
        self.mirror(EntityPlan(entity, self._names[entity], pose=f"{topic}/pose", twist=f"{topic}/twist"))

    def _set_entity(self, client: Client, request: sim.SetEntity) -> ServiceCall | Response | None:
        if request.attribute not in tuple(Attribute):
            return None
        state = self.scene.state(request.id)
        if request.id == self.vehicle and request.attribute in STEERED_ATTRIBUTES:
            if state is None and self.services.are_lost:
                return Error(0, LOST_BRIDGE)
            # Without a state v can't be turned into cmd_vel; and w neither, as that would set v to zero again.
            if state or not self.services.offers("get_entity_state"):
                return None
            self.note_steering(client)  # else nobody stops it
        if request.attribute != Attribute.VELOCITY or state:
            return ok("set_entity_state", translate.set_state(request, state.orientation if state else None, self.axes))

        def on_success(response: Any) -> ServiceCall:
            orientation = translate.state_from_response(response).orientation
            return ok("set_entity_state", translate.set_state(request, orientation, self.axes))

        return ServiceCall("get_entity_state", srv.GetState.Request(id=request.id), on_success)

    def _get_entity(self, client: Client, request: sim.GetEntity) -> ServiceCall | None:
        if request.attribute not in tuple(Attribute) or self.scene.is_current(request.id):
            return None

        def on_success(response: Any) -> Response:
            state = translate.state_from_response(response)
            return sim.EntityGot(request.attribute, wire_value(state, response.corporeal, request.attribute, self.axes))

        return ServiceCall("get_entity_state", srv.GetState.Request(id=request.id), on_success)

    def _stream_entity(self, client: Client, request: sim.StreamEntity) -> ServiceCall | None:
        if self.scene.has_source(request.id) or not set(request.attributes) <= set(Attribute):
            return None
        if request.id in self._names:
            self._follow(request.id)
            return None
        call = srv.StreamEntity.Request(id=request.id, name=_default_name(request.id))

        def on_success(_: Any) -> Response:
            self._names.setdefault(request.id, call.name)
            return follow()

        def follow() -> Response:
            self._follow(request.id)
            return self.answer_locally(client, request)

        def on_failure(refusal: Any) -> Response | ServiceCall:
            """Check whether the bridge refuses because it already publishes the entity, under another name."""
            if refusal is None or refusal.code >= 0:  # the simulator's own
                return failure(refusal)

            def find(response: Any) -> Response:
                self._learn_names(response)
                return follow() if request.id in self._names else failure(refusal)

            return ServiceCall("list_entities", srv.ListEntities.Request(), find, lambda _: failure(refusal))

        return ServiceCall("stream_entity", call, on_success, on_failure)

    def _follow(self, entity: int) -> None:
        self.add_entity(entity)
        self._mirror_entity(entity)

    # Extended attributes.

    def _get_extended(self, client: Client, request: sim.GetExtended) -> ServiceCall | Response:
        is_silent = self.scene.has_source(request.id) and not self.scene.is_current(request.id)
        if is_silent and not self.services.offers("get_attribute"):
            # Visualizers ask for this first, and draw nothing if there is none.
            return Error(0, NO_EXTENDED)
        return ServiceCall(
            "get_attribute",
            srv.GetAttribute.Request(id=request.id, key=request.key),
            lambda r: translate.extended_from_response(request.key, r),
        )

    def _stream_extended(self, client: Client, request: sim.StreamExtended) -> ServiceCall:
        call = srv.StreamAttributes.Request(id=request.id, period=request.period, keys=list(request.keys))
        return self._add_item("stream_attributes", call, ItemType.EXTENDED_STREAM, "stream_id", client)

    # Cameras and triggers.

    def _add_item(self, service: str, call: Any, kind: ItemType, field: str, client: Client | None) -> ServiceCall:
        def on_success(response: Any) -> Response:
            number: int = getattr(response, field)
            self.world.add(kind, ForwardedItem(client=client), number)
            return sim.Added(kind, number)

        return ServiceCall(service, call, on_success)

    def _is_local_camera(self, camera: int) -> bool:
        item = self.world.items.of(ItemType.CAMERA).get(camera)
        return item is not None and not isinstance(item, ForwardedItem)

    def _add_camera(self, client: Client, request: sim.AddCamera) -> ServiceCall:
        call = translate.add_camera(request, "", self.axes)  # the bridge picks an unused name
        return self._add_item("add_camera", call, ItemType.CAMERA, "id", None)

    def _set_camera(self, client: Client, request: sim.SetCamera) -> ServiceCall | None:
        if self._is_local_camera(request.id) or request.attribute not in tuple(sim.CameraAttribute):
            return None
        return ok("set_camera", translate.set_camera(request, self.axes))

    def _stream_camera(self, client: Client, request: sim.StreamCamera) -> ServiceCall | None:
        if self._is_local_camera(request.id):
            return None
        call = srv.StreamCamera.Request(camera_id=request.id, target_id=request.target, period=request.period)
        return self._add_item("stream_camera", call, ItemType.CAMERA_STREAM, "stream_id", client)

    def _view_camera(self, client: Client, request: sim.ViewCamera) -> ServiceCall | None:
        if self._is_local_camera(request.id):
            return None
        return ServiceCall(
            "view_camera",
            srv.ViewCamera.Request(camera_id=request.id, target_id=request.target),
            lambda r: sim.CameraGot(r.view.x, r.view.y, r.view.radius, r.view.depth),
        )

    def _broadcast_camera(self, client: Client, request: sim.BroadcastCamera) -> ServiceCall | None:
        if self._is_local_camera(request.id):
            return None
        call = srv.BroadcastCamera.Request(camera_id=request.id)
        return self._add_item("broadcast_camera", call, ItemType.CAMERA_BROADCAST, "broadcast_id", client)

    def _add_trigger(self, client: Client, request: sim.AddTrigger) -> ServiceCall | None:
        if isinstance(request.trigger, sim.UnknownTrigger):
            return None
        call = translate.add_trigger(request.trigger, f"operator_trigger_{next(self._trigger_numbers)}", self.axes)
        return self._add_item("add_trigger", call, ItemType.TRIGGER, "id", client)


_FORWARDED: dict[type[Request], Callable[[Forwarder, Client, Any], ServiceCall | Response | None]] = {
    sim.Run: Forwarder._run,
    sim.Pause: Forwarder._pause,
    sim.Remove: Forwarder._remove,
    sim.ListEntities: Forwarder._list_entities,
    sim.AddEntity: Forwarder._add_entity,
    sim.SetEntity: Forwarder._set_entity,
    sim.GetEntity: Forwarder._get_entity,
    sim.StreamEntity: Forwarder._stream_entity,
    sim.GetExtended: Forwarder._get_extended,
    sim.StreamExtended: Forwarder._stream_extended,
    sim.AddCamera: Forwarder._add_camera,
    sim.SetCamera: Forwarder._set_camera,
    sim.StreamCamera: Forwarder._stream_camera,
    sim.ViewCamera: Forwarder._view_camera,
    sim.BroadcastCamera: Forwarder._broadcast_camera,
    sim.AddTrigger: Forwarder._add_trigger,
}
