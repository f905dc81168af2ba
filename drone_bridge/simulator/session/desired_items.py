# SPDX-License-Identifier: Apache-2.0
"""DesiredItems: streams, cameras and triggers that a simulation should have, from parameters and services. Pure.

Items from services end with the simulation. Those from parameters are added to each simulation.
"""

from collections.abc import Iterator
from typing import Any

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import STREAMED, Attribute, ItemType

MAX_DESIRED_ITEMS = 512


class DesiredItem:
    """Item that the simulator should add for this bridge."""

    def __init__(self, kind: ItemType, label: str, entities: set[int], request: Any = None) -> None:
        """`label` is for logs. `entities` are those that it depends on."""
        self.kind, self.label, self.entities, self._request = kind, label, entities, request
        self.is_configured = False  # by a parameter: added to each simulation, even after a removal
        self.id: int | None = None  # the simulator's ID; None: not added

    @property
    def request(self) -> Any:
        """Request that adds it."""
        return self._request


class DesiredEntityStream(DesiredItem):
    """Stream of an entity's states or, with other attributes, of one message per step."""

    def __init__(self, entity: int, period: int, attributes: tuple[Attribute, ...] = STREAMED) -> None:
        label = f"entity {entity}" if attributes == STREAMED else "steps"
        super().__init__(ItemType.ENTITY_STREAM, label, {entity}, sim.StreamEntity(entity, period, attributes))
        self.entity, self.period, self.attributes = entity, period, attributes


class DesiredCamera(DesiredItem):
    """Camera. It belongs to the world, and outlives the connection."""

    def __init__(self, name: str, camera: sim.AddCamera) -> None:
        super().__init__(ItemType.CAMERA, f"camera {name}", {camera.entity}, camera)
        self.name = name

    def change(self, change: sim.SetCamera) -> None:
        """Apply an answered change."""
        self._request = self._request.changed(change)


class DesiredCameraStream(DesiredItem):
    """Stream of an entity's position in the image of a camera of this bridge or of another client."""

    def __init__(self, camera: DesiredCamera | int, target: int, period: int) -> None:
        own = camera if isinstance(camera, DesiredCamera) else None
        #: Name of this bridge's camera. Empty: another client's.
        self.camera_name = own.name if own else ""
        label = f"entity {target} in camera {self.camera_name or camera}"
        super().__init__(ItemType.CAMERA_STREAM, label, {target} | (own.entities if own else set()))
        self.camera, self.target, self.period = camera, target, period

    @property
    def camera_id(self) -> int | None:
        """The simulator's ID of the camera, if it exists."""
        return self.camera.id if isinstance(self.camera, DesiredCamera) else self.camera

    @property
    def request(self) -> sim.Request:
        """Request that adds it, once the camera exists."""
        assert self.camera_id is not None
        return sim.StreamCamera(self.camera_id, self.period, self.target)


class DesiredTrigger(DesiredItem):
    """A trigger."""

    def __init__(self, name: str, trigger: sim.Trigger) -> None:
        if isinstance(trigger, sim.PathTrigger):
            entities = {trigger.entity}
        else:
            entities = set() if isinstance(trigger, sim.BytecodeTrigger) else {trigger.a, trigger.b}
        super().__init__(ItemType.TRIGGER, f"trigger {name}", entities, sim.AddTrigger(trigger))
        self.name = name


class DesiredItems:
    """All desired items in order of creation, and those that the simulator has added."""

    def __init__(self) -> None:
        self._all: list[DesiredItem] = []
        self._added: dict[tuple[int, int], DesiredItem] = {}  # by the simulator's type and ID

    def clear(self) -> None:
        """Remove all desired items."""
        self._all.clear()
        self._added.clear()

    def __iter__(self) -> Iterator[DesiredItem]:
        return iter(tuple(self._all))

    def add(self, item: DesiredItem) -> None:
        """Add a desired item. Raises ValueError if there are too many."""
        self.check_room(1)
        self._all.append(item)

    def check_room(self, count: int) -> None:
        """Raise ValueError if `count` more would be too many."""
        if len(self._all) + count > MAX_DESIRED_ITEMS:
            raise ValueError(
                f"{len(self._all)} streams, cameras and triggers exist, and {count} more would exceed "
                f"the limit of {MAX_DESIRED_ITEMS}."
            )

    def cameras(self) -> list[DesiredCamera]:
        """Return the cameras."""
        return [item for item in self._all if isinstance(item, DesiredCamera)]

    def reconnect(self) -> None:
        """Prepare for a new connection to the same simulation. Cameras persist there."""
        self._added.clear()
        for item in self._all:
            if isinstance(item, DesiredCamera) and item.id is not None:
                self._added[item.kind, item.id] = item
            else:
                item.id = None

    def mark_added(self, item: DesiredItem, number: int) -> None:
        """Record that the simulator has added an item."""
        item.id = number
        self._added[item.kind, number] = item

    def mark_missing(self, item: DesiredItem) -> None:
        """Record that the simulator no longer has an item."""
        if item.id is not None:
            self._added.pop((item.kind, item.id), None)
            item.id = None

    def find(self, kind: int, number: int) -> DesiredItem | None:
        """Return the added item with the simulator's type and ID."""
        return self._added.get((kind, number))

    def drop(self, item: DesiredItem) -> None:
        """Remove a desired item."""
        self.mark_missing(item)
        self._all.remove(item)

    def removed(self, kind: int, number: int, *, is_ours: bool = False) -> None:
        """Mark an item and its dependents as removed. `is_ours`: at our request."""
        item = self.find(kind, number)
        streams = [each for each in self._all if isinstance(each, DesiredCameraStream) and kind == ItemType.CAMERA]
        gone = [item] if item else []
        gone += [stream for stream in streams if stream.camera_id == number]
        gone += [other for other in self if kind == ItemType.ENTITY and number in other.entities]
        for other in gone:
            keeps = other.is_configured and (kind == ItemType.ENTITY or not is_ours)
            (self.mark_missing if keeps else self.drop)(other)  # a configured item may be added again
