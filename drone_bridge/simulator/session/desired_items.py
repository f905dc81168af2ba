# SPDX-License-Identifier: Apache-2.0
"""DesiredItems: the streams, cameras and triggers of parameters and services that a simulation is to have. Pure.

What services have added is gone with the simulation; what parameters name is there in every one.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import STREAMED, Attribute, CameraAttribute, ItemType

MAX_DESIRED_ITEMS = 512


class DesiredItem:
    """An item that the simulator is to add for us."""

    def __init__(self, kind: ItemType, label: str, entities: set[int], request: sim.Request | None = None) -> None:
        """`label` is for logs; `entities` are those that it depends on."""
        self.kind, self.label, self.entities, self._request = kind, label, entities, request
        self.is_configured = False  # by a parameter: in every simulation, whatever was removed
        self.id: int | None = None  # the simulator's; None while it has not added it
        self.is_refused = False  # by the simulator, when it was asked last

    @property
    def request(self) -> sim.Request:
        """What adds it."""
        assert self._request
        return self._request


class EntityStream(DesiredItem):
    """The states of an entity or, with other attributes, one message per step."""

    def __init__(self, entity: int, period: int, attributes: tuple[Attribute, ...] = STREAMED) -> None:
        label = f"entity {entity}" if attributes == STREAMED else "steps"
        super().__init__(ItemType.ENTITY_STREAM, label, {entity}, sim.StreamEntity(entity, period, attributes))
        self.entity, self.period, self.attributes = entity, period, attributes


class Camera(DesiredItem):
    """A camera, which belongs to the world and outlives the connection."""

    def __init__(self, name: str, camera: sim.AddCamera) -> None:
        super().__init__(ItemType.CAMERA, f"camera {name}", {camera.entity})
        self.name, self.camera = name, camera

    @property
    def request(self) -> sim.Request:
        return self.camera

    def change(self, change: sim.SetCamera) -> None:
        """Have it as it is after a request."""
        changed: dict[str, Any] = {CameraAttribute(change.attribute).name.lower(): change.value}
        self.camera = replace(self.camera, **changed)


class CameraStream(DesiredItem):
    """Where an entity appears in a camera, which may be ours or another client's."""

    def __init__(self, camera: Camera | int, target: int, period: int) -> None:
        own = camera if isinstance(camera, Camera) else None
        #: The camera's name, empty if it is not ours.
        self.camera_name = own.name if own else ""
        label = f"entity {target} in camera {self.camera_name or camera}"
        super().__init__(ItemType.CAMERA_STREAM, label, {target} | (own.entities if own else set()))
        self.camera, self.target, self.period = camera, target, period

    @property
    def camera_id(self) -> int | None:
        """The simulator's ID of the camera, if it exists."""
        return self.camera.id if isinstance(self.camera, Camera) else self.camera

    @property
    def request(self) -> sim.Request:
        """What adds it, once there is the camera."""
        assert self.camera_id is not None
        return sim.StreamCamera(self.camera_id, self.period, self.target)


class Trigger(DesiredItem):
    """A trigger."""

    def __init__(self, name: str, trigger: sim.Trigger) -> None:
        if isinstance(trigger, sim.PathTrigger):
            entities = {trigger.entity}
        else:
            entities = set() if isinstance(trigger, sim.BytecodeTrigger) else {trigger.a, trigger.b}
        super().__init__(ItemType.TRIGGER, f"trigger {name}", entities, sim.AddTrigger(trigger))
        self.name = name


class DesiredItems:
    """All desired items in order of creation, and which of them the simulator has added."""

    def __init__(self) -> None:
        self._all: list[DesiredItem] = []
        self._added: dict[tuple[int, int], DesiredItem] = {}  # by the simulator's type and ID

    def clear(self) -> None:
        """Desire nothing."""
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
                f"{len(self._all)} streams, cameras and triggers are requested, and {count} more would exceed "
                f"the limit of {MAX_DESIRED_ITEMS}."
            )

    def cameras(self) -> list[Camera]:
        """Return the cameras."""
        return [item for item in self._all if isinstance(item, Camera)]

    def reconnect(self) -> None:
        """Prepare for a new connection to the same simulation, in which cameras stay."""
        self._added.clear()
        for item in self._all:
            item.is_refused = False
            if isinstance(item, Camera) and item.id is not None:
                self._added[item.kind, item.id] = item
            else:
                item.id = None

    def mark_added(self, item: DesiredItem, number: int) -> None:
        """Note that the simulator has added an item."""
        item.id = number
        self._added[item.kind, number] = item

    def mark_missing(self, item: DesiredItem) -> None:
        """Note that the simulator no longer has an item."""
        if item.id is not None:
            self._added.pop((item.kind, item.id), None)
            item.id = None

    def find(self, kind: int, number: int) -> DesiredItem | None:
        """Return the item that the simulator has added with a type and ID."""
        return self._added.get((kind, number))

    def drop(self, item: DesiredItem) -> None:
        """No longer desire an item."""
        self.mark_missing(item)
        self._all.remove(item)

    def removed(self, kind: int, number: int, *, is_ours: bool = False) -> None:
        """Note that an item was removed, and what depends on it; `is_ours`: at our request."""
        item = self.find(kind, number)
        streams = [each for each in self._all if isinstance(each, CameraStream) and kind == ItemType.CAMERA]
        gone = [item] if item else []
        gone += [stream for stream in streams if stream.camera_id == number]
        gone += [other for other in self if kind == ItemType.ENTITY and number in other.entities]
        for other in gone:
            keeps = other.is_configured and (kind == ItemType.ENTITY or not is_ours)
            (self.mark_missing if keeps else self.drop)(other)  # what is configured may come again
