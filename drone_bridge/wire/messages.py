# SPDX-License-Identifier: Apache-2.0
"""Message: base class for binary messages, declared as dataclasses whose annotations are layouts."""

import inspect
import struct
from abc import abstractmethod
from typing import Any, ClassVar, TypeVar

from drone_bridge.wire.layouts import BIG_ENDIAN, UNPACKABLE, Choice, Layout, LayoutReader, Nestable, Numbers, layout_of

MessageT = TypeVar("MessageT", bound="Message")


class Message(Nestable):
    """Base class for messages, or parts of them, without the header."""

    __slots__ = ()
    #: Message type in the header. Each direction has its own numbering.
    ID: ClassVar[int]
    #: Byte order of the numbers. A nested message has its own.
    ORDER: ClassVar[str] = BIG_ENDIAN
    #: Size of the body if it is constant, else None.
    BODY_BYTES: ClassVar[int | None] = None
    _PARTS: ClassVar[tuple["_Part", ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._PARTS = _parts_of(cls)
        sizes = [part.size for part in cls._PARTS]
        is_flat = None not in sizes and "read" not in cls.__dict__
        cls.BODY_BYTES = sum(size for size in sizes if size) if is_flat else None

    def encode(self) -> bytes:
        """Encode the body. Raises LocalProtocolError for values that would not be decoded unchanged."""
        return b"".join([part.pack(self) for part in self._PARTS])

    @classmethod
    def read(cls: type[MessageT], reader: LayoutReader) -> MessageT:
        """Decode from a reader, which may keep further bytes. Raises MisfitError."""
        values: list[Any] = []
        for part in cls._PARTS:
            part.read(reader, values)
        return cls(*values)

    @classmethod
    def decode(cls: type[MessageT], body: bytes) -> MessageT:
        """Decode a whole body. Raises MisfitError."""
        reader = LayoutReader(body)
        message = cls.read(reader)
        reader.expect_end()
        return message


class _Part:
    """One or several adjacent fields of a message."""

    size: int | None = None

    @abstractmethod
    def pack(self, message: Message) -> bytes: ...

    @abstractmethod
    def read(self, reader: LayoutReader, values: list[Any]) -> None:
        """Read the fields, and append their values to those of earlier fields."""


class _Field(_Part):
    def __init__(self, name: str, meaning: str, layout: Layout) -> None:
        self._name, self._meaning, self._layout = name, meaning, layout

    def pack(self, message: Message) -> bytes:
        return self._layout.pack(getattr(message, self._name), self._meaning)

    def read(self, reader: LayoutReader, values: list[Any]) -> None:
        values.append(self._layout.read(reader, self._name))


class _ChosenField(_Part):
    def __init__(self, name: str, meaning: str, choice: Choice, tag_index: int) -> None:
        self._name, self._meaning, self._choice, self._tag_index = name, meaning, choice, tag_index

    def pack(self, message: Message) -> bytes:
        layout = self._choice.by(getattr(message, self._choice.tag))
        return layout.pack(getattr(message, self._name), self._meaning)

    def read(self, reader: LayoutReader, values: list[Any]) -> None:
        values.append(self._choice.by(values[self._tag_index]).read(reader, self._name))


class _NumberFields(_Part):
    """Adjacent number fields, packed and read by one struct."""

    def __init__(self, order: str) -> None:
        self._fields: list[tuple[str, str, Numbers]] = []
        self._order, self._layout = order, struct.Struct(order)

    def add(self, name: str, meaning: str, numbers: Numbers) -> None:
        self._fields.append((name, meaning, numbers))
        self._layout = struct.Struct(self._order + "".join(numbers.form for _, _, numbers in self._fields))
        self.size = self._layout.size

    def pack(self, message: Message) -> bytes:
        values = [
            number for name, meaning, field in self._fields for number in field.flat(getattr(message, name), meaning)
        ]
        try:
            return self._layout.pack(*values)
        except UNPACKABLE:  # one by one, so that the error names the field
            return b"".join([field.pack(getattr(message, name), meaning) for name, meaning, field in self._fields])

    def read(self, reader: LayoutReader, values: list[Any]) -> None:
        numbers = reader.numbers(self._layout)
        if len(numbers) == len(self._fields):
            values.extend(numbers)
            return
        position = 0
        for _, _, field in self._fields:
            end = position + field.width
            values.append(numbers[position:end] if field.width > 1 else numbers[position])
            position = end


def _parts_of(kind: type[Message]) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    names: list[str] = []
    for name, annotation in inspect.get_annotations(kind).items():
        try:
            layout = layout_of(annotation).ordered(kind.ORDER)
        except TypeError:
            continue
        meaning = f"{name} of {kind.__name__}"
        if isinstance(layout, Numbers):
            if not (parts and isinstance(parts[-1], _NumberFields)):
                parts.append(_NumberFields(kind.ORDER))
            assert isinstance(parts[-1], _NumberFields)
            parts[-1].add(name, meaning, layout)
        elif isinstance(layout, Choice):
            parts.append(_ChosenField(name, meaning, layout, names.index(layout.tag)))
        else:
            parts.append(_Field(name, meaning, layout))
        names.append(name)
    return tuple(parts)
