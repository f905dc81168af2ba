# SPDX-License-Identifier: Apache-2.0
"""Forwards requests to simulator_bridge's services where it offers them; everything else is answered from topics.

One request through the relay: `ClientSession` takes it from the wire and asks `Forwarder.answer`. What a service is to
answer is a coroutine in the table at the end: it makes the service's request of the wire's, awaits the response of
`BridgeServices.call`, which the executor makes, and returns the wire's answer, which the session sends. A refusal, by
the bridge or its simulator, is raised. For all others `forward` returns None, and `Forwarder.answer` answers at once,
as a simulator would, out of what is known from topics.
"""

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from textwrap import shorten
from typing import Any, NamedTuple, cast

from rclpy.client import Client as ServiceClient
from rclpy.task import Future

from drone_bridge.motion.wxyz import Vector
from drone_bridge.ros.bridge_watch import BridgeWatch
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, Error, ItemType, Request, Response
from drone_bridge.simulator.device.requests import NO_EXTENDED, Context, answer
from drone_bridge.simulator.device.world import Client, Item, RefusedError, RunControl, World
from drone_bridge.simulator.server.scene import STEERED_ATTRIBUTES, MirroredEntity, MirroredScene
from drone_bridge.simulator.server.steering import HELD, VelocityCommands
from drone_bridge.simulator.topics import Axes, wire_value
from drone_bridge.simulator.topics import services as translate
from drone_bridge.simulator.topics.plans import EntityPlan
from drone_bridge.simulator.topics.services import SERVICES, simulators_own_text
from drone_bridge.wire.layouts import MisfitError

# The bridge's services.


#: How long a bridge that has left a call unanswered is not called, unless it answers late, or goes or comes back.
#: DDS itself takes 20 s to find that a node was killed, if that happened right after it was discovered.
SILENT_S = 5.0
NO_ERROR = -1  # code of a response that no Error of the simulator stands behind
#: Bytes of an error's text that visualizers have room for: they read 90 of an answer, and take the rest for the next.
LONGEST_TEXT = 77


class ServiceError(RefusedError):
    """A service has failed, or not answered in time."""

    def __init__(self, response: Any) -> None:
        """`response` is None when there is none in time."""
        #: Whether the error is the simulator's, and not of what is between.
        self.is_simulators = response is not None and response.code >= 0
        if response is None:
            super().__init__(0, "The service has not answered in time.")
        elif self.is_simulators:
            super().__init__(response.code, simulators_own_text(response.message))
        else:  # the bridge's, for people
            text = shorten(response.message, LONGEST_TEXT, placeholder=" ...").encode()[:LONGEST_TEXT]
            super().__init__(0, text.decode(errors="ignore"))


class BridgeServices:
    """The services of a bridge: called in the executor, for the link's loop."""

    def __init__(self, node: LinkNode, bridge: str) -> None:
        """`bridge`: the node's name; empty for none."""
        self._node = node
        self._silent_until_s = -math.inf
        self._unanswered: set[Callable[[Any], None]] = set()  # what gets the responses, None for none
        #: As the services of a killed node stay in DDS's graph for much longer.
        bridges = {node.resolve_service_name(bridge)} if bridge else set()
        self._bridge = BridgeWatch(node, lambda: bridges, self._bridge_changed)
        self._were_offered = False
        self._clients: dict[str, ServiceClient[Any, Any]] = {}
        if bridge:
            self._clients = {name: node.make_client(kind, f"{bridge}/{name}") for name, kind in SERVICES.items()}
        #: What to call, whether it moves the vehicle, and what gets the response; at most one per client.
        self._waiting: deque[tuple[str, Any, bool, Callable[[Any], None]]] = deque()
        self._guard = node.make_guard_condition(self._make_calls)

    @property
    def are_lost(self) -> bool:
        """Whether there was a bridge, and is no longer one that moves."""
        return self._were_offered and not self.offers("set_entity_state")

    def offers(self, service: str) -> bool:
        """Return whether a service is available."""
        client = self._clients.get(service)
        is_offered = client is not None and not self._bridge.is_gone and client.service_is_ready()
        self._were_offered |= is_offered
        return is_offered and time.monotonic() > self._silent_until_s

    async def call(self, service: str, request: Any, *, moves_vehicle: bool = False) -> Any:
        """Return the response. Raises ServiceError if the service fails, or does not answer in time.

        A call that moves the vehicle is not made while that is held.
        """
        loop = asyncio.get_running_loop()
        responded = loop.create_future()

        def settle(response: Any) -> None:
            if not responded.done():
                responded.set_result(response)

        def respond(response: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has been closed
                loop.call_soon_threadsafe(settle, response)

        self._unanswered.add(respond)
        self._waiting.append((service, request, moves_vehicle, respond))
        self._guard.trigger()
        try:
            response = await asyncio.wait_for(responded, self._node.parameters["request_timeout"])
        except asyncio.TimeoutError:
            response, self._silent_until_s = None, time.monotonic() + SILENT_S
        finally:
            self._unanswered.discard(respond)
        if response is None or not response.success:
            raise ServiceError(response)
        return response

    # In the executor.

    def _make_calls(self) -> None:
        while self._waiting:
            service, request, moves_vehicle, respond = self._waiting.popleft()
            if moves_vehicle and not self._node.hold.admits(f"the service {service}"):
                respond(SERVICES[service].Response(success=False, code=NO_ERROR, message=HELD))
                continue
            future = self._clients[service].call_async(request)
            future.add_done_callback(partial(self._responded, respond))

    def _responded(self, respond: Callable[[Any], None], future: "Future[Any]") -> None:
        response = None if future.cancelled() or future.exception() else future.result()
        if response is not None:
            self._silent_until_s = -math.inf
        respond(response)

    def _bridge_changed(self) -> None:
        self._silent_until_s = -math.inf
        if self._bridge.is_gone:  # a killed bridge answers nothing that it was asked before
            for respond in tuple(self._unanswered):
                respond(None)


# What is asked of them.


LOST_BRIDGE = "The bridge behind this server does not answer."
_CAMERA_REQUESTS = (sim.SetCamera, sim.StreamCamera)
_ATTRIBUTES = frozenset(Attribute)


@dataclass(slots=True, kw_only=True)
class ForwardedItem(Item):
    """A camera, trigger or stream in the bridge's simulator, which has the same ID there."""


def _default_name(entity: int) -> str:
    """Return the bridge's name for an entity that nobody names, the same after a restart of this node."""
    return f"entity_{entity}"


@dataclass(slots=True)
class Forwarder:
    """Answers clients' requests: by the bridge's services, or from topics. For the link's loop."""

    services: BridgeServices
    axes: Axes
    device: Context  # whose control follows the bridge's simulator
    scene: MirroredScene
    vehicle: int  # the ID of the entity that cmd_vel steers
    commands: VelocityCommands
    mirror: Callable[[EntityPlan], None]  # subscribes to the topics of another entity
    forget_entity: Callable[[int], None]  # called when the bridge has an entity no longer
    is_clock_stopped: Callable[[], bool]  # returns whether simulated time stands still, so that the world is paused
    #: Whether there is a bridge, whose simulator runs and pauses, and does not heed our own state.
    has_bridge: bool = False
    #: Whether clients have been told since that the world runs, or is paused, without the simulator knowing.
    is_run_untold: bool = False
    _names: dict[int, str] = field(default_factory=dict)  # of entities, as the bridge calls them
    _trigger_numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def world(self) -> World:
        return self.device.world

    @property
    def control(self) -> RunControl:
        return self.device.control

    def answer(self, client: Client, request: Request) -> Response | Coroutine[Any, Any, Response]:
        """Return the answer, or what awaits that of a service."""
        return self.forward(client, request) or self.answer_locally(client, request)

    def answer_locally(self, client: Client, request: Request) -> Response:
        """Answer without calling a service."""
        if self.is_clock_stopped():  # which this node can't change
            if isinstance(request, sim.Run):
                return Error(0, "The time on /clock stands still, and can't be advanced from here.")
            if isinstance(request, sim.Pause):
                return Error(0, "The simulator is not running.")
        self.commands.client = client
        response = answer(self.device, client, request)
        if isinstance(request, (sim.Run, sim.Pause)) and isinstance(response, sim.Ok):
            self.is_run_untold = True
        self.stop_if_paused()
        return response

    @property
    def is_paused(self) -> bool:
        """Whether our own world is paused. A simulator behind a bridge takes velocities while paused."""
        return not self.control.is_running and not self.has_bridge

    def stop_if_paused(self) -> None:
        """Stop the vehicle when our own world is paused."""
        is_paused = self.is_paused
        if is_paused and not self.commands.is_paused:
            self.commands.stop()
        self.commands.is_paused = is_paused

    def forward(self, client: Client, request: Request) -> Coroutine[Any, Any, Response] | Response | None:
        """Return what awaits the answer of a service, an error, or None for what is answered locally.

        The coroutine raises RefusedError and ValueError.
        """
        if isinstance(request, sim.ViewCamera) and self._is_simulators(request.id):
            return Error(0, "A camera of the simulator behind the bridge has streams only.")
        forwarded = _FORWARDED.get(type(request))
        if forwarded is None or forwarded.is_local(self, request):
            return None
        if not self.services.offers(forwarded.service):
            return self._without_service(request, forwarded.service)
        return forwarded.ask(self, client, request)

    def _without_service(self, request: Request, service: str) -> Response | None:
        """Return the answer to what only a service can do, or None if it can be done locally."""
        if isinstance(request, sim.ListEntities):
            return self._merged(())
        if isinstance(request, sim.SetEntity) and request.id == self.vehicle and self.services.are_lost:
            return Error(0, LOST_BRIDGE) if request.attribute in STEERED_ATTRIBUTES else None
        if isinstance(request, sim.GetExtended) and self.scene.is_silent(request.id):
            return Error(0, NO_EXTENDED)  # visualizers ask for this first, and draw nothing if there is none
        is_there = isinstance(request, sim.AddEntity)
        is_there |= isinstance(request, _CAMERA_REQUESTS) and self._is_simulators(request.id)
        if isinstance(request, sim.Remove):
            is_there |= request.type == ItemType.ENTITY and self.scene.has_entity(request.id)
        return Error(0, f"No node offers the service {service}.") if is_there else None

    def _is_simulators(self, camera: int) -> bool:
        """Return whether a camera is in the simulator behind the bridge."""
        return isinstance(self.world.items.of(ItemType.CAMERA).get(camera), ForwardedItem)

    async def _call(self, service: str, request: Any = None, *, why: Request | None = None, **fields: Any) -> Any:
        """Return the response to a request, or to one of these fields. Raises ServiceError.

        `why` is the client's request, where the call carries out what that may do to the vehicle.
        """
        made, moves = request or SERVICES[service].Request(**fields), why is not None and why.moves(self.vehicle)
        response = await self.services.call(service, made, moves_vehicle=moves)
        self.scene.update_time()
        return response

    # The world.

    async def _get_config(self, client: Client, request: sim.GetConfig) -> Response:
        told = await self._call("get_configuration")
        return sim.Configured(told.frequency, told.speed, told.non_real_time, told.use_desired_thrusters)

    async def _run(self, client: Client, request: sim.Run) -> Response:
        await self.set_running(True, request.steps)
        return sim.Ok()

    async def _pause(self, client: Client, request: sim.Pause) -> Response:
        await self.set_running(False)
        return sim.Ok()

    async def set_running(self, is_running: bool, steps: int = 0) -> None:
        """Have the simulator run or pause, and follow it. Raises ServiceError."""
        # Who was told otherwise while there was no bridge may ask for what the simulator does already.
        untold, self.is_run_untold = self.is_run_untold, False
        is_unchanged = untold and self.control.is_running != is_running
        try:
            await (self._call("run", steps=steps) if is_running else self._call("pause"))
        except ServiceError as error:
            if not error.is_simulators:
                self.is_run_untold = untold
                raise
            self._follow_run(is_running)
            if not is_unchanged:
                raise
        self._follow_run(is_running)

    def _follow_run(self, is_running: bool) -> None:
        self.control.follow(is_running=is_running)
        self.is_run_untold = False

    def _removes_here(self, request: sim.Remove) -> bool:
        if request.type not in tuple(ItemType) or request.type == ItemType.SPY:
            return True
        if request.type in (ItemType.ENTITY, ItemType.OBJECT):
            return False
        item = self.world.items.of(ItemType(request.type)).get(request.id)
        is_unknown_camera = item is None and request.type == ItemType.CAMERA
        return not isinstance(item, ForwardedItem) and not is_unknown_camera

    async def _remove(self, client: Client, request: sim.Remove) -> Response:
        await self._call("remove", translate.remove(request), why=request)
        kind = ItemType(request.type)
        if kind is ItemType.ENTITY:
            self.forget_name(request.id)
        if kind is not ItemType.OBJECT and self.world.has(kind, request.id):
            self.world.remove((kind, request.id))
        return sim.Ok()

    async def remove_item(self, kind: ItemType, number: int) -> None:
        """Remove an item that nobody asks for any more."""
        with contextlib.suppress(ServiceError):
            await self._call("remove", translate.remove(sim.Remove(kind, number)))

    # Entities.

    async def _list_entities(self, client: Client, request: sim.ListEntities) -> Response:
        try:
            response = await self._call("list_entities")
        except ServiceError:
            # Visualizers take an error for an empty list, and reconnect without closing, ten times a second.
            return self._merged(())
        self._learn_names(response)
        listed = tuple(response.ids)
        for number in set(self.scene.entities).difference(listed):
            if not self.scene.is_configured(number):
                self.forget_entity(number)
        for number in listed:
            self.add_entity(number)
        return self._merged(listed)

    def _merged(self, listed: tuple[int, ...]) -> Response:
        """Return the bridge's entities and our own. What a living bridge does not have must be heard of."""
        own = [number for number in reversed(self.scene.entities) if self.scene.is_configured(number)]
        own = [number for number in own if number not in listed and (not listed or self.scene.is_current(number))]
        return sim.EntitiesListed((*own, *listed))

    def _learn_names(self, response: Any) -> None:
        self._names.update((number, name) for number, name in zip(response.ids, response.names, strict=False) if name)

    def begin_anew(self) -> None:
        """Forget what the bridge's simulation had, as another one began."""
        for kind in (ItemType.CAMERA, ItemType.CAMERA_STREAM, ItemType.TRIGGER):
            for number, item in tuple(self.world.items.of(kind).items()):
                if isinstance(item, ForwardedItem) and self.world.has(kind, number):
                    self.world.remove((kind, number))
        for entity in tuple(self.scene.entities):
            if not self.scene.is_configured(entity):
                self.forget_entity(entity)
        self._names.clear()

    def add_entity(self, entity: int) -> None:
        """Add an entity that the bridge has, unless it is known."""
        if not self.scene.has_entity(entity):
            self.scene.add(entity, MirroredEntity())
            self.world.entity_added(entity, {})

    def forget_name(self, entity: int) -> None:
        """Forget the bridge's name for a removed entity."""
        self._names.pop(entity, None)

    async def _add_entity(self, client: Client, request: sim.AddEntity) -> Response:
        response = await self._call("spawn", translate.spawn(request, self.axes))
        entity = response.id
        self.add_entity(entity)
        self.scene.add(entity, MirroredEntity(request.radius, request.corporeal))
        self._names[entity] = _default_name(entity)
        self._mirror_entity(entity)
        return sim.Added(ItemType.ENTITY, entity)

    def _mirror_entity(self, entity: int) -> None:
        topic = f"entities/{self._names[entity]}"
        self.scene.expect_source(entity)
        self.mirror(EntityPlan(entity, self._names[entity], pose=f"{topic}/pose", twist=f"{topic}/twist"))

    def _sets_here(self, request: sim.SetEntity) -> bool:
        if request.attribute not in _ATTRIBUTES:
            return True
        # Without a state v can't be turned into cmd_vel; and w neither, as that would set v to zero again.
        is_steered = request.id == self.vehicle and request.attribute in STEERED_ATTRIBUTES
        return is_steered and self.scene.is_current(request.id)

    async def _set_entity(self, client: Client, request: sim.SetEntity) -> Response:
        is_steered = request.id == self.vehicle and request.attribute in STEERED_ATTRIBUTES
        if is_steered:
            self.commands.hear(client)  # else nobody stops it
        state = self.scene.state(request.id)
        if state is None and request.attribute == Attribute.VELOCITY:
            state = translate.state_from_response(await self._call("get_entity_state", id=request.id))
        orientation = state.orientation if state else None
        await self._call("set_entity_state", translate.set_state(request, orientation, self.axes), why=request)
        if is_steered:
            self.commands.note(client, request.attribute, cast(Vector, request.value))
        return sim.Ok()

    def _gets_here(self, request: sim.GetEntity) -> bool:
        return request.attribute not in _ATTRIBUTES or self.scene.is_current(request.id)

    async def _get_entity(self, client: Client, request: sim.GetEntity) -> Response:
        response = await self._call("get_entity_state", id=request.id)
        state = translate.state_from_response(response)
        return sim.EntityGot(request.attribute, wire_value(state, response.corporeal, request.attribute, self.axes))

    def _streams_here(self, request: sim.StreamEntity) -> bool:
        return self.scene.has_source(request.id) or not set(request.attributes) <= _ATTRIBUTES

    async def _stream_entity(self, client: Client, request: sim.StreamEntity) -> Response:
        entity = request.id
        if entity not in self._names:
            name = _default_name(entity)
            try:
                await self._call("stream_entity", id=entity, name=name)
                self._names.setdefault(entity, name)
            except ServiceError as error:
                if error.is_simulators:
                    raise
                # The bridge may publish it already, under another name.
                self._learn_names(await self._call("list_entities"))
                if entity not in self._names:
                    raise
        self.add_entity(entity)
        self._mirror_entity(entity)
        return self.answer_locally(client, request)

    # Extended attributes.

    async def _get_extended(self, client: Client, request: sim.GetExtended) -> Response:
        response = await self._call("get_attribute", id=request.id, key=request.key)
        return sim.ExtendedGot(request.key, bytes(response.attribute.data))

    async def _set_extended(self, client: Client, request: sim.SetExtended) -> Response:
        await self._call("set_attribute", translate.set_attribute(request))
        if self.scene.has_entity(request.id):  # for streams, which the bridge has none of
            with contextlib.suppress(RefusedError):  # there are too many
                self.world.extended_attributes.set(request.id, request.key, request.data)
        return sim.Ok()

    def _added(self, kind: ItemType, number: int, client: Client | None) -> Response:
        self.world.add(kind, ForwardedItem(client=client), number)
        return sim.Added(kind, number)

    # Cameras and triggers.

    def _has_camera(self, request: Any) -> bool:
        if isinstance(request, sim.SetCamera) and request.attribute not in tuple(sim.CameraAttribute):
            return True
        item = self.world.items.of(ItemType.CAMERA).get(request.id)
        return item is not None and not isinstance(item, ForwardedItem)

    async def _add_camera(self, client: Client, request: sim.AddCamera) -> Response:
        response = await self._call("add_camera", translate.add_camera(request, self.axes))
        return self._added(ItemType.CAMERA, response.id, None)

    async def _set_camera(self, client: Client, request: sim.SetCamera) -> Response:
        await self._call("set_camera", translate.set_camera(request, self.axes))
        return sim.Ok()

    async def _stream_camera(self, client: Client, request: sim.StreamCamera) -> Response:
        fields: dict[str, Any] = {"camera_id": request.id, "target_id": request.target, "period": request.period}
        response = await self._call("stream_camera", **fields)
        return self._added(ItemType.CAMERA_STREAM, response.stream_id, client)

    def _has_no_such_trigger(self, request: sim.AddTrigger) -> bool:
        return isinstance(request.trigger, sim.UnknownTrigger)

    async def _add_trigger(self, client: Client, request: sim.AddTrigger) -> Response:
        assert not isinstance(request.trigger, sim.UnknownTrigger)
        name = f"operator_trigger_{next(self._trigger_numbers)}"
        response = await self._call("add_trigger", translate.add_trigger(request.trigger, name, self.axes))
        return self._added(ItemType.TRIGGER, response.id, client)

    # Objects.

    def _has_no_such_class(self, request: sim.AddObject) -> bool:
        return request.class_name != sim.Turbulence.CLASS

    async def _add_object(self, client: Client, request: sim.AddObject) -> Response:
        try:
            turbulence = sim.Turbulence.decode(request.data)
        except MisfitError as error:
            raise RefusedError(0, f"The data are not a turbulence: {error}.") from error
        response = await self._call("add_turbulence", translate.add_turbulence(turbulence, self.axes), why=request)
        return sim.Added(ItemType.OBJECT, response.id)


class Forwarded(NamedTuple):
    """How one kind of request is answered by the bridge."""

    service: str  # without which it is not forwarded
    ask: Callable[[Forwarder, Client, Any], Coroutine[Any, Any, Response]]
    #: Whether a request is answered here even if there is a bridge.
    is_local: Callable[[Forwarder, Any], bool] = lambda forwarder, request: False


_FORWARDED: dict[type[Request], Forwarded] = {
    sim.GetConfig: Forwarded("get_configuration", Forwarder._get_config),
    sim.Run: Forwarded("run", Forwarder._run),
    sim.Pause: Forwarded("pause", Forwarder._pause),
    sim.Remove: Forwarded("remove", Forwarder._remove, Forwarder._removes_here),
    sim.ListEntities: Forwarded("list_entities", Forwarder._list_entities),
    sim.AddEntity: Forwarded("spawn", Forwarder._add_entity),
    sim.SetEntity: Forwarded("set_entity_state", Forwarder._set_entity, Forwarder._sets_here),
    sim.GetEntity: Forwarded("get_entity_state", Forwarder._get_entity, Forwarder._gets_here),
    sim.StreamEntity: Forwarded("stream_entity", Forwarder._stream_entity, Forwarder._streams_here),
    sim.GetExtended: Forwarded("get_attribute", Forwarder._get_extended),
    sim.SetExtended: Forwarded("set_attribute", Forwarder._set_extended),
    sim.AddCamera: Forwarded("add_camera", Forwarder._add_camera),
    sim.SetCamera: Forwarded("set_camera", Forwarder._set_camera, Forwarder._has_camera),
    sim.StreamCamera: Forwarded("stream_camera", Forwarder._stream_camera, Forwarder._has_camera),
    sim.AddTrigger: Forwarded("add_trigger", Forwarder._add_trigger, Forwarder._has_no_such_trigger),
    sim.AddObject: Forwarded("add_turbulence", Forwarder._add_object, Forwarder._has_no_such_class),
}
