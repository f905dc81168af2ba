# SPDX-License-Identifier: Apache-2.0
"""Items with IDs: their owners and dependencies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from drone_bridge.simulator.codec import Error, ItemType, Response

if TYPE_CHECKING:
    from drone_bridge.simulator.device.world import World

MAX_ITEMS = 1000  # of each type

# Error codes that the document does not define.
INVALID = 16  # an impossible number
FULL = 17
UNSUPPORTED = 18

Key = tuple[ItemType, int]

NAMES = {
    ItemType.ENTITY: "entity",
    ItemType.OBJECT: "object",
    ItemType.CAMERA: "camera",
    ItemType.TRIGGER: "trigger",
    ItemType.ENTITY_STREAM: "entity stream",
    ItemType.CAMERA_STREAM: "camera stream",
    ItemType.CAMERA_BROADCAST: "camera broadcast",
    ItemType.EXTENDED_STREAM: "extended entity stream",
    ItemType.SPY: "spy",
}


class RefusedError(Exception):
    """A request is refused."""

    def __init__(self, code: int, message: str) -> None:
        """`code` is the document's for the request, or one of the above."""
        super().__init__(message)
        self.code = code

    @property
    def answer(self) -> Error:
        return Error(self.code, str(self))


class Client(Protocol):
    """The owner of streams, triggers and spies, which are removed when it disconnects."""

    def post(self, response: Response) -> None:
        """Send a message that answers no request."""


@dataclass(slots=True, kw_only=True)
class Item:
    """An object that clients refer to by ID."""

    client: Client | None = None  # None if it outlives its client
    depends_on: frozenset[Key] = frozenset()  # it is removed with any of these

    @property
    def stepped_by(self) -> frozenset[int]:
        """The entities whose steps count as steps of this item, if entities step separately."""
        return frozenset(number for kind, number in self.depends_on if kind is ItemType.ENTITY)

    def after_step(self, number: int, world: World) -> Response | None:
        """Return the message for the client after a step, if any. `number` is the item's ID."""
        return None


def check_room(kind: ItemType, count: int) -> None:
    """Raise RefusedError if there are already too many items of a type."""
    if count >= MAX_ITEMS:
        raise RefusedError(FULL, f"There are {count} items of the type {NAMES[kind]}, and no more are possible.")


@dataclass(slots=True, kw_only=True)
class Items:
    """All items except entities and objects, which are in the scene. IDs are counted per type."""

    _items: dict[ItemType, dict[int, Item]] = field(
        default_factory=lambda: {kind: {} for kind in ItemType if kind not in (ItemType.ENTITY, ItemType.OBJECT)}
    )
    _next: dict[ItemType, int] = field(default_factory=lambda: dict.fromkeys(ItemType, 0))
    _dependents: dict[Key, set[Key]] = field(default_factory=dict)

    def of(self, kind: ItemType) -> dict[int, Item]:
        """Return the items of a type, by ID."""
        return self._items[kind]

    def add(self, kind: ItemType, item: Item, number: int | None = None) -> int:
        """Add an item, with the given ID or the next one; return the ID. Raises RefusedError."""
        check_room(kind, len(self._items[kind]))
        if number is None:
            number = self._next[kind]
        elif number in self._items[kind]:
            self.remove((kind, number))
        self._next[kind] = max(self._next[kind], number + 1)
        self._items[kind][number] = item
        for dependency in item.depends_on:
            self._dependents.setdefault(dependency, set()).add((kind, number))
        return number

    def remove(self, key: Key) -> None:
        kind, number = key
        for dependency in self._items[kind].pop(number).depends_on:
            others = self._dependents[dependency]
            others.remove(key)
            if not others:
                del self._dependents[dependency]

    def dependents(self, key: Key) -> list[Key]:
        """Return the items that depend on this one, by type and ID."""
        return sorted(self._dependents.get(key, ()))

    def of_client(self, client: Client) -> list[Key]:
        return [
            (kind, number)
            for kind, items in self._items.items()
            for number, item in items.items()
            if item.client is client
        ]
