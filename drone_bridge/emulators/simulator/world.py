# SPDX-License-Identifier: Apache-2.0
"""The emulated world: entities that move, and what watches them. No sockets, no clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, cast

from drone_bridge.emulators.simulator.bodies import Body, Motion
from drone_bridge.emulators.simulator.camera import Camera
from drone_bridge.emulators.simulator.extended import ExtendedAttributes
from drone_bridge.emulators.simulator.forces import Engine, Force
from drone_bridge.emulators.simulator.items import Client, Item, Items, Key, check_room
from drone_bridge.emulators.simulator.physics import Physics
from drone_bridge.emulators.simulator.surroundings import View
from drone_bridge.geometry.wxyz import IDENTITY, Vector
from drone_bridge.protocols.simulator import Attribute, AttributeValue, ItemType, Spied

ENGINE_OBJECTS: Final = 1 << 31  # forces and engines both count from 0: as objects, engines come from here on

# Whose clients hear of a step, in the order of the CUAUV server.
_LOOKING: Final = (ItemType.CAMERA_STREAM, ItemType.ENTITY_STREAM, ItemType.EXTENDED_STREAM, ItemType.TRIGGER)


class World:
    """Everything that clients share."""

    def __init__(self, step_s: float, report: Callable[[str], None]) -> None:
        """`step_s`: how much time passes in a step. `report` gets sentences about what went wrong."""
        self.physics = Physics(step_s)
        self.items = Items()
        self.extended_attributes = ExtendedAttributes()
        self.steps = 0
        self._report = report
        self._next_entity = 0
        self._stopped: set[int] = set()  # entities that were reported once as having been stopped
        self._rows: list[list[float]] | None = None  # the physics' state, a row for each body
        self._rows_before: list[list[float]] | None = None

    @property
    def time(self) -> float:
        """Simulated, s."""
        return self.steps * self.physics.duration

    # Time.

    def step(self) -> None:
        """Let one step pass, and tell clients what there is to tell."""
        lost = self.physics.step()
        self.steps += 1
        self._rows = self._rows_before = None
        for number in lost:
            if number not in self._stopped:
                self._report(f"entity {number} moved beyond what numbers can say: whenever it does, it is stopped")
            self._stopped.add(number)
        for kind in _LOOKING:
            for number, item in self.items.of(kind).items():
                news = item.after_step(number, self)
                if news and item.client:
                    item.client.post(news)

    # Items come and go.

    def add_entity(self, body: Body, motion: Motion, is_corporeal: bool, extended: Mapping[str, bytes]) -> int:
        """Add an entity; return its ID. Raises RefusedError and ValueError."""
        check_room(ItemType.ENTITY, len(self.physics.bodies.ids))
        number = self._next_entity
        self.extended_attributes.add_entity(number, extended)
        try:
            self.physics.bodies.add(number, body, motion, is_corporeal)
        except ValueError:
            self.extended_attributes.remove_entity(number)
            raise
        self._next_entity += 1
        self._rows = self._rows_before = None
        self._tell(True, (ItemType.ENTITY, number))
        return number

    def add_force(self, force: Force) -> int:
        """Add a force; return its ID as an object. Raises RefusedError."""
        check_room(ItemType.OBJECT, len(self.physics.forces))
        number = self.physics.add_force(force)
        self._tell(True, (ItemType.OBJECT, number))
        return number

    def attach(self, entity: int, engine: Engine) -> int:
        """Attach an engine to an entity; return its ID as an object. Raises RefusedError."""
        check_room(ItemType.OBJECT, len(self.physics.engines))
        number = ENGINE_OBJECTS + self.physics.attach(entity, engine)
        self._tell(True, (ItemType.OBJECT, number))
        return number

    def add(self, kind: ItemType, item: Item) -> int:
        """Add an item of another type; return its ID. Raises RefusedError."""
        number = self.items.add(kind, item)
        self._tell(True, (kind, number))
        return number

    def has(self, kind: ItemType, number: int) -> bool:
        """Return whether there is such an item."""
        if kind is ItemType.ENTITY:
            return number in self.physics.bodies.columns
        if kind is ItemType.OBJECT:
            return number in self.physics.forces or number - ENGINE_OBJECTS in self.physics.engines
        return number in self.items.of(kind)

    def remove(self, key: Key) -> None:
        """Remove an item that there is, and before it what needs it."""
        kind, number = key
        for other in self.items.that_need(key):
            if self.has(*other):  # it may have gone with another one
                self.remove(other)
        if kind is ItemType.ENTITY:
            self._remove_entity(number)
        elif kind is not ItemType.OBJECT:
            self.items.remove(key)
        elif number >= ENGINE_OBJECTS:
            del self.physics.engines[number - ENGINE_OBJECTS]
        else:
            del self.physics.forces[number]
        self._tell(False, key)

    def leave(self, client: Client) -> None:
        """Remove what a client kept for itself."""
        keys = self.items.of_client(client)
        for key in sorted(keys, key=lambda key: key[0] is not ItemType.SPY):  # it need not hear of the rest
            if self.has(*key):
                self.remove(key)

    def _remove_entity(self, number: int) -> None:
        for engine, (body, _) in tuple(self.physics.engines.items()):
            if body == number:
                self.remove((ItemType.OBJECT, ENGINE_OBJECTS + engine))
        self.physics.remove_body(number)
        self._stopped.discard(number)
        self.extended_attributes.remove_entity(number)
        self._rows = self._rows_before = None

    def _tell(self, is_added: bool, key: Key) -> None:
        kind, number = key
        for spy, item in self.items.of(ItemType.SPY).items():
            if item.client and key != (ItemType.SPY, spy):
                item.client.post(Spied(is_added, kind, number, 1 if number < 256 else 4))

    # Entities.

    def place(self, entity: int) -> Vector:
        """Return where an entity is, m."""
        x, y, z = self._row(entity)[:3]
        return x, y, z

    def place_before(self, entity: int) -> Vector:
        """Return where an entity was before the last step, m."""
        if self._rows_before is None:
            self._rows_before = self.physics.bodies.before[:3].T.tolist()
        x, y, z = self._rows_before[self.physics.bodies.columns[entity]]
        return x, y, z

    def attribute(self, entity: int, attribute: int) -> AttributeValue:
        """Return an attribute: q of the body frame, w in the model frame, as the wire has them."""
        row = self._row(entity)
        if attribute == Attribute.POSITION:
            return tuple(row[0:3])
        if attribute == Attribute.VELOCITY:
            return tuple(row[3:6])
        if attribute == Attribute.ACCELERATION:
            return tuple(row[6:9])
        if attribute == Attribute.ORIENTATION:
            return tuple(row[9:13])
        bodies = self.physics.bodies
        if attribute == Attribute.ANGULAR_VELOCITY:
            btom = bodies.bodies[entity].btom
            return tuple(row[13:16]) if btom == IDENTITY else bodies.model_rates(entity)
        return bool(bodies.is_corporeal[bodies.columns[entity]])

    def _row(self, entity: int) -> list[float]:
        if self._rows is None:
            self._rows = self.physics.bodies.state.T.tolist()
        return self._rows[self.physics.bodies.columns[entity]]

    def set_attribute(self, entity: int, attribute: int, value: AttributeValue) -> None:
        """Set an attribute: q of the model frame, unlike the above. Raises ValueError for what can't be."""
        bodies = self.physics.bodies
        if attribute == Attribute.CORPOREAL:
            bodies.is_corporeal[bodies.columns[entity]] = bool(value)
            return
        numbers = cast(tuple[float, ...], value)
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"The numbers have to be finite, not {numbers}.")
        if attribute == Attribute.ORIENTATION:
            w, x, y, z = numbers
            bodies.set_model_attitude(entity, (w, x, y, z))
        else:
            setters = {
                Attribute.POSITION: bodies.set_position,
                Attribute.VELOCITY: bodies.set_velocity,
                Attribute.ACCELERATION: bodies.push,
                Attribute.ANGULAR_VELOCITY: bodies.set_model_rates,
            }
            x, y, z = numbers
            setters[Attribute(attribute)](entity, (x, y, z))
        self._rows = self._rows_before = None

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
        """Let a camera be where its entity is."""
        camera.update(self.place(camera.entity), self.physics.bodies.model_attitude(camera.entity))

    def is_enabled(self, camera: int) -> bool:
        """Return whether a camera is enabled."""
        return self._camera(camera).is_enabled

    def view(self, camera: int, target: int) -> View:
        """Return where an entity appears; to a disabled camera, from where it was disabled."""
        return self.camera(camera).view(self.place(target), self.physics.bodies.bodies[target].radius)

    def _camera(self, number: int) -> Camera:
        camera = self.items.of(ItemType.CAMERA)[number]
        assert isinstance(camera, Camera)
        return camera
