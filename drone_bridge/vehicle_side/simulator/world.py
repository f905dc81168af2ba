# SPDX-License-Identifier: Apache-2.0
"""The world that clients share: entities that move, and what watches them. No sockets, no clock."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from drone_bridge.geometry.wxyz import Vector
from drone_bridge.protocols.simulator import AddEntity, AttributeValue, ItemType, Spied
from drone_bridge.vehicle_side.simulator.camera import Camera
from drone_bridge.vehicle_side.simulator.extended import ExtendedAttributes
from drone_bridge.vehicle_side.simulator.items import Client, Item, Items, Key, check_room
from drone_bridge.vehicle_side.simulator.scene import Scene
from drone_bridge.vehicle_side.simulator.surroundings import View

# Whose clients hear of a step, in the order of the CUAUV server.
_LOOKING: Final = (ItemType.CAMERA_STREAM, ItemType.ENTITY_STREAM, ItemType.EXTENDED_STREAM, ItemType.TRIGGER)


class World:
    """Everything that clients share."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.items = Items()
        self.extended_attributes = ExtendedAttributes()

    # Time.

    def tell_step(self, entities: Collection[int] | None = None) -> None:
        """Tell clients what there is to tell after a step. `entities`: those that have moved, None for all."""
        for kind in _LOOKING:
            for number, item in self.items.of(kind).items():
                if entities is not None and item.steps_with.isdisjoint(entities):
                    continue
                news = item.after_step(number, self)
                if news and item.client:
                    item.client.post(news)

    # Items come and go.

    def add_entity(self, request: AddEntity) -> int:
        """Add an entity; return its ID. Raises RefusedError and ValueError."""
        check_room(ItemType.ENTITY, len(self.scene.entities))
        extended = {attribute.key: attribute.data for attribute in request.attributes}
        self.extended_attributes.check_room(extended)
        number = self.scene.add_entity(request)
        self.entity_added(number, extended)
        return number

    def entity_added(self, entity: int, extended: Mapping[str, bytes]) -> None:
        """Note an entity that the scene has got. Raises RefusedError."""
        self.extended_attributes.add_entity(entity, extended)
        self._tell(True, (ItemType.ENTITY, entity))

    def add_object(self, class_name: str, data: bytes) -> int:
        """Add an object; return its ID. Raises RefusedError."""
        check_room(ItemType.OBJECT, len(self.scene.objects))
        number = self.scene.add_object(class_name, data)
        self._tell(True, (ItemType.OBJECT, number))
        return number

    def add(self, kind: ItemType, item: Item, number: int | None = None) -> int:
        """Add an item of another type; return its ID, which may be given. Raises RefusedError."""
        number = self.items.add(kind, item, number)
        self._tell(True, (kind, number))
        return number

    def has(self, kind: ItemType, number: int) -> bool:
        """Return whether there is such an item."""
        if kind is ItemType.ENTITY:
            return self.scene.has_entity(number)
        if kind is ItemType.OBJECT:
            return self.scene.has_object(number)
        return number in self.items.of(kind)

    def remove(self, key: Key) -> None:
        """Remove an item that there is, and before it what needs it. Raises RefusedError."""
        kind, number = key
        for other in self.items.that_need(key):
            if self.has(*other):  # it may have gone with another one
                self.remove(other)
        if kind is ItemType.ENTITY:
            for attached in self.scene.objects_of(number):
                self.remove((ItemType.OBJECT, attached))
            self.scene.remove_entity(number)
            self.extended_attributes.remove_entity(number)
        elif kind is ItemType.OBJECT:
            self.scene.remove_object(number)
        else:
            self.items.remove(key)
        self._tell(False, key)

    def entity_removed(self, entity: int) -> None:
        """Note that an entity has gone by itself, and with it what needs it."""
        if self.scene.has_entity(entity):
            self.remove((ItemType.ENTITY, entity))

    def leave(self, client: Client) -> None:
        """Remove what a client kept for itself."""
        keys = self.items.of_client(client)
        for key in sorted(keys, key=lambda key: key[0] is not ItemType.SPY):  # it need not hear of the rest
            if self.has(*key):
                self.remove(key)

    def _tell(self, is_added: bool, key: Key) -> None:
        kind, number = key
        for spy, item in self.items.of(ItemType.SPY).items():
            if item.client and key != (ItemType.SPY, spy):
                item.client.post(Spied(is_added, kind, number, 1 if number < 256 else 4))

    # Entities.

    def is_current(self, entity: int) -> bool:
        """Return whether the entity's state is known as of now."""
        return self.scene.is_current(entity)

    def place(self, entity: int) -> Vector:
        """Return where an entity is, m."""
        return self.scene.place(entity)

    def place_before(self, entity: int) -> Vector:
        """Return where an entity was before the last step, m."""
        return self.scene.place_before(entity)

    def attribute(self, entity: int, attribute: int) -> AttributeValue:
        """Return an attribute: q of the body frame, w in the model frame, as the wire has them."""
        return self.scene.attribute(entity, attribute)

    def extended(self, entity: int) -> Mapping[str, bytes]:
        """Return an entity's extended attributes."""
        return self.extended_attributes.of(entity)

    # Cameras.

    def camera(self, number: int) -> Camera:
        """Return a camera that there is, where it is now."""
        camera = self._camera(number)
        if camera.is_enabled:
            self.aim(camera)
        return camera

    def aim(self, camera: Camera) -> None:
        """Let a camera be where its entity is, if that is known."""
        if self.scene.is_current(camera.entity):
            camera.update(self.scene.place(camera.entity), self.scene.model_attitude(camera.entity))

    def is_enabled(self, camera: int) -> bool:
        """Return whether a camera is enabled."""
        return self._camera(camera).is_enabled

    def view(self, camera: int, target: int) -> View:
        """Return where an entity appears; to a disabled camera, from where it was disabled."""
        return self.camera(camera).view(self.scene.place(target), self.scene.radius(target))

    def _camera(self, number: int) -> Camera:
        camera = self.items.of(ItemType.CAMERA)[number]
        assert isinstance(camera, Camera)
        return camera
