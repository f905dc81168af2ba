# SPDX-License-Identifier: Apache-2.0
"""The extended attributes of entities: bytes by name, with limits on their size."""

from __future__ import annotations

from collections.abc import Mapping

from drone_bridge.simulator.device.items import FULL, RefusedError

MAX_BYTES_PER_ENTITY = 1 << 20
MAX_BYTES = 64 << 20  # of all entities together
_OVERHEAD_BYTES = 64  # per attribute, besides its name and data


class ExtendedAttributes:
    """The extended attributes of all entities."""

    def __init__(self) -> None:
        self._attributes: dict[int, dict[str, bytes]] = {}  # by entity
        self._bytes: dict[int, int] = {}  # by entity

    def check_room(self, attributes: Mapping[str, bytes]) -> None:
        """Raise RefusedError unless there is room for another entity with these."""
        self._check(0, _size(attributes))

    def add_entity(self, entity: int, attributes: Mapping[str, bytes]) -> None:
        """Add an entity. Raises RefusedError."""
        self.check_room(attributes)
        self._attributes[entity] = dict(attributes)
        self._bytes[entity] = _size(attributes)

    def remove_entity(self, entity: int) -> None:
        del self._attributes[entity]
        del self._bytes[entity]

    def of(self, entity: int) -> Mapping[str, bytes]:
        return self._attributes[entity]

    def set(self, entity: int, key: str, data: bytes) -> None:
        """Set an attribute. Raises RefusedError."""
        before = self._attributes[entity].get(key)
        now = self._bytes[entity]
        size = now + _cost(key, data) - (0 if before is None else _cost(key, before))
        self._check(now, size)
        self._attributes[entity][key] = data
        self._bytes[entity] = size

    def _check(self, now: int, wanted: int) -> None:
        """Raise RefusedError unless an entity's attributes may grow from `now` bytes to `wanted`."""
        if wanted > MAX_BYTES_PER_ENTITY:
            raise RefusedError(
                FULL,
                f"The extended attributes of the entity would need {wanted} bytes, "
                f"and {MAX_BYTES_PER_ENTITY} are allowed.",
            )
        if sum(self._bytes.values()) + wanted - now > MAX_BYTES:
            raise RefusedError(FULL, f"All {MAX_BYTES} bytes for extended attributes are in use.")


def _size(attributes: Mapping[str, bytes]) -> int:
    return sum(_cost(key, data) for key, data in attributes.items())


def _cost(key: str, data: bytes) -> int:
    return len(key.encode(errors="surrogateescape")) + len(data) + _OVERHEAD_BYTES
