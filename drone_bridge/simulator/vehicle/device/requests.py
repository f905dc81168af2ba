# SPDX-License-Identifier: Apache-2.0
"""Simulator's side of the protocol: ServedClient, one client's connection, and the answer to each of its requests.

The CUAUV server deviates from the specification (`Quirks.REAL` follows it, except for crashes and broken streams):

- it disconnects on an unsupported request, trailing bytes, a body over 1024 bytes, an empty string, and on a request \
that arrives in pieces. Its own answers arrive in two pieces, which delayed acknowledgements slow down to 44 ms;
- EGET has no `data`; the error codes of ESTREAM and EGET are swapped; RUN while running and PAUSE while paused are \
ERROR 0; COMPLETED arrives on every connection;
- the depth of CDATA is that along the camera's axis;
- REMOVE of a trigger or an entity stream is answered, but has no effect. OADD counts from 0, but REMOVE takes the \
numbers of forces, of which 0 is gravity;
- CSET refers to the body frame of the entity, CADD to the model frame. CSET of a missing camera crashes it, changed \
cameras ends all camera streams.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import Enum, IntEnum
from typing import Any, cast

from drone_bridge.motion.wxyz import IDENTITY, multiply, rotate, unit
from drone_bridge.simulator import codec as wire
from drone_bridge.simulator.codec import ItemType
from drone_bridge.simulator.vehicle.device.world import (
    INVALID,
    UNSUPPORTED,
    CameraStream,
    Collision,
    EntityStream,
    Item,
    ItemOwner,
    Key,
    Path,
    RequestRefusedError,
    RunControl,
    SweepCollision,
    Timing,
    World,
    name_of,
)
from drone_bridge.wire.events import DisconnectPeerError
from drone_bridge.wire.outgoing import encoded


class Quirks(str, Enum):
    """Deviations from the specification."""

    NONE = "none"  # as specified
    REAL = "real"  # like the CUAUV server, as far as known


def disconnect_reason(request: wire.Request) -> str | None:
    """Return the reason why the CUAUV server disconnects on a valid request, or None."""
    if not request.IS_IN_CUAUV:
        return f"{type(request).__name__} is not supported by the CUAUV server"
    if not all(request.texts):
        return f"{type(request).__name__} has an empty string, which the CUAUV server can't read"
    return None


# Connection of a client: received bytes, requests, and messages to write.


MAX_UNREAD_BYTES = 4 << 20  # queued for a client; above it, the client is dropped
_UNENCODABLE = wire.Error(0, "The answer can't be encoded.")
_HEADER_BYTES = 5


class ServedClient:
    """Requests of one client and messages to it. Owner of items of the world."""

    def __init__(self, refuse: Callable[[str], None], quirks: Quirks = Quirks.NONE) -> None:
        """`refuse` receives a sentence about a message that can't be encoded."""
        self._refuse, self.is_real = refuse, quirks is Quirks.REAL
        limit = wire.MAX_REQUEST_BYTES if self.is_real else wire.MAX_BODY_BYTES
        self.protocol = wire.ServerConnection(max_body_bytes=limit)
        self.drop_reason: str | None = None  # set to drop the client
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    # Receiving.

    def next_request(self) -> wire.Request | None:
        """Return the next request. None if more data are needed or the client has disconnected.

        Raises RemoteProtocolError, and DisconnectPeerError for requests on which the CUAUV server disconnects.
        """
        event = self.protocol.next_event()
        if not isinstance(event, wire.Request):
            if self.is_real and self.protocol.inside_message:
                raise DisconnectPeerError("request in several pieces")
            return None
        if self.is_real and (reason := disconnect_reason(event)):
            raise DisconnectPeerError(reason)
        return event

    # Sending.

    @property
    def unread_bytes(self) -> int:
        """Number of bytes queued for the client."""
        return self._waiting_bytes

    def post(self, response: wire.Response) -> None:
        """Queue a message that answers no request."""
        if not self.drop_reason and (message := encoded(wire.frame, response, None, self._refuse)):
            self.queue(message)

    def answer(self, response: wire.Response) -> None:
        """Queue the answer to the oldest request. An answer that can't be encoded is replaced by an error."""
        if message := encoded(self.protocol.send, response, _UNENCODABLE, self._refuse):
            self.queue(message)

    def queue(self, message: bytes) -> None:
        """Queue a message, or mark the client to be dropped if the queue is full."""
        if self.drop_reason:
            return
        if self.unread_bytes > MAX_UNREAD_BYTES:
            self.drop_reason = f"more than {MAX_UNREAD_BYTES} bytes unread"
            self._waiting.clear()
            return
        self._waiting.append(message)
        self._waiting_bytes += len(message)

    def take(self) -> list[bytes]:
        """Return queued messages in pieces like the CUAUV server: headers and bodies separately."""
        messages, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not self.is_real:
            return [b"".join(messages)] if messages else []
        pieces = []
        for message in messages:
            pieces += [message[:_HEADER_BYTES], message[_HEADER_BYTES:]]
        return [piece for piece in pieces if piece]


# Answers.


NO_ENTITY = "No entity with given ID."  # text of the CUAUV server
NO_EXTENDED = "No extended entity attribute with given key."  # likewise


@dataclass(slots=True)
class Context:
    """Shared state of request handlers."""

    world: World
    control: RunControl
    timing: Timing
    is_real: bool = False  # follow the CUAUV server where it deviates from the specification
    objects_added: int = 0  # by clients


Handler = Callable[[Context, ItemOwner, Any], wire.Response]


def expect(context: Context, kind: ItemType, number: int, code: int = 0) -> None:
    """Raise RequestRefusedError with this code unless the item exists."""
    if not context.world.has(kind, number):
        raise RequestRefusedError(
            code, NO_ENTITY if kind is ItemType.ENTITY else f"{name_of(kind).capitalize()} {number} does not exist."
        )


def expect_one_of(known: type[IntEnum], number: int, name: str, code: int) -> None:
    """Raise RequestRefusedError with this code unless the number is a known one. `name` begins the sentence."""
    if number not in tuple(known):
        raise RequestRefusedError(code, f"{name} {number} does not exist: they are 0 to {max(known)}.")


# World.


def get_config(context: Context, client: ItemOwner, request: wire.GetConfig) -> wire.Response:
    """Return the speed of the world."""
    timing = context.timing
    return wire.Configured(timing.frequency, timing.speed, timing.is_non_real_time, False)


def run(context: Context, client: ItemOwner, request: wire.Run) -> wire.Response:
    """Run. Error 0 while running."""
    context.control.run(request.steps)
    return wire.Ok()


def pause(context: Context, client: ItemOwner, request: wire.Pause) -> wire.Response:
    """Pause. Error 0 while paused."""
    context.control.pause()
    return wire.Ok()


def remove(context: Context, client: ItemOwner, request: wire.Remove) -> wire.Response:
    """Remove an item and those that depend on it. Error 0: no such item; 1: no such type."""
    expect_one_of(ItemType, request.type, "Item type", code=1)
    key = ItemType(request.type), request.id
    expect(context, *key)
    context.world.remove(key)
    return wire.Ok()


# Entities.


def add_entity(context: Context, client: ItemOwner, request: wire.AddEntity) -> wire.Response:
    """Add an entity. Its attitude is that of the body frame. Error 0: invalid values."""
    return wire.Added(ItemType.ENTITY, context.world.add_entity(request))


def set_entity(context: Context, client: ItemOwner, request: wire.SetEntity) -> wire.Response:
    """Set an attribute. Error 0: no such entity; 1: no such attribute."""
    expect(context, ItemType.ENTITY, request.id)
    expect_one_of(wire.Attribute, request.attribute, "Attribute", code=1)
    context.world.scene.set_attribute(request.id, request.attribute, request.value)
    return wire.Ok()


def get_entity(context: Context, client: ItemOwner, request: wire.GetEntity) -> wire.Response:
    """Return an attribute. Errors as for setting one."""
    expect_one_of(wire.Attribute, request.attribute, "Attribute", code=1)
    expect(context, ItemType.ENTITY, request.id)
    return wire.EntityGot(request.attribute, context.world.scene.attribute(request.id, request.attribute))


def set_extended(context: Context, client: ItemOwner, request: wire.SetExtended) -> wire.Response:
    """Set an extended attribute. Error 0: no such entity."""
    expect(context, ItemType.ENTITY, request.id)
    context.world.extended_attributes.set(request.id, request.key, request.data)
    return wire.Ok()


def get_extended(context: Context, client: ItemOwner, request: wire.GetExtended) -> wire.Response:
    """Return an extended attribute. Error 0: no such entity or attribute."""
    expect(context, ItemType.ENTITY, request.id)
    data = context.world.extended_attributes.of(request.id).get(request.key)
    if data is None:
        raise RequestRefusedError(0, NO_EXTENDED)
    return wire.ExtendedGot(request.key, data)


def on(*entities: int) -> frozenset[Key]:
    """Return the dependency of an item on entities."""
    return frozenset((ItemType.ENTITY, entity) for entity in entities)


def added(context: Context, kind: ItemType, item: Item) -> wire.Added:
    """Add an item to the world, and return the answer. Raises RequestRefusedError."""
    return wire.Added(kind, context.world.add(kind, item))


# Objects.


def add_object(context: Context, client: ItemOwner, request: wire.AddObject) -> wire.Response:
    """Add an object. Error 0: no such class, or invalid data."""
    classes = context.world.scene.object_classes
    if request.class_name not in classes:
        there = " and ".join(map(repr, classes)) or "none"
        raise RequestRefusedError(
            0, f"Class of objects {request.class_name[:50]!r} does not exist. Available: {there}."
        )
    return wire.Added(ItemType.OBJECT, context.world.add_object(request.class_name, request.data))


# Cameras.


def add_camera(context: Context, client: ItemOwner, request: wire.AddCamera) -> wire.Response:
    """Add a camera to an entity's model frame. Error 0: no such entity."""
    expect(context, ItemType.ENTITY, request.entity)
    camera = replace(request, orientation=unit(request.orientation))
    return added(context, ItemType.CAMERA, Item(None, on(request.entity), camera))


def set_camera(context: Context, client: ItemOwner, request: wire.SetCamera) -> wire.Response:
    """Set an attribute of a camera. Error 0: no such camera; 1: no such attribute."""
    expect(context, ItemType.CAMERA, request.id)
    expect_one_of(wire.CameraAttribute, request.attribute, "Camera attribute", code=1)
    camera, value = context.world.items.of(ItemType.CAMERA)[request.id], cast(Any, request.value)
    # In the CUAUV server, these are relative to the body frame, whereas those of CADD are relative to the model frame.
    from_frame = context.world.scene.entities[camera.request.entity].btom if context.is_real else IDENTITY
    if request.attribute == wire.CameraAttribute.ORIENTATION:
        value = multiply(from_frame, unit(value))
    elif request.attribute == wire.CameraAttribute.POSITION:
        value = rotate(from_frame, value)
    camera.request = camera.request.changed(replace(request, value=value))
    return wire.Ok()


# Streams.


def stream_camera(context: Context, client: ItemOwner, request: wire.StreamCamera) -> wire.Response:
    """Add a camera stream. Error 0: no such camera; 1: no such entity; 2: the camera is on that entity."""
    expect(context, ItemType.CAMERA, request.id)
    expect(context, ItemType.ENTITY, request.target, code=1)
    entity = context.world.camera(request.id).entity
    if entity == request.target:
        raise RequestRefusedError(2, f"Camera {request.id} is on entity {entity}, so it can't see it.")
    depends_on = on(request.target) | {(ItemType.CAMERA, request.id)}
    return added(context, ItemType.CAMERA_STREAM, CameraStream(client, depends_on, request, on=entity))


def stream_entity(context: Context, client: ItemOwner, request: wire.StreamEntity) -> wire.Response:
    """Add an entity stream. Error 0: no such attribute; 1: no such entity."""
    for attribute in request.attributes:
        expect_one_of(wire.Attribute, attribute, "Attribute", code=0)
    expect(context, ItemType.ENTITY, request.id, code=1)
    return added(context, ItemType.ENTITY_STREAM, EntityStream(client, on(request.id), request))


# Triggers.


def add_trigger(context: Context, client: ItemOwner, request: wire.AddTrigger) -> wire.Response:
    """Add a trigger.

    Error 0: no such type. Collisions: 1: an entity with itself; 2, 3: no entity a, no entity b. Paths: 1: no such
    entity; 2: the distance is not above 0.
    """
    asked = request.trigger
    if isinstance(asked, wire.UnknownTrigger):
        raise RequestRefusedError(
            0, f"Trigger type {asked.type} does not exist: they are 0 to {max(wire.TriggerType)}."
        )
    if isinstance(asked, wire.BytecodeTrigger):
        raise RequestRefusedError(UNSUPPORTED, f"Bytecode ({len(asked.code)} bytes) is not supported.")
    trigger = (
        _path(context, client, asked) if isinstance(asked, wire.PathTrigger) else _collision(context, client, asked)
    )
    return added(context, ItemType.TRIGGER, trigger)


def _collision(context: Context, client: ItemOwner, asked: wire.CollisionTrigger | wire.SweepCollisionTrigger) -> Item:
    if asked.a == asked.b:
        raise RequestRefusedError(1, f"Entity {asked.a} can't collide with itself.")
    expect(context, ItemType.ENTITY, asked.a, code=2)
    expect(context, ItemType.ENTITY, asked.b, code=3)
    scene = context.world.scene
    distance = scene.entities[asked.a].radius + scene.entities[asked.b].radius
    if isinstance(asked, wire.SweepCollisionTrigger):
        return SweepCollision(client, on(asked.a, asked.b), asked, distance)
    return Collision(client, on(asked.a, asked.b), asked, distance if asked.distance < 0 else asked.distance)


def _path(context: Context, client: ItemOwner, asked: wire.PathTrigger) -> Item:
    expect(context, ItemType.ENTITY, asked.entity, code=1)
    if not asked.distance > 0:
        raise RequestRefusedError(2, f"The distance is {asked.distance:g}, but must be above 0.")
    return Path(client, on(asked.entity), asked)


# Numbers.


def not_finite(request: wire.Request) -> wire.Error | None:
    """Return the error for a request with a number that is not finite, which names it. None if there is none."""
    if not (numbers := _first_nonfinite(request)):
        return None
    return _invalid(request, f"The numbers are {numbers}, but must be finite.")


def _invalid(request: wire.Request, sentence: str) -> wire.Error:
    return wire.Error(0 if isinstance(request, wire.AddEntity | wire.AddObject) else INVALID, sentence)


def _first_nonfinite(request: Any) -> str:
    """Return the first value of a request that is not finite, as text. Empty if there is none."""
    for each in fields(request):
        value = getattr(request, each.name)
        numbers = value if isinstance(value, tuple) else (value,)
        if any(isinstance(number, float) and not math.isfinite(number) for number in numbers):
            text = ", ".join(f"{number:.3g}" for number in numbers)
            return f"({text})" if isinstance(value, tuple) else text
    inner = getattr(request, "trigger", None)
    if isinstance(request, wire.AddObject) and request.class_name == wire.Turbulence.CLASS:
        with contextlib.suppress(ValueError):  # other data than a turbulence
            inner = wire.Turbulence.of(request.data)
    return _first_nonfinite(inner) if inner else ""


# All handlers.


_HANDLERS: dict[type[wire.Request], Handler] = {
    wire.Reassure: lambda context, client, request: wire.Ok(),
    wire.GetConfig: get_config,
    wire.Run: run,
    wire.Pause: pause,
    wire.Spy: lambda context, client, request: added(context, ItemType.SPY, Item(client)),
    wire.Remove: remove,
    # Newest first, like the CUAUV server.
    wire.ListEntities: lambda context, client, request: wire.EntitiesListed(
        tuple(reversed(context.world.scene.entities))
    ),
    wire.AddEntity: add_entity,
    wire.SetEntity: set_entity,
    wire.GetEntity: get_entity,
    wire.SetExtended: set_extended,
    wire.GetExtended: get_extended,
    wire.AddObject: add_object,
    wire.AddCamera: add_camera,
    wire.SetCamera: set_camera,
    wire.StreamCamera: stream_camera,
    wire.StreamEntity: stream_entity,
    wire.AddTrigger: add_trigger,
}


#: Types of items that the CUAUV server removes. It answers OK to all others, existing or not, without removing them.
_REMOVED = frozenset({ItemType.ENTITY, ItemType.OBJECT, ItemType.CAMERA, ItemType.CAMERA_STREAM, ItemType.SPY})


def answer(context: Context, client: ItemOwner, request: wire.Request) -> wire.Response:
    """Execute a request, and return the answer."""
    if context.is_real and isinstance(request, wire.Remove) and request.type not in _REMOVED:
        return wire.Ok()  # without effect
    if (handler := _HANDLERS.get(type(request))) is None:
        return wire.Error(UNSUPPORTED, f"{request.NAME} is not supported.")
    if refused := not_finite(request):
        return refused
    try:
        response = handler(context, client, request)
    except RequestRefusedError as error:
        return error.answer
    except ValueError as error:  # invalid numbers
        return _invalid(request, str(error))
    if context.is_real and isinstance(request, wire.AddObject):
        # The CUAUV server returns a separate count, but removes by the IDs of forces, where gravity is 0.
        response = wire.Added(ItemType.OBJECT, context.objects_added)
        context.objects_added += 1
    return response
