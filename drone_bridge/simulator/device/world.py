# SPDX-License-Identifier: Apache-2.0
"""The world that clients share: the entities of a scene, and the items that observe them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from drone_bridge.simulator.codec import AddEntity, ItemType, Spied
from drone_bridge.simulator.device.camera import Camera, View
from drone_bridge.simulator.device.extended import ExtendedAttributes
from drone_bridge.simulator.device.items import Client, Item, Items, Key, check_room
from drone_bridge.simulator.device.scene import Scene

# Items notified of a step, in the CUAUV server's order.
_NOTIFIED = (ItemType.CAMERA_STREAM, ItemType.ENTITY_STREAM, ItemType.EXTENDED_STREAM, ItemType.TRIGGER)


class World:
    """Everything that clients share."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.items = Items()
        self.extended_attributes = ExtendedAttributes()

    # Time.

    def notify_step(self, entities: Collection[int] | None = None) -> None:
        """Send clients their messages after a step. `entities`: those that have moved, None for all."""
        for kind in _NOTIFIED:
            for number, item in self.items.of(kind).items():
                if entities is not None and item.stepped_by.isdisjoint(entities):
                    continue
                message = item.after_step(number, self)
                if message and item.client:
                    item.client.post(message)

    # Adding and removing.

    def add_entity(self, request: AddEntity) -> int:
        """Add an entity; return its ID. Raises RefusedError and ValueError."""
        check_room(ItemType.ENTITY, len(self.scene.entities))
        extended = {attribute.key: attribute.data for attribute in request.attributes}
        self.extended_attributes.check_room(extended)
        number = self.scene.add_entity(request)
        self.entity_added(number, extended)
        return number

    def entity_added(self, entity: int, extended: Mapping[str, bytes]) -> None:
        """Register an entity that was added to the scene. Raises RefusedError."""
        self.extended_attributes.add_entity(entity, extended)
        self._notify_spies(True, (ItemType.ENTITY, entity))

    def add_object(self, class_name: str, data: bytes) -> int:
        """Add an object; return its ID. Raises RefusedError."""
        check_room(ItemType.OBJECT, len(self.scene.objects))
        number = self.scene.add_object(class_name, data)
        self._notify_spies(True, (ItemType.OBJECT, number))
        return number

    def add(self, kind: ItemType, item: Item, number: int | None = None) -> int:
        """Add an item of another type, with the given ID or the next one; return the ID. Raises RefusedError."""
        number = self.items.add(kind, item, number)
        self._notify_spies(True, (kind, number))
        return number

    def has(self, kind: ItemType, number: int) -> bool:
        if kind is ItemType.ENTITY:
            return self.scene.has_entity(number)
        if kind is ItemType.OBJECT:
            return self.scene.has_object(number)
        return number in self.items.of(kind)

    def remove(self, key: Key) -> None:
        """Remove an existing item, after those that depend on it. Raises RefusedError."""
        kind, number = key
        for other in self.items.dependents(key):
            if self.has(*other):  # it may have been removed with another one
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
        self._notify_spies(False, key)

    def entity_removed(self, entity: int) -> None:
        """Remove an entity that the scene may have lost already, and the items that depend on it."""
        if self.scene.has_entity(entity):
            self.remove((ItemType.ENTITY, entity))

    def leave(self, client: Client) -> None:
        """Remove the items of a client."""
        keys = self.items.of_client(client)
        for key in sorted(keys, key=lambda key: key[0] is not ItemType.SPY):  # first, so that it is not sent the rest
            if self.has(*key):
                self.remove(key)

    def _notify_spies(self, is_added: bool, key: Key) -> None:
        kind, number = key
        for spy, item in self.items.of(ItemType.SPY).items():
            if item.client and key != (ItemType.SPY, spy):
                item.client.post(Spied(is_added, kind, number, 1 if number < 256 else 4))

    # Entities.

    def extended(self, entity: int) -> Mapping[str, bytes]:
        return self.extended_attributes.of(entity)

    # Cameras.

    def camera(self, number: int) -> Camera:
        """Return an existing camera at its current pose."""
        camera = self._camera(number)
        if camera.is_enabled:
            self.aim(camera)
        return camera

    def aim(self, camera: Camera) -> None:
        """Move a camera to its entity, if the entity's state is known."""
        if self.scene.is_current(camera.entity):
            camera.update(self.scene.position(camera.entity), self.scene.model_attitude(camera.entity))

    def is_enabled(self, camera: int) -> bool:
        return self._camera(camera).is_enabled

    def view(self, camera: int, target: int) -> View:
        """Return where an entity appears; a disabled camera stays where it was disabled."""
        return self.camera(camera).view(self.scene.position(target), self.scene.radius(target))

    def _camera(self, number: int) -> Camera:
        camera = self.items.of(ItemType.CAMERA)[number]
        assert isinstance(camera, Camera)
        return camera
