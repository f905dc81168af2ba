# SPDX-License-Identifier: Apache-2.0
"""The simulator protocol's streams of entity attributes, optimized as they are most of the traffic."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Annotated, Any

from drone_bridge.simulator.codec.entities import VALUES, AttributeValue
from drone_bridge.simulator.codec.wire import ItemType, Request, Response
from drone_bridge.simulator.codec.world import Added
from drone_bridge.wire.events import LocalProtocolError
from drone_bridge.wire.layouts import ListOf, MisfitError, Numbers, Reader, UInt8, UInt32, pack

_ID_AND_COUNT = struct.Struct(">IB")
_ATTRIBUTE = Numbers("B")


@dataclass(frozen=True, slots=True)
class StreamEntity(Request):
    """ESTREAM (14): send EntityData after every `period` steps. Error 0: a bad attribute; 1: no such entity."""

    ID = 14
    NAME = "ESTREAM"
    ANSWER = Added
    ADDS = ItemType.ENTITY_STREAM
    id: UInt32
    period: UInt32  # steps; with 0 nothing is ever sent
    attributes: Annotated[tuple[int, ...], ListOf("B", UInt8)]  # at most 255


class EntityDataLayout:
    """The body of EntityData for given attributes, as one struct.

    Raises KeyError for an attribute that the document does not have, as its width is not known.
    """

    __slots__ = ("_attributes", "_expected", "_layout", "_marks", "_values")

    def __init__(self, attributes: tuple[int, ...]) -> None:
        self._attributes = attributes
        form, places, marks, position = ">IB", [], [1], 2
        for attribute in attributes:
            value = VALUES[attribute]
            form += f"B{value.form}"
            marks.append(position)
            first = position + 1
            position = first + value.width
            places.append(first if value.width == 1 else slice(first, position))
        self._layout = struct.Struct(form)
        self._values: Any = (
            itemgetter(*places) if len(places) > 1 else lambda numbers: tuple(map(numbers.__getitem__, places))
        )
        self._marks = itemgetter(*marks)  # where the number of attributes and their IDs are
        self._expected = (len(attributes), *attributes) if attributes else 0

    @property
    def size(self) -> int:
        """The size of the body, bytes."""
        return self._layout.size

    def decode(self, buffer: bytes | bytearray, start: int) -> "EntityData | None":
        """Decode a body of this size from `start`; return None if it has other attributes."""
        numbers = self._layout.unpack_from(buffer, start)
        if self._marks(numbers) != self._expected:
            return None
        return EntityData(numbers[0], self._attributes, self._values(numbers))

    def encode(self, stream: int, values: Sequence[AttributeValue]) -> bytes:
        """Return the body. Raises LocalProtocolError for values that don't fit the attributes."""
        if not isinstance(values, tuple | list) or len(values) != len(self._attributes):
            raise LocalProtocolError(f"The values for {len(self._attributes)} attributes are {values!r:.200}.")
        numbers: list[Any] = [stream, len(values)]
        for attribute, value in zip(self._attributes, values, strict=True):
            numbers.append(attribute)
            numbers.extend(VALUES[attribute].flat(value, f"value of attribute {attribute}"))
        return pack(self._layout, numbers, "EntityData")


@lru_cache(maxsize=256)
def entity_data_layout(attributes: tuple[int, ...]) -> EntityDataLayout:
    """Return the cached layout for some attributes. Raises KeyError."""
    return EntityDataLayout(attributes)


@dataclass(frozen=True, slots=True)
class EntityData(Response):
    """EDATA (129): the attributes of an entity after a step, in the order of the request."""

    ID = 129
    id: int  # of the stream
    attributes: tuple[int, ...]  # each an Attribute
    values: tuple[AttributeValue, ...]

    def encode(self) -> bytes:
        try:
            layout = entity_data_layout(tuple(self.attributes))
        except (KeyError, TypeError) as error:
            raise LocalProtocolError(
                f"The attributes of EntityData are {self.attributes!r:.200}; there are 0 to {max(VALUES)}."
            ) from error
        return layout.encode(self.id, self.values)

    @classmethod
    def read(cls, reader: Reader) -> "EntityData":
        """Decode a body with any attributes. The connection has a faster way for known streams."""
        stream, count = reader.numbers(_ID_AND_COUNT)
        attributes, values = [], []
        for _ in range(count):
            attribute = _ATTRIBUTE.read(reader, "attribute")
            if attribute not in VALUES:
                raise MisfitError(f"there is no attribute {attribute}, so its size is unknown")
            attributes.append(attribute)
            values.append(VALUES[attribute].read(reader, "value"))
        return cls(stream, tuple(attributes), tuple(values))
