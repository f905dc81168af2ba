# SPDX-License-Identifier: Apache-2.0
"""Desired items: the streams, cameras and triggers to add on every connection."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, ItemType
from drone_bridge.simulator.topics import STREAMED, Axes
from drone_bridge.simulator.topics.plans import CameraPlan, TriggerPlan
from drone_bridge.simulator.topics.services import wire_add_camera

MAX_DESIRED_ITEMS = 512


@dataclass(slots=True, eq=False)
class DesiredItem:
    """An item that the simulator is to add for us."""

    kind: ClassVar[ItemType]
    is_configured: bool = field(default=False, kw_only=True)  # by a parameter: in every world, whatever was removed
    id: int | None = field(default=None, kw_only=True)  # the simulator's; None while it has not added it
    is_requested: bool = field(default=False, kw_only=True)  # and not answered yet
    messages: int = field(default=0, kw_only=True)  # that have come of it

    def take_message_count(self) -> int:
        """Return how many messages were received since the last call."""
        count, self.messages = self.messages, 0
        return count

    @property
    def name(self) -> str:
        """Its name in diagnostics and logs."""
        raise NotImplementedError

    @property
    def entities(self) -> set[int]:
        """The entities that it depends on."""
        raise NotImplementedError

    def request(self, axes: Axes) -> sim.Request | None:
        """Return the request that adds it, None if that is not possible yet."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class EntityStream(DesiredItem):
    """The states of an entity or, with other attributes, one message per step."""

    kind = ItemType.ENTITY_STREAM
    entity: int
    period: int
    attributes: tuple[Attribute, ...] = STREAMED

    @property
    def name(self) -> str:
        return f"entity {self.entity}" if self.attributes == STREAMED else "steps"

    @property
    def entities(self) -> set[int]:
        return {self.entity}

    def request(self, axes: Axes) -> sim.Request:
        return sim.StreamEntity(self.entity, self.period, self.attributes)


@dataclass(slots=True, eq=False)
class Camera(DesiredItem):
    """A camera, which belongs to the world and outlives the connection."""

    kind = ItemType.CAMERA
    plan: CameraPlan

    @property
    def name(self) -> str:
        return f"camera {self.plan.name}"

    @property
    def entities(self) -> set[int]:
        return {self.plan.entity}

    def request(self, axes: Axes) -> sim.Request:
        return wire_add_camera(self.plan, axes)


@dataclass(slots=True, eq=False)
class CameraStream(DesiredItem):
    """Where an entity appears in a camera, which may be ours or another client's."""

    kind = ItemType.CAMERA_STREAM
    camera: Camera | int
    target: int
    period: int
    #: How often cameras had come or gone when it was asked for; None: since its camera is there, it was not.
    camera_moves: int | None = field(default=None, kw_only=True)

    @property
    def camera_id(self) -> int | None:
        """The simulator's ID of the camera, if it exists."""
        return self.camera.id if isinstance(self.camera, Camera) else self.camera

    @property
    def camera_name(self) -> str:
        """The camera's name, empty if it is not ours."""
        return self.camera.plan.name if isinstance(self.camera, Camera) else ""

    @property
    def name(self) -> str:
        return f"entity {self.target} in camera {self.camera_name or self.camera_id}"

    @property
    def entities(self) -> set[int]:
        return {self.target} | (self.camera.entities if isinstance(self.camera, Camera) else set())

    def request(self, axes: Axes) -> sim.Request | None:
        return None if self.camera_id is None else sim.StreamCamera(self.camera_id, self.period, self.target)


@dataclass(slots=True, eq=False)
class Trigger(DesiredItem):
    """A trigger."""

    kind = ItemType.TRIGGER
    plan: TriggerPlan

    @property
    def name(self) -> str:
        return f"trigger {self.plan.name}"

    @property
    def entities(self) -> set[int]:
        trigger = self.plan.trigger
        if isinstance(trigger, sim.PathTrigger):
            return {trigger.entity}
        return set() if isinstance(trigger, sim.BytecodeTrigger) else {trigger.a, trigger.b}

    def request(self, axes: Axes) -> sim.Request:
        return sim.AddTrigger(self.plan.trigger)


@dataclass(slots=True, eq=False)
class ExtendedStream(DesiredItem):
    """Extended attributes of an entity."""

    kind = ItemType.EXTENDED_STREAM
    entity: int
    period: int
    keys: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"attributes of entity {self.entity}"

    @property
    def entities(self) -> set[int]:
        return {self.entity}

    def request(self, axes: Axes) -> sim.Request:
        return sim.StreamExtended(self.entity, self.period, self.keys)


class DesiredItems:
    """All desired items in order of creation, and which of them the simulator has added."""

    def __init__(self) -> None:
        self._all: list[DesiredItem] = []
        self._added: dict[tuple[int, int], DesiredItem] = {}  # by the simulator's type and ID

    def configure(self, items: Iterable[DesiredItem]) -> None:
        """Add those given by parameters. Raises ValueError if there are too many."""
        for item in items:
            item.is_configured = True
            self.add(item)

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
                f"{len(self._all)} streams, cameras and triggers are asked for, and {count} more would exceed "
                f"the limit of {MAX_DESIRED_ITEMS}."
            )

    def camera_frames(self) -> set[str]:
        """Return the tf frames of cameras, without prefix."""
        return {item.plan.frame for item in self._all if isinstance(item, Camera)}

    def start_over(self) -> None:
        """Prepare for a new connection. Cameras keep their IDs until this proves to be another world."""
        self._added.clear()
        for item in self._all:
            item.is_requested = False
            if isinstance(item, CameraStream):
                item.camera_moves = None
            if isinstance(item, Camera) and item.id is not None:
                self._added[item.kind, item.id] = item
            else:
                item.id = None

    def forget_cameras(self) -> None:
        """Note that this world has none of our cameras."""
        for item in self._all:
            if isinstance(item, Camera):
                self.mark_missing(item)

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
        """No longer desire an item, nor the streams of a camera."""
        for other in self:
            if other is item or (isinstance(other, CameraStream) and other.camera is item):
                self.mark_missing(other)
                self._all.remove(other)

    def removed(self, kind: int, number: int, *, is_ours: bool = False) -> None:
        """Note that an item and its dependents were removed; `is_ours`: at our request."""
        item = self.find(kind, number)
        if item:
            (self.drop if is_ours or not item.is_configured else self.mark_missing)(item)
        for other in self:
            needs_it = number in other.entities if kind == ItemType.ENTITY else False
            needs_it |= isinstance(other, CameraStream) and item is not None and other.camera is item
            needs_it |= kind == ItemType.CAMERA and isinstance(other, CameraStream) and other.camera == number
            if needs_it:
                (self.mark_missing if other.is_configured else self.drop)(other)  # another world has it again
