# SPDX-License-Identifier: Apache-2.0
"""The simulator protocol's streams of entity attributes: most of what is on the wire, so they are read in one go."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.protocols.simulator.entities import FORMATS, Attribute, AttributeValue, read_value
from drone_bridge.protocols.simulator.wire import (
    UINT8,
    ItemType,
    MisfitError,
    Reader,
    Request,
    Response,
    is_vector,
    pack,
)
from drone_bridge.protocols.simulator.world import Added

_STREAM: Final = struct.Struct(">IIB")
_ID_AND_COUNT: Final = struct.Struct(">IB")


@dataclass(frozen=True, slots=True)
class StreamEntity(Request):
    """ESTREAM (14): send EntityData after every `period` steps. Error 0: a bad attribute; 1: no such entity."""

    ID = 14
    NAME = "ESTREAM"
    ANSWER = Added
    ADDS = ItemType.ENTITY_STREAM
    id: int
    period: int  # steps; with 0 nothing is ever sent
    attributes: tuple[int, ...]  # at most 255

    def encode(self) -> bytes:
        """Return the body."""
        head = pack(_STREAM, "StreamEntity", self.id, self.period, len(self.attributes))
        return head + pack(struct.Struct(f">{len(self.attributes)}B"), "The attributes", *self.attributes)

    @classmethod
    def read(cls, reader: Reader) -> "StreamEntity":
        """Return what the body says."""
        entity, period, count = reader.numbers(_STREAM)
        return cls(entity, period, tuple(reader.take(count, "attributes")))


class EntityDataLayout:
    """The body of EntityData with certain attributes in a certain order: one struct for all of it.

    Raises KeyError for an attribute that the document does not have, as its width is not known.
    """

    __slots__ = ("_attributes", "_expected", "_layout", "_marks", "_places")

    def __init__(self, attributes: tuple[int, ...]) -> None:
        self._attributes = attributes
        form, places, marks, position = ">IB", [], [1], 2
        for attribute in attributes:
            value_format, width = FORMATS[attribute]
            form += f"B{value_format}"
            marks.append(position)
            first = position + 1
            places.append(first if attribute == Attribute.CORPOREAL else slice(first, first + width))
            position = first + width
        self._layout = struct.Struct(form)
        self._places: list[Any] = places
        self._marks = itemgetter(*marks)  # where the number of attributes and their IDs are
        self._expected = (len(attributes), *attributes) if attributes else 0

    @property
    def size(self) -> int:
        """The bytes of the body."""
        return self._layout.size

    def decode(self, buffer: bytes | bytearray, start: int) -> "EntityData | None":
        """Return what the body of this size from `start` on says; None when it has other attributes."""
        numbers = self._layout.unpack_from(buffer, start)
        if self._marks(numbers) != self._expected:
            return None
        return EntityData(numbers[0], self._attributes, tuple([numbers[place] for place in self._places]))

    def encode(self, stream: int, values: Sequence[AttributeValue]) -> bytes:
        """Return the body. Raises LocalProtocolError for values that don't fit the attributes."""
        if len(values) != len(self._attributes):
            raise LocalProtocolError(f"There are {len(values)} values for {len(self._attributes)} attributes.")
        numbers: list[Any] = [stream, len(values)]
        for attribute, value, place in zip(self._attributes, values, self._places, strict=True):
            numbers.append(attribute)
            if isinstance(place, int):
                numbers.append(value)
            elif is_vector(value, place.stop - place.start):
                numbers.extend(value)  # type: ignore[arg-type]
            else:
                raise LocalProtocolError(f"The value of {Attribute(attribute).name} can't be {value!r}.")
        return pack(self._layout, "EntityData", *numbers)


@lru_cache(maxsize=256)
def entity_data_layout(attributes: tuple[int, ...]) -> EntityDataLayout:
    """Return the layout for some attributes, the same one each time. Raises KeyError."""
    return EntityDataLayout(attributes)


@dataclass(frozen=True, slots=True)
class EntityData(Response):
    """EDATA (129): the attributes of an entity after a step, in the order in which the stream was asked for."""

    ID = 129
    id: int  # of the stream
    attributes: tuple[int, ...]  # each an Attribute
    values: tuple[AttributeValue, ...]

    def encode(self) -> bytes:
        """Return the body."""
        try:
            layout = entity_data_layout(self.attributes)
        except KeyError as error:
            raise LocalProtocolError(f"There is no attribute {error}; there are 0 to {max(Attribute)}.") from None
        return layout.encode(self.id, self.values)

    @classmethod
    def read(cls, reader: Reader) -> "EntityData":
        """Return what the body says, whatever attributes it has. The connection has a faster way for known streams."""
        stream, count = reader.numbers(_ID_AND_COUNT)
        attributes, values = [], []
        for _ in range(count):
            attribute = reader.number(UINT8)
            if attribute not in FORMATS:
                raise MisfitError(f"there is no attribute {attribute}, so nothing tells where it ends")
            attributes.append(attribute)
            values.append(read_value(attribute, reader))
        return cls(stream, tuple(attributes), tuple(values))
