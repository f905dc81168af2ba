# SPDX-License-Identifier: Apache-2.0
"""What a simulator is asked to watch and to tell, on every connection: by parameters, and by services later."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from drone_bridge.protocols import simulator as sim
from drone_bridge.protocols.simulator import Attribute, ItemType
from drone_bridge.translate.simulator import STREAMED, Axes
from drone_bridge.translate.simulator_plans import CameraPlan, TriggerPlan
from drone_bridge.translate.simulator_requests import add_camera

MAX_WISHES: Final = 512


@dataclass(slots=True, eq=False)
class Wish:
    """Something that the simulator adds for us."""

    is_lasting: bool = field(default=False, kw_only=True)  # also when what it is about has been removed
    id: int | None = field(default=None, kw_only=True)  # the simulator's; None while it has not added it
    is_asked: bool = field(default=False, kw_only=True)  # and not answered yet

    messages: int = field(default=0, kw_only=True)  # that have come of it

    def count_anew(self) -> int:
        """Return how many messages have come since the last time."""
        count, self.messages = self.messages, 0
        return count

    @property
    def kind(self) -> ItemType:
        """What it is to the simulator."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """What to call it in /diagnostics and in complaints."""
        raise NotImplementedError

    @property
    def entities(self) -> set[int]:
        """The entities that it needs."""
        raise NotImplementedError

    def request(self, axes: Axes) -> sim.Request | None:
        """Return what to ask for; None when that can't be done yet."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class EntityStream(Wish):
    """The states of an entity; or, with other attributes, just a message per step."""

    entity: int
    period: int
    attributes: tuple[Attribute, ...] = STREAMED

    @property
    def kind(self) -> ItemType:
        """What it is to the simulator."""
        return ItemType.ENTITY_STREAM

    @property
    def name(self) -> str:
        """What to call it."""
        return f"entity {self.entity}" if self.attributes == STREAMED else "steps"

    @property
    def entities(self) -> set[int]:
        """The entities that it needs."""
        return {self.entity}

    def request(self, axes: Axes) -> sim.Request:
        """Return what to ask for."""
        return sim.StreamEntity(self.entity, self.period, self.attributes)


@dataclass(slots=True, eq=False)
class Camera(Wish):
    """A camera. It is part of the world, and there to stay when a connection ends."""

    plan: CameraPlan

    @property
    def kind(self) -> ItemType:
        """What it is to the simulator."""
        return ItemType.CAMERA

    @property
    def name(self) -> str:
        """What to call it."""
        return f"camera {self.plan.name}"

    @property
    def entities(self) -> set[int]:
        """The entities that it needs."""
        return {self.plan.entity}

    def request(self, axes: Axes) -> sim.Request:
        """Return what to ask for."""
        return add_camera(self.plan, axes)


@dataclass(slots=True, eq=False)
class CameraStream(Wish):
    """Where an entity appears in a camera: in one of ours, or in one that somebody else has added."""

    camera: Camera | int
    target: int
    period: int
    #: How often cameras had come or gone when it was asked for; None: since its camera is there, it was not.
    camera_moves: int | None = field(default=None, kw_only=True)

    @property
    def camera_id(self) -> int | None:
        """The simulator's ID of the camera, if it is there."""
        return self.camera.id if isinstance(self.camera, Camera) else self.camera

    @property
    def camera_name(self) -> str:
        """What the camera is called here; empty if it is not ours."""
        return self.camera.plan.name if isinstance(self.camera, Camera) else ""

    @property
    def kind(self) -> ItemType:
        """What it is to the simulator."""
        return ItemType.CAMERA_STREAM

    @property
    def name(self) -> str:
        """What to call it."""
        return f"entity {self.target} in camera {self.camera_name or self.camera_id}"

    @property
    def entities(self) -> set[int]:
        """The entities that it needs."""
        return {self.target} | (self.camera.entities if isinstance(self.camera, Camera) else set())

    def request(self, axes: Axes) -> sim.Request | None:
        """Return what to ask for, once there is the camera."""
        return None if self.camera_id is None else sim.StreamCamera(self.camera_id, self.period, self.target)


@dataclass(slots=True, eq=False)
class Watch(Wish):
    """A trigger."""

    plan: TriggerPlan

    @property
    def kind(self) -> ItemType:
        """What it is to the simulator."""
        return ItemType.TRIGGER

    @property
    def name(self) -> str:
        """What to call it."""
        return f"trigger {self.plan.name}"

    @property
    def entities(self) -> set[int]:
        """The entities that it needs."""
        trigger = self.plan.trigger
        if isinstance(trigger, sim.PathTrigger):
            return {trigger.entity}
        return set() if isinstance(trigger, sim.BytecodeTrigger) else {trigger.a, trigger.b}

    def request(self, axes: Axes) -> sim.Request:
        """Return what to ask for."""
        return sim.AddTrigger(self.plan.trigger)


@dataclass(slots=True, eq=False)
class ExtendedStream(Wish):
    """Extended attributes of an entity."""

    entity: int
    period: int
    keys: tuple[str, ...]

    @property
    def kind(self) -> ItemType:
        """What it is to the simulator."""
        return ItemType.EXTENDED_STREAM

    @property
    def name(self) -> str:
        """What to call it."""
        return f"attributes of entity {self.entity}"

    @property
    def entities(self) -> set[int]:
        """The entities that it needs."""
        return {self.entity}

    def request(self, axes: Axes) -> sim.Request:
        """Return what to ask for."""
        return sim.StreamExtended(self.entity, self.period, self.keys)


class Wishes:
    """All of them, in the order in which they were made, and which of them the simulator has fulfilled."""

    def __init__(self, lasting: Iterable[Wish]) -> None:
        """`lasting`: those that parameters ask for. Raises ValueError when they are too many."""
        self._all = list(lasting)
        self.check_room(0)
        for wish in self._all:
            wish.is_lasting = True
        self._fulfilled: dict[tuple[int, int], Wish] = {}  # by the simulator's type and ID

    def __iter__(self) -> Iterator[Wish]:
        """All of them."""
        return iter(tuple(self._all))

    def add(self, wish: Wish) -> None:
        """Wish for more. Raises ValueError when there are too many."""
        self.check_room(1)
        self._all.append(wish)

    def check_room(self, count: int) -> None:
        """Raise ValueError when so many more would be too many."""
        if len(self._all) + count > MAX_WISHES:
            raise ValueError(
                f"{len(self._all)} streams, cameras and triggers are asked for; {MAX_WISHES} can be, not {count} more."
            )

    def camera_frames(self) -> set[str]:
        """Return the tf frames of cameras, without prefix."""
        return {wish.plan.frame for wish in self._all if isinstance(wish, Camera)}

    def start_over(self) -> None:
        """Take note of a new connection. Cameras keep their IDs until it shows that this is another world."""
        self._fulfilled.clear()
        for wish in self._all:
            wish.is_asked = False
            if isinstance(wish, CameraStream):
                wish.camera_moves = None
            if isinstance(wish, Camera) and wish.id is not None:
                self._fulfilled[wish.kind, wish.id] = wish
            else:
                wish.id = None

    def forget_cameras(self) -> None:
        """Take note that this world has none of our cameras."""
        for wish in self._all:
            if isinstance(wish, Camera):
                self.unfulfil(wish)

    def fulfil(self, wish: Wish, number: int) -> None:
        """Take note that the simulator has added it."""
        wish.id = number
        self._fulfilled[wish.kind, number] = wish

    def unfulfil(self, wish: Wish) -> None:
        """Take note that the simulator has it no more."""
        if wish.id is not None:
            self._fulfilled.pop((wish.kind, wish.id), None)
            wish.id = None

    def find(self, kind: int, number: int) -> Wish | None:
        """Return what the simulator has added under a type and an ID."""
        return self._fulfilled.get((kind, number))

    def drop(self, wish: Wish) -> None:
        """Wish for it no more, nor for what is seen by it."""
        for other in self:
            if other is wish or (isinstance(other, CameraStream) and other.camera is wish):
                self.unfulfil(other)
                self._all.remove(other)

    def removed(self, kind: int, number: int, *, is_ours: bool = False) -> None:
        """Take note that something was removed, and with it what needed it; `is_ours`: because we asked for that."""
        wish = self.find(kind, number)
        if wish:
            (self.drop if is_ours or not wish.is_lasting else self.unfulfil)(wish)
        for other in self:
            needs_it = number in other.entities if kind == ItemType.ENTITY else False
            needs_it |= isinstance(other, CameraStream) and wish is not None and other.camera is wish
            needs_it |= kind == ItemType.CAMERA and isinstance(other, CameraStream) and other.camera == number
            if needs_it:
                (self.unfulfil if other.is_lasting else self.drop)(other)  # another world has it again
