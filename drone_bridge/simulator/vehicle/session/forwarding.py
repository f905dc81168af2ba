# SPDX-License-Identifier: Apache-2.0
"""Forwarder: answers clients' requests from topics, or by a bridge's services. Pure.

Theory of operation:

A request is answered locally, from topics, or by a service. `begin` returns an answer, or a generator that yields each
Question for a service, receives its Answer, and returns the answer to the client. It raises RequestRefusedError, and
ValueError with a sentence. Hold is checked right before each call that may move the vehicle, since it may have begun
after the previous call.

| request | answered by a service, if offered |
|---|---|
| CONFIG, RUN, PAUSE, ELIST, EADD, EXGET, EXSET, CADD | always |
| REMOVE | for entities and objects, for items that a service has added, and for unknown cameras |
| ESET | except v and w of a vehicle whose state is known: those are commands |
| EGET | for an entity whose state is unknown, and for `corporeal` |
| ESTREAM | for an entity without topics, which are then subscribed to |
| CSET, CSTREAM | for cameras that are not local |
| TADD, OADD | if the types are those of simulators |
"""

import contextlib
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

from drone_bridge.motion.wxyz import IDENTITY, WxyzQuaternion
from drone_bridge.parameter_fields import parameter
from drone_bridge.session.node_parameters import ServerParameters
from drone_bridge.session.session import AFTER_STALLS, Action, Answer, Note, Publish
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import VEHICLE, Attribute, Error, ItemType, Request, Response
from drone_bridge.simulator.session.heading import BODY_TO_MODEL_KEY, encode_rotation
from drone_bridge.simulator.vehicle.device.requests import NO_ENTITY, NO_EXTENDED, Context, answer, not_finite
from drone_bridge.simulator.vehicle.device.world import (
    INVALID,
    Item,
    ItemOwner,
    Key,
    RequestRefusedError,
    RunControl,
    Timing,
    World,
)
from drone_bridge.simulator.vehicle.session.mirrored_scene import (
    UNKNOWN_STATE,
    ConfiguredEntity,
    MirroredEntity,
    MirroredScene,
)
from drone_bridge.simulator.vehicle.session.velocity_commands import STEERED, ClientVelocityCommands
from drone_bridge.wire.counters import problems

HELD = "The vehicle is on hold."
MAY_BE_STALE = "The request may be stale: the server or its bridge was suspended meanwhile. Please send it again."
_NO_ANSWER, _NOT_CALLED = "The service timed out.", "The service could not be called."
#: Types of items that a client adds in the bridge's simulator.
_FORWARDED_ITEMS = (ItemType.CAMERA, ItemType.CAMERA_STREAM, ItemType.TRIGGER)
#: Frequency in the answer to CONFIG before a service has reported it, Hz.
FREQUENCY = 100.0
(UNSTEERED,) = problems("unsteered_commands")


class Follow(NamedTuple):
    """Request to subscribe to the topics of an entity of the bridge with this name. None: unsubscribe."""

    entity: int
    name: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Call of a service."""

    service: str
    request: Any
    """Request of the service's type."""
    moves: bool
    """Whether it may move the vehicle."""
    steers: bool = False
    """Whether it sets a velocity of the vehicle, which persists."""


ServiceProcedure = Generator[Question, Answer, Any]


class ServiceCalls(Protocol):
    """Conversion of requests to calls of a bridge's services."""

    def service_of(self, request: Request) -> str | None:
        """Return the service that answers a request, or None."""

    def ask(self, request: Request, orientation: WxyzQuaternion | None = None) -> Any:
        """Return the service's request. `orientation` is that of the entity whose v is set.

        Raises ValueError.
        """

    def answer(self, request: Request, response: Any) -> Response:
        """Return the answer to the client, which may be an Error."""


class ForwardedItem(Item):
    """Camera, trigger or stream in the bridge's simulator, with the same ID there."""


class ServiceError(RequestRefusedError):
    """Failure or timeout of a service."""

    def __init__(self, error: Error, *, is_simulators: bool = False) -> None:
        """`is_simulators`: the error is from the simulator, not from the service."""
        super().__init__(error.code, error.message)
        self.is_simulators = is_simulators


@dataclass(slots=True)
class SimulatorParameters(ServerParameters):
    """Parameters of a server's session and its forwarder."""

    vehicle: int = parameter(VEHICLE, "ID of the entity whose state is on odom.", 0, 0x7FFFFFFF)
    request_timeout: float = parameter(2.0, "Timeout of a service, s. The client then receives an error.", 0.05, 60.0)


class Forwarder:
    """Handler of clients' requests. `scene`, `world` and `control` are shared by clients."""

    def __init__(
        self,
        entities: Sequence[ConfiguredEntity],
        parameters: SimulatorParameters,
        calls: ServiceCalls,
        *,
        offers: Callable[[str], bool],
        admits: Callable[[], bool],
    ) -> None:
        """Start with a running world.

        Args:
            entities: those that exist from the start.
            parameters: those of the node, which may change at any time.
            calls: converts requests to calls of services.
            offers: returns whether a service is available.
            admits: returns whether the vehicle may be moved, which is False on hold.
        """
        self._calls, self.offers, self._admits = calls, offers, admits
        #: Actions for the session.
        self.out: list[Action] = []
        #: Parameters of the node, for the session, too.
        self.parameters = parameters
        self._vehicle = parameters.vehicle
        self.scene = MirroredScene(lambda: parameters.source_timeout)
        self.world, self.control = World(self.scene), RunControl()
        self.control.run(0)
        self._device = Context(self.world, self.control, Timing(FREQUENCY))
        for entity in entities:
            self.scene.entities[entity.number] = MirroredEntity(entity.radius, has_source=True, is_configured=True)
            attributes = {BODY_TO_MODEL_KEY: encode_rotation(IDENTITY)}  # odom has the model's orientation
            if entity.render:
                attributes["render"] = entity.render.encode()
            self.world.entity_added(entity.number, attributes)
        #: Commands of clients for the vehicle.
        self.commands = ClientVelocityCommands(
            lambda: parameters.command_timeout, lambda: self.scene.orientation(self._vehicle), self.out
        )
        #: Time, and whether the request may be stale. Set by the session.
        self.now_s, self.may_be_stale = 0.0, False

    @property
    def has_bridge(self) -> bool:
        """Whether there is a bridge. Its simulator runs and pauses independently of our own state."""
        return self.offers("run") and self.offers("pause")

    @property
    def is_paused(self) -> bool:
        """Whether our own world is paused. A simulator behind a bridge accepts velocities while paused."""
        return not self.control.is_running and not self.has_bridge

    def begin(self, client: ItemOwner, request: Request) -> Response | ServiceProcedure:
        """Return the answer, or a generator that gets it from services."""
        if error := not_finite(request):  # in the client's own axes, unlike those of services
            return error
        service = self._calls.service_of(request)
        if service is None or self._is_answered_here(request):
            return self.answer_here(client, request)
        if self.offers(service):
            return _BY_SERVICES.get(type(request), Forwarder._pass_on)(self, client, request)
        return self._answer_alone(client, request, service)

    def _answer_alone(self, client: ItemOwner, request: Request, service: str) -> Response:
        """Answer while the bridge does not respond."""
        if isinstance(request, sim.ListEntities):
            return self._known()
        scene = self.scene
        if isinstance(request, sim.GetExtended) and scene.has_source(request.id) and not scene.is_current(request.id):
            return Error(0, NO_EXTENDED)  # requested by visualizers before they draw
        if isinstance(request, sim.Remove):
            is_elsewhere = request.type == ItemType.ENTITY
        else:  # remaining requests about cameras are for those in the simulator
            is_elsewhere = isinstance(request, sim.SetCamera | sim.StreamCamera) and self.world.has(
                ItemType.CAMERA, request.id
            )
        return Error(0, f"Service {service} is not available.") if is_elsewhere else self.answer_here(client, request)

    # Without services.

    def answer_here(self, client: ItemOwner, request: Request) -> Response:
        """Answer from local state."""
        if self._is_steering(request) and self._vehicle in self.scene.entities:
            try:
                self._steer(client, cast(sim.SetEntity, request))
            except RequestRefusedError as error:
                return error.answer
            return sim.Ok()
        response = answer(self._device, client, request)
        if isinstance(request, sim.Pause) and not self.has_bridge:
            self.commands.stop()  # it may run again before a velocity is published
        return response

    def _is_answered_here(self, request: Request) -> bool:
        """Return whether no service is called, even if there is a bridge."""
        if isinstance(getattr(request, "value", None), bytes):  # of an undocumented attribute
            return True
        is_here = False
        if isinstance(request, sim.Remove):
            is_unknown_camera = request.type == ItemType.CAMERA and not self.world.has(ItemType.CAMERA, request.id)
            is_in_scene = request.type in (ItemType.ENTITY, ItemType.OBJECT)
            is_here = not (is_in_scene or is_unknown_camera or self._is_forwarded(request.type, request.id))
        elif isinstance(request, sim.SetEntity):
            # Without a state, v can't be converted to a command. Nor can w, as a command would reset v to zero.
            is_here = self._is_steering(request) and self.scene.is_current(self._vehicle)
        elif isinstance(request, sim.GetExtended):
            is_here = request.key == BODY_TO_MODEL_KEY and self.scene.has_source(request.id)
        elif isinstance(request, sim.GetEntity):
            is_in_topics = self.scene.is_current(request.id) and request.attribute != Attribute.CORPOREAL
            is_here = request.attribute not in tuple(Attribute) or is_in_topics
        elif isinstance(request, sim.StreamEntity):
            is_here = self.scene.has_source(request.id) or not set(request.attributes) <= set(Attribute)
        elif isinstance(request, sim.SetCamera | sim.StreamCamera):
            is_here = self.world.has(ItemType.CAMERA, request.id) and not self._is_forwarded(
                ItemType.CAMERA, request.id
            )
        elif isinstance(request, sim.AddTrigger):
            is_here = isinstance(request.trigger, sim.UnknownTrigger | sim.BytecodeTrigger)
        elif isinstance(request, sim.AddObject):
            is_here = request.class_name != sim.Turbulence.CLASS
        return is_here

    def _is_steering(self, request: Request) -> bool:
        return isinstance(request, sim.SetEntity) and request.id == self._vehicle and request.attribute in STEERED

    def _is_forwarded(self, kind: int, number: int) -> bool:
        """Return whether an item is in the simulator behind the bridge."""
        return kind in _FORWARDED_ITEMS and isinstance(self.world.items.of(ItemType(kind)).get(number), ForwardedItem)

    def _steer(self, client: ItemOwner, request: sim.SetEntity) -> None:
        """Publish a command. Zero is published even if the vehicle's state is unknown. Raises RequestRefusedError."""
        is_known = self.scene.is_current(self._vehicle)
        if any(cast(tuple[float, ...], request.value)):
            self._check_moves()
            if not is_known:  # also for w, since its client may have set v
                sentence = "The vehicle can't be steered: its orientation is unknown."
                self.out.append(Note(UNSTEERED, sentence))
                raise RequestRefusedError(0, UNKNOWN_STATE)
        self.commands.set(client, request, self.now_s)
        if not is_known:  # the source of its motion may have disconnected
            raise RequestRefusedError(0, UNKNOWN_STATE)

    def _check_moves(self) -> None:
        """Raise RequestRefusedError unless the vehicle may be moved now."""
        if not self._admits():
            raise RequestRefusedError(0, HELD)
        if self.may_be_stale:
            self.out.append(Note(AFTER_STALLS))
            raise RequestRefusedError(INVALID, MAY_BE_STALE)

    # By services.

    def _call(self, request: Request, orientation: WxyzQuaternion | None = None) -> ServiceProcedure:
        """Return the response of the service. Raises RequestRefusedError."""
        service = self._calls.service_of(request)
        assert service
        moves = request.moves(self._vehicle)
        steers, value = self._is_steering(request), getattr(request, "value", None)
        question = Question(service, self._calls.ask(request, orientation), moves, steers)
        if moves and not (steers and value and not any(value)):  # zero is always allowed
            self._check_moves()
        got = yield question
        if got.response is None:
            raise ServiceError(Error(0, _NO_ANSWER if got.was_called else _NOT_CALLED))
        if not got.response.success:
            error = cast(Error, self._calls.answer(request, got.response))
            raise ServiceError(error, is_simulators=got.response.code >= 0)
        return got.response

    def _ask(self, request: Request) -> ServiceProcedure:
        """Return the answer of the service. Raises RequestRefusedError."""
        return self._calls.answer(request, (yield from self._call(request)))

    def _pass_on(self, client: ItemOwner, request: Request) -> ServiceProcedure:
        """Answer by a single call."""
        answered = yield from self._ask(request)
        if isinstance(request, sim.AddEntity):
            entity = answered.id
            self.add_entity(entity)
            self.scene.entities[entity] = MirroredEntity(request.radius, request.corporeal)
            self._follow(Follow(entity, f"entity_{entity}"))
        elif isinstance(request, sim.Remove):
            if request.type == ItemType.ENTITY:
                self.forget_entity(request.id)
            elif self._is_forwarded(request.type, request.id):
                self.world.remove((ItemType(request.type), request.id))
        elif isinstance(answered, sim.Configured):
            self._device.timing = Timing(answered.frequency, answered.speed, answered.non_real_time)
        elif isinstance(answered, sim.Added) and answered.type in _FORWARDED_ITEMS:
            owner = None if answered.type == ItemType.CAMERA else client  # cameras outlive their clients
            self.world.add(ItemType(answered.type), ForwardedItem(client=owner), answered.id)
        return answered

    def _run(self, client: ItemOwner, request: sim.Run | sim.Pause) -> ServiceProcedure:
        """Run or pause the simulator, and follow its state."""
        try:
            answered = yield from self._ask(request)
        except ServiceError as error:
            if error.is_simulators:  # already in that state
                self.control.follow(is_running=isinstance(request, sim.Run))
            raise
        self.control.follow(is_running=isinstance(request, sim.Run))
        return answered

    def _list_entities(self, client: ItemOwner, request: sim.ListEntities) -> ServiceProcedure:
        """Return the bridge's entities, and our own with topics."""
        try:
            listed = (yield from self._ask(request)).ids
        except ServiceError:
            # Visualizers treat an error as an empty list, and reconnect at 10 Hz without closing.
            return self._known()
        for entity in set(self.scene.entities).difference(listed):
            if not self.scene.entities[entity].is_configured:
                self.forget_entity(entity)
        for entity in reversed(listed):  # newest last, as in the scene
            self.add_entity(entity)
        own = [number for number in reversed(self.scene.entities) if number not in listed]
        return sim.EntitiesListed((*(number for number in own if self.scene.is_current(number)), *listed))

    def _known(self) -> Response:
        """Return all known entities, newest first: the bridge's last known ones, and our own."""
        return sim.EntitiesListed(tuple(reversed(self.scene.entities)))

    def _set_entity(self, client: ItemOwner, request: sim.SetEntity) -> ServiceProcedure:
        is_steering = self._is_steering(request)
        if is_steering:
            self.commands.service_called(client, self.now_s)  # otherwise, nothing would stop it
        orientation = self.scene.orientation(request.id)
        if orientation is None and request.attribute == Attribute.VELOCITY:
            got = yield from self._ask(sim.GetEntity(request.id, Attribute.ORIENTATION))
            orientation = got.value
        answered = self._calls.answer(request, (yield from self._call(request, orientation)))
        if is_steering:
            self.commands.note(client, request, self.now_s)
        return answered

    def _stream_entity(self, client: ItemOwner, request: sim.StreamEntity) -> ServiceProcedure:
        """Let the bridge publish the entity, subscribe to it, and stream it from here."""
        entity = request.id
        try:
            yield from self._call(request)
        except ServiceError as error:
            if error.is_simulators:
                raise
            refusal = error.answer  # the bridge may already publish it
        else:
            refusal = Error(1, NO_ENTITY)
        listed = yield from self._call(sim.ListEntities())
        names = dict(zip(listed.ids, listed.names, strict=False))
        if not names.get(entity):
            return refusal
        self.add_entity(entity)
        self._follow(Follow(entity, names[entity]))
        return self.answer_here(client, request)

    def _follow(self, follow: Follow) -> None:
        self.scene.entities[follow.entity].has_source = True
        self.out.append(Publish(follow))

    # Reports of the bridge, and cleanup.

    def add_entity(self, entity: int) -> None:
        """Add an entity of the bridge, unless it is known."""
        if entity not in self.scene.entities:
            self.scene.entities[entity] = MirroredEntity()
            self.world.entity_added(entity, {})

    def forget_entity(self, entity: int) -> None:
        """Remove an entity that a bridge has removed, if it still exists."""
        self.world.entity_removed(entity)
        self.out.append(Publish(Follow(entity)))

    def forwarded_of(self, client: ItemOwner) -> list[Key]:
        """Return the client's items in the bridge's simulator that end with it."""
        return [key for key in self.world.items.of_client(client) if self._is_forwarded(*key)]

    def remove_all(self, keys: Collection[Key]) -> ServiceProcedure:
        """Remove items of a client from the bridge's simulator, while it responds."""
        for kind, number in keys:
            if not self.offers("remove"):
                return
            with contextlib.suppress(ServiceError):
                yield from self._call(sim.Remove(kind, number))


#: Handlers of requests that need more than one call, or have side effects.
_BY_SERVICES: dict[type[Request], Callable[[Forwarder, ItemOwner, Any], ServiceProcedure]] = {
    sim.Run: Forwarder._run,
    sim.Pause: Forwarder._run,
    sim.ListEntities: Forwarder._list_entities,
    sim.SetEntity: Forwarder._set_entity,
    sim.StreamEntity: Forwarder._stream_entity,
}
