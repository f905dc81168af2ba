# SPDX-License-Identifier: Apache-2.0
"""Everything that has an ID in the world: its owner, its dependencies, its removal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol

from drone_bridge.protocols.simulator import Error, ItemType, Response
from drone_bridge.vehicle_side.simulator.surroundings import Surroundings

MAX_ITEMS: Final = 1000  # of each type

# Codes of errors where the document has none, above those that it has.
INVALID: Final = 16  # a number that can't be
FULL: Final = 17
UNSUPPORTED: Final = 18

Key = tuple[ItemType, int]

NAMES: Final = {
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
    """A request can't be granted."""

    def __init__(self, code: int, message: str) -> None:
        """`code` is what the document says for the request, or one of the above."""
        super().__init__(message)
        self.code = code

    @property
    def answer(self) -> Error:
        """The error to answer with."""
        return Error(self.code, str(self))


class Client(Protocol):
    """Who keeps streams, triggers and spies. They go when it goes."""

    def post(self, response: Response) -> None:
        """Send what was not asked for at this moment."""


@dataclass(slots=True, kw_only=True)
class Item:
    """An object that clients refer to by ID."""

    client: Client | None = None  # None for what stays when its client goes
    needs: frozenset[Key] = frozenset()  # goes when one of them goes

    @property
    def steps_with(self) -> frozenset[int]:
        """The entities whose steps are steps of this item, where entities are not all told of at once."""
        return frozenset(number for kind, number in self.needs if kind is ItemType.ENTITY)

    def after_step(self, number: int, world: Surroundings) -> Response | None:
        """Look at the world after a step; return what to tell the client. `number` is the item's ID."""
        return None


def check_room(kind: ItemType, count: int) -> None:
    """Raise RefusedError unless there is room for another item of a type beside so many."""
    if count >= MAX_ITEMS:
        raise RefusedError(FULL, f"There are {count} items of the type {NAMES[kind]}, and no more are possible.")


@dataclass(slots=True, kw_only=True)
class Items:
    """All items but entities and objects, which the scene has; their IDs count per type."""

    _items: dict[ItemType, dict[int, Item]] = field(
        default_factory=lambda: {kind: {} for kind in ItemType if kind not in (ItemType.ENTITY, ItemType.OBJECT)}
    )
    _next: dict[ItemType, int] = field(default_factory=lambda: dict.fromkeys(ItemType, 0))
    _needed_by: dict[Key, set[Key]] = field(default_factory=dict)  # so that thousands can go at once

    def of(self, kind: ItemType) -> dict[int, Item]:
        """Return the items of a type, by ID."""
        return self._items[kind]

    def add(self, kind: ItemType, item: Item, number: int | None = None) -> int:
        """Add an item; return its ID, which can be given where somebody else gives them. Raises RefusedError."""
        check_room(kind, len(self._items[kind]))
        if number is None:
            number = self._next[kind]
        elif number in self._items[kind]:
            self.remove((kind, number))
        self._next[kind] = max(self._next[kind], number + 1)
        self._items[kind][number] = item
        for need in item.needs:
            self._needed_by.setdefault(need, set()).add((kind, number))
        return number

    def remove(self, key: Key) -> None:
        """Remove an item."""
        kind, number = key
        for need in self._items[kind].pop(number).needs:
            others = self._needed_by[need]
            others.remove(key)
            if not others:
                del self._needed_by[need]

    def that_need(self, key: Key) -> list[Key]:
        """Return what goes with this one, by type and ID."""
        return sorted(self._needed_by.get(key, ()))

    def of_client(self, client: Client) -> list[Key]:
        """Return what a client keeps."""
        return [
            (kind, number)
            for kind, items in self._items.items()
            for number, item in items.items()
            if item.client is client
        ]
