# SPDX-License-Identifier: Apache-2.0
"""Handlers of requests about the world, its entities and objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from drone_bridge.simulator import codec as wire
from drone_bridge.simulator.codec import ItemType
from drone_bridge.simulator.device.items import INVALID, NAMES, Client, Item, RefusedError
from drone_bridge.simulator.device.run import RunControl, Timing
from drone_bridge.simulator.device.world import World

NO_ENTITY = "No entity with given ID."  # as the CUAUV server says
NO_EXTENDED = "No extended entity attribute with given key."  # as well


@dataclass(slots=True)
class Context:
    """What request handlers work on."""

    world: World
    control: RunControl
    timing: Timing
    is_real: bool = False  # follow the CUAUV server where it differs from the document


Handler = Callable[[Context, Client, Any], wire.Response]


def expect(context: Context, kind: ItemType, number: int, code: int = 0) -> None:
    """Raise RefusedError with this code unless the item exists."""
    if not context.world.has(kind, number):
        raise RefusedError(code, NO_ENTITY if kind is ItemType.ENTITY else f"There is no {NAMES[kind]} {number}.")


# The world.


def get_config(context: Context, client: Client, request: wire.GetConfig) -> wire.Response:
    """Return how fast the world runs."""
    timing = context.timing
    return wire.Configured(timing.frequency, timing.speed, timing.is_non_real_time, False)


def run(context: Context, client: Client, request: wire.Run) -> wire.Response:
    """Run. Error 0 while running."""
    context.control.run(request.steps)
    return wire.Ok()


def pause(context: Context, client: Client, request: wire.Pause) -> wire.Response:
    """Pause. Error 0 while paused."""
    context.control.pause()
    return wire.Ok()


def remove(context: Context, client: Client, request: wire.Remove) -> wire.Response:
    """Remove an item and those that depend on it. Error 0: no such item; 1: no such type."""
    if request.type not in NAMES:
        raise RefusedError(1, f"There is no item type {request.type}, only 0 to {max(NAMES)}.")
    key = ItemType(request.type), request.id
    expect(context, *key)
    context.world.remove(key)
    return wire.Ok()


# Entities.


def add_entity(context: Context, client: Client, request: wire.AddEntity) -> wire.Response:
    """Add an entity, whose attitude is that of the body frame. Error 0: impossible values."""
    try:
        number = context.world.add_entity(request)
    except ValueError as error:
        raise RefusedError(0, str(error)) from error
    return wire.Added(ItemType.ENTITY, number)


def set_entity(context: Context, client: Client, request: wire.SetEntity) -> wire.Response:
    """Set an attribute. Error 0: no such entity; 1: no such attribute."""
    expect(context, ItemType.ENTITY, request.id)
    expect_attribute(request.attribute, code=1)
    try:
        context.world.scene.set_attribute(request.id, request.attribute, request.value)
    except ValueError as error:
        raise RefusedError(INVALID, str(error)) from error
    return wire.Ok()


def get_entity(context: Context, client: Client, request: wire.GetEntity) -> wire.Response:
    """Return an attribute. Errors as for setting one."""
    expect_attribute(request.attribute, code=1)
    expect(context, ItemType.ENTITY, request.id)
    return wire.EntityGot(request.attribute, context.world.scene.attribute(request.id, request.attribute))


def set_extended(context: Context, client: Client, request: wire.SetExtended) -> wire.Response:
    """Set an extended attribute. Error 0: no such entity."""
    expect(context, ItemType.ENTITY, request.id)
    context.world.extended_attributes.set(request.id, request.key, request.data)
    return wire.Ok()


def get_extended(context: Context, client: Client, request: wire.GetExtended) -> wire.Response:
    """Return an extended attribute. Error 0: no such entity or attribute."""
    expect(context, ItemType.ENTITY, request.id)
    data = context.world.extended(request.id).get(request.key)
    if data is None:
        raise RefusedError(0, NO_EXTENDED)
    return wire.ExtendedGot(request.key, data)


def expect_attribute(attribute: int, code: int) -> None:
    """Raise RefusedError with this code unless entities have such an attribute."""
    if attribute not in tuple(wire.Attribute):
        raise RefusedError(code, f"There is no attribute {attribute}, only 0 to {max(wire.Attribute)}.")


# Objects.


def add_object(context: Context, client: Client, request: wire.AddObject) -> wire.Response:
    """Add an object. Error 0: no such class, or impossible data."""
    classes = context.world.scene.object_classes
    if request.class_name not in classes:
        there = " and ".join(map(repr, classes)) or "none"
        raise RefusedError(0, f"There is no class of objects {request.class_name[:50]!r}, only {there}.")
    return wire.Added(ItemType.OBJECT, context.world.add_object(request.class_name, request.data))


def set_object(context: Context, client: Client, request: wire.SetObject) -> wire.Response:
    """Set an attribute of an object. Error 0: no such object; 1: no such attribute; 2: impossible value."""
    expect(context, ItemType.OBJECT, request.id)
    context.world.scene.set_object(request.id, request.attribute, request.data)
    return wire.Ok()


def get_object(context: Context, client: Client, request: wire.GetObject) -> wire.Response:
    """Return an attribute of an object. Errors as for setting one."""
    expect(context, ItemType.OBJECT, request.id)
    return wire.ObjectGot(request.attribute, context.world.scene.object_data(request.id, request.attribute))


HANDLERS: dict[type[wire.Request], Handler] = {
    wire.Reassure: lambda context, client, request: wire.Ok(),
    wire.GetConfig: get_config,
    wire.Run: run,
    wire.Pause: pause,
    wire.Spy: lambda context, client, request: wire.Added(
        ItemType.SPY, context.world.add(ItemType.SPY, Item(client=client))
    ),
    wire.Remove: remove,
    # The newest first, as the CUAUV server does.
    wire.ListEntities: lambda context, client, request: wire.EntitiesListed(
        tuple(reversed(context.world.scene.entities))
    ),
    wire.AddEntity: add_entity,
    wire.SetEntity: set_entity,
    wire.GetEntity: get_entity,
    wire.SetExtended: set_extended,
    wire.GetExtended: get_extended,
    wire.ListObjectClasses: lambda context, client, request: wire.ObjectClassesListed(
        tuple(context.world.scene.object_classes)
    ),
    wire.ListObjects: lambda context, client, request: wire.ObjectsListed(tuple(context.world.scene.objects)),
    wire.AddObject: add_object,
    wire.SetObject: set_object,
    wire.GetObject: get_object,
}
