# SPDX-License-Identifier: Apache-2.0
"""Handlers of requests about cameras, triggers and streams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from drone_bridge.motion.wxyz import IDENTITY, Vector, WxyzQuaternion, multiply, rotate, unit
from drone_bridge.simulator import codec as wire
from drone_bridge.simulator.codec import ItemType
from drone_bridge.simulator.device.camera import Camera
from drone_bridge.simulator.device.items import INVALID, UNSUPPORTED, Client, Item, RefusedError
from drone_bridge.simulator.device.streams import CameraStream, EntityStream, ExtendedStream
from drone_bridge.simulator.device.triggers import Collision, Path, SweepCollision
from drone_bridge.simulator.device.world_requests import Context, Handler, expect, expect_attribute

# Cameras.


def add_camera(context: Context, client: Client, request: wire.AddCamera) -> wire.Response:
    """Add a camera to an entity's model frame. Error 0: no such entity."""
    expect(context, ItemType.ENTITY, request.entity)
    camera = Camera(
        entity=request.entity,
        q=_rotation(request.orientation),
        x=_vector(request.position),
        focal_length=_finite(request.focal_length),
        is_enabled=request.enabled,
        depends_on=frozenset({(ItemType.ENTITY, request.entity)}),
    )
    context.world.aim(camera)
    return wire.Added(ItemType.CAMERA, context.world.add(ItemType.CAMERA, camera))


def set_camera(context: Context, client: Client, request: wire.SetCamera) -> wire.Response:
    """Set an attribute of a camera. Error 0: no such camera; 1: no such attribute."""
    expect(context, ItemType.CAMERA, request.id)
    camera, value = context.world.camera(request.id), request.value
    # The CUAUV server takes these relative to the body frame, though it takes those of CADD relative to the model's.
    from_frame = context.world.scene.body_to_model(camera.entity) if context.is_real else IDENTITY
    if request.attribute == wire.CameraAttribute.ORIENTATION:
        camera.q = multiply(from_frame, _rotation(cast(WxyzQuaternion, value)))
    elif request.attribute == wire.CameraAttribute.POSITION:
        camera.x = rotate(from_frame, _vector(cast(Vector, value)))
    elif request.attribute == wire.CameraAttribute.FOCAL_LENGTH:
        camera.focal_length = _finite(cast(float, value))
    elif request.attribute == wire.CameraAttribute.ENABLED:
        camera.is_enabled = bool(value)
    else:
        raise RefusedError(
            1, f"There is no attribute {request.attribute} of cameras, only 0 to {max(wire.CameraAttribute)}."
        )
    return wire.Ok()


def view_camera(context: Context, client: Client, request: wire.ViewCamera) -> wire.Response:
    """Return where an entity appears. Errors as for a stream of it."""
    _expect_view(context, request.id, request.target)
    view = context.world.view(request.id, request.target)
    return wire.CameraGot(view.x, view.y, view.radius, view.depth)


def broadcast_camera(context: Context, client: Client, request: wire.BroadcastCamera) -> wire.Response:
    """Add a broadcast, which has no effect, as there is no shared memory. Error 0: no such camera."""
    expect(context, ItemType.CAMERA, request.id)
    broadcast = Item(client=client, depends_on=frozenset({(ItemType.CAMERA, request.id)}))
    return wire.Added(ItemType.CAMERA_BROADCAST, context.world.add(ItemType.CAMERA_BROADCAST, broadcast))


def _expect_view(context: Context, camera: int, target: int) -> None:
    expect(context, ItemType.CAMERA, camera)
    expect(context, ItemType.ENTITY, target, code=1)
    if context.world.camera(camera).entity == target:
        raise RefusedError(2, f"Camera {camera} is on entity {target}, and so can't see it.")


# Streams.


def stream_camera(context: Context, client: Client, request: wire.StreamCamera) -> wire.Response:
    """Add a camera stream. Error 0: no such camera; 1: no such entity; 2: the camera is on that entity."""
    _expect_view(context, request.id, request.target)
    stream = CameraStream(
        client=client,
        depends_on=frozenset({(ItemType.CAMERA, request.id), (ItemType.ENTITY, request.target)}),
        period=request.period,
        camera=request.id,
        on=context.world.camera(request.id).entity,
        target=request.target,
    )
    return wire.Added(ItemType.CAMERA_STREAM, context.world.add(ItemType.CAMERA_STREAM, stream))


def stream_entity(context: Context, client: Client, request: wire.StreamEntity) -> wire.Response:
    """Add an entity stream. Error 0: no such attribute; 1: no such entity."""
    for attribute in request.attributes:
        expect_attribute(attribute, code=0)
    expect(context, ItemType.ENTITY, request.id, code=1)
    stream = EntityStream(
        client=client,
        depends_on=frozenset({(ItemType.ENTITY, request.id)}),
        period=request.period,
        entity=request.id,
        attributes=request.attributes,
    )
    return wire.Added(ItemType.ENTITY_STREAM, context.world.add(ItemType.ENTITY_STREAM, stream))


def stream_extended(context: Context, client: Client, request: wire.StreamExtended) -> wire.Response:
    """Add a stream of extended attributes. Error 0: the same key twice; 1: no such entity."""
    if len(set(request.keys)) < len(request.keys):
        raise RefusedError(0, "The keys must be distinct.")
    expect(context, ItemType.ENTITY, request.id, code=1)
    stream = ExtendedStream(
        client=client,
        depends_on=frozenset({(ItemType.ENTITY, request.id)}),
        period=request.period,
        entity=request.id,
        keys=request.keys,
    )
    return wire.Added(ItemType.EXTENDED_STREAM, context.world.add(ItemType.EXTENDED_STREAM, stream))


# Triggers.


def add_trigger(context: Context, client: Client, request: wire.AddTrigger) -> wire.Response:
    """Add a trigger.

    Error 0: no such type. Collisions: 1: an entity with itself; 2, 3: no entity a, no entity b. Paths: 1: no such
    entity; 2: the distance is not above 0.
    """
    asked = request.trigger
    if isinstance(asked, wire.UnknownTrigger):
        raise RefusedError(0, f"There is no type {asked.type} of triggers, only 0 to {max(wire.TriggerType)}.")
    if isinstance(asked, wire.BytecodeTrigger):
        raise RefusedError(UNSUPPORTED, f"The {len(asked.code)} bytes of bytecode were read, and are not run here.")
    trigger = (
        _path(context, client, asked) if isinstance(asked, wire.PathTrigger) else _collision(context, client, asked)
    )
    return wire.Added(ItemType.TRIGGER, context.world.add(ItemType.TRIGGER, trigger))


def _collision(context: Context, client: Client, asked: wire.CollisionTrigger | wire.SweepCollisionTrigger) -> Item:
    if asked.a == asked.b:
        raise RefusedError(1, f"Entity {asked.a} does not collide with itself.")
    expect(context, ItemType.ENTITY, asked.a, code=2)
    expect(context, ItemType.ENTITY, asked.b, code=3)
    scene = context.world.scene
    kind: type[Collision] = SweepCollision
    distance = -1.0
    if isinstance(asked, wire.CollisionTrigger):
        kind, distance = Collision, _finite(asked.distance)
    if distance < 0:
        distance = scene.radius(asked.a) + scene.radius(asked.b)
    return kind(
        client=client,
        depends_on=frozenset({(ItemType.ENTITY, asked.a), (ItemType.ENTITY, asked.b)}),
        a=asked.a,
        b=asked.b,
        distance=distance,
    )


def _path(context: Context, client: Client, asked: wire.PathTrigger) -> Item:
    expect(context, ItemType.ENTITY, asked.entity, code=1)
    if not asked.distance > 0:
        raise RefusedError(2, f"The distance has to be above 0, not {asked.distance:g}.")
    return Path(
        client=client,
        depends_on=frozenset({(ItemType.ENTITY, asked.entity)}),
        entity=asked.entity,
        start=_vector(asked.start),
        end=_vector(asked.end),
        distance=_finite(asked.distance),
    )


# Numbers.


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise RefusedError(INVALID, f"The numbers must be finite, not {value:g}.")
    return value


def _vector(values: Sequence[float]) -> Vector:
    x, y, z = map(_finite, values)
    return x, y, z


def _rotation(values: Sequence[float]) -> WxyzQuaternion:
    try:
        return unit(values)
    except ValueError as error:
        raise RefusedError(INVALID, str(error)) from error


HANDLERS: dict[type[wire.Request], Handler] = {
    wire.ListCameras: lambda context, client, request: wire.CamerasListed(
        tuple(context.world.items.of(ItemType.CAMERA))
    ),
    wire.AddCamera: add_camera,
    wire.SetCamera: set_camera,
    wire.ViewCamera: view_camera,
    wire.BroadcastCamera: broadcast_camera,
    wire.StreamCamera: stream_camera,
    wire.StreamEntity: stream_entity,
    wire.StreamExtended: stream_extended,
    wire.AddTrigger: add_trigger,
}
