# SPDX-License-Identifier: Apache-2.0
"""How the fields of binary messages are laid out. codec.py makes messages of them.

All numbers are big-endian. Packing raises LocalProtocolError for a value that would not be read back as it is, reading
MisfitError. `meaning` is what to call the value in an error.
"""

import inspect
import struct
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

from drone_bridge.wire.events import LocalProtocolError

#: What packing raises for numbers out of range, and for what is not a number.
UNPACKABLE = (struct.error, OverflowError, TypeError, ValueError)


class MisfitError(Exception):
    """The bytes do not fit the expected layout; the text says where, as the end of a sentence."""


class Reader:
    """Reads one payload from its start. Every method raises MisfitError when bytes are missing."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._position = 0

    def numbers(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Return the next numbers."""
        if self.remaining < layout.size:
            raise MisfitError(
                f"{layout.size} bytes should follow at byte {self._position}, and {self.remaining} are left"
            )
        values = layout.unpack_from(self._payload, self._position)
        self._position += layout.size
        return values

    def take(self, length: int, what: str) -> bytes:
        """Return the next `length` bytes; `what` names them in errors."""
        end = self._position + length
        if end > len(self._payload):
            raise MisfitError(
                f"{what} of {length} bytes should follow at byte {self._position}, and {self.remaining} are left"
            )
        taken = self._payload[self._position : end]
        self._position = end
        return taken

    @property
    def remaining(self) -> int:
        return len(self._payload) - self._position

    def expect_end(self) -> None:
        """Raise MisfitError unless everything has been read."""
        if self.remaining:
            raise MisfitError(f"it should end at byte {self._position}, and {self.remaining} more follow")


def pack(layout: struct.Struct, numbers: Sequence[Any], meaning: str) -> bytes:
    """Return numbers as the wire has them. Raises LocalProtocolError when one does not fit."""
    try:
        return layout.pack(*numbers)
    except UNPACKABLE as error:
        shown = ", ".join(map(repr, numbers))
        raise LocalProtocolError(f"The {meaning} is {shown:.200}, which does not fit the wire: {error}.") from error


def is_one_of(value: Any, allowed: Collection[Any]) -> bool:
    """Return whether a value is allowed; an array, which compares element by element, never is."""
    try:
        return value in allowed
    except ValueError:
        return False


class Layout:
    """How the value of a field is laid out."""

    @abstractmethod
    def pack(self, value: Any, meaning: str) -> bytes:
        """Return the bytes of a value."""

    @abstractmethod
    def read(self, reader: Reader, meaning: str) -> Any:
        """Return the value that comes next."""


class Numbers(Layout):
    """One number, or a tuple of `width` numbers, as the module struct writes them."""

    def __init__(self, form: str, width: int = 1) -> None:
        self.form = form if width == 1 else f"{width}{form}"
        self.width = width
        self.layout = struct.Struct(f">{self.form}")

    def flat(self, value: Any, meaning: str) -> tuple[Any, ...] | list[Any]:
        """Return a value's numbers. Raises LocalProtocolError."""
        if self.width > 1:
            if not (isinstance(value, tuple | list) and len(value) == self.width):
                raise LocalProtocolError(f"The {meaning} is {value!r:.200}, and has to be {self.width} numbers.")
            return value
        if self.form == "?" and not (isinstance(value, bool) or is_one_of(value, (0, 1))):
            raise LocalProtocolError(f"The {meaning} is {value!r:.200}, and has to be true or false.")
        return (value,)

    def pack(self, value: Any, meaning: str) -> bytes:
        return pack(self.layout, self.flat(value, meaning), meaning)

    def read(self, reader: Reader, meaning: str) -> Any:
        numbers = reader.numbers(self.layout)
        return numbers if self.width > 1 else numbers[0]


class Bytes(Layout):
    """Bytes with their length in front, or without one up to the end of the message."""

    def __init__(self, length: str | None = None) -> None:
        """`length`: the format of the length."""
        self._length = struct.Struct(f">{length}") if length else None

    def pack(self, value: Any, meaning: str) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise LocalProtocolError(f"The {meaning} is {value!r:.200}, and has to be bytes.")
        raw = bytes(value)
        if self._length is None:
            return raw
        longest = (1 << 8 * self._length.size) - 1
        if len(raw) > longest:
            raise LocalProtocolError(f"The {meaning} has {len(raw)} bytes, and {longest} are allowed.")
        return self._length.pack(len(raw)) + raw

    def read(self, reader: Reader, meaning: str) -> Any:
        return self.read_bytes(reader, meaning)

    def read_bytes(self, reader: Reader, meaning: str) -> bytes:
        """Return the next bytes, whatever they mean."""
        if self._length is None:
            return reader.take(reader.remaining, meaning)
        return reader.take(reader.numbers(self._length)[0], meaning)


class Text(Bytes):
    """A UTF-8 string with its length in front; `errors` is how to decode invalid bytes."""

    def __init__(self, length: str, errors: str) -> None:
        super().__init__(length)
        self._errors = errors

    def pack(self, value: Any, meaning: str) -> bytes:
        try:
            raw = value.encode(errors=self._errors)
        except (AttributeError, UnicodeEncodeError) as error:
            raise LocalProtocolError(f"The {meaning} is {value!r:.200}, which UTF-8 can't carry.") from error
        if raw.decode(errors=self._errors) != value:  # surrogates for bytes that together are a letter
            raise LocalProtocolError(f"The {meaning} is {value!r:.200}, which would be read as something else.")
        return super().pack(raw, meaning)

    def read(self, reader: Reader, meaning: str) -> Any:
        return self.read_bytes(reader, meaning).decode(errors=self._errors)


class ListOf(Layout):
    """A tuple of items with their number in front."""

    def __init__(self, count: str, item: Any) -> None:
        """`count`: the format of the number; `item`: what a field of it would be annotated with."""
        self._count = struct.Struct(f">{count}")
        self._item = layout_of(item)
        self._form = self._item.form if isinstance(self._item, Numbers) else None

    def pack(self, value: Any, meaning: str) -> bytes:
        most = (1 << 8 * self._count.size) - 1
        if not isinstance(value, tuple | list) or len(value) > most:
            raise LocalProtocolError(f"The {meaning} are {value!r:.200}, and have to be a tuple of at most {most}.")
        item = f"one of the {meaning}"
        return self._count.pack(len(value)) + b"".join([self._item.pack(each, item) for each in value])

    def read(self, reader: Reader, meaning: str) -> Any:
        (count,) = reader.numbers(self._count)
        if self._form:  # at once: lists of IDs are long
            numbers = struct.Struct(f">{self._form}")
            raw = reader.take(count * numbers.size, meaning)
            return tuple([number for (number,) in numbers.iter_unpack(raw)])
        return tuple([self._item.read(reader, meaning) for _ in range(count)])


class Choice(Layout):
    """A value whose layout depends on the value of an earlier field, `tag`."""

    def __init__(self, tag: str, layouts: Mapping[int, Layout], otherwise: Layout) -> None:
        self.tag = tag
        self._layouts = layouts
        self._otherwise = otherwise

    def by(self, tag: int) -> Layout:
        """Return the layout for a tag."""
        return self._layouts.get(tag, self._otherwise)


def check_items(items: Any, kind: type, meaning: str) -> None:
    """Raise LocalProtocolError unless it is a tuple or list of such items; `meaning` is their plural."""
    if not isinstance(items, tuple | list) or not all(isinstance(item, kind) for item in items):
        raise LocalProtocolError(f"The {meaning} are {items!r:.200}, and have to be a tuple of {kind.__name__}.")


class Nestable:
    """What has several fields and can be a field itself: a message."""

    __slots__ = ()

    @abstractmethod
    def encode(self) -> bytes:
        """Return the bytes of all fields."""

    @classmethod
    @abstractmethod
    def read(cls, reader: Reader) -> Any:
        """Return the value that comes next."""


class _Nested(Layout):
    def __init__(self, kind: type[Nestable]) -> None:
        self._kind = kind

    def pack(self, value: Any, meaning: str) -> bytes:
        if not isinstance(value, self._kind):
            raise LocalProtocolError(f"The {meaning} is {value!r:.200}, and has to be {self._kind.__name__}.")
        return value.encode()

    def read(self, reader: Reader, meaning: str) -> Any:
        return self._kind.read(reader)


def layout_of(annotation: Any) -> Layout:
    """Return the layout of an annotation: given in Annotated, or that of a nested message."""
    if isinstance(annotation, type) and issubclass(annotation, Nestable):
        return _Nested(annotation)
    for extra in getattr(annotation, "__metadata__", ()):
        if isinstance(extra, Layout):
            return extra
    raise TypeError(f"{annotation!r} carries no layout")


UInt8 = Annotated[int, Numbers("B")]
UInt16 = Annotated[int, Numbers("H")]
UInt32 = Annotated[int, Numbers("I")]
UInt64 = Annotated[int, Numbers("Q")]
Int32 = Annotated[int, Numbers("i")]
Int64 = Annotated[int, Numbers("q")]
Float32 = Annotated[float, Numbers("f")]
Float64 = Annotated[float, Numbers("d")]
Flag = Annotated[bool, Numbers("?")]
RestOfBody = Annotated[bytes, Bytes()]


# Untrusted text, made safe to print.


LONGEST = 1000  # characters


def printable(text: str, longest: int = LONGEST) -> str:
    r"""Return text that can't move a cursor, change colours or fill a screen.

    Characters that can't be printed become escapes such as \x1b, and what is beyond `longest` characters is cut off.
    """
    shown = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "backslashreplace").decode("ascii")
        for letter in text[:longest]
    )
    return f"{shown}..." if len(text) > longest else shown


# A codec for binary protocols, whose messages are declared by their layout.


MessageT = TypeVar("MessageT", bound="Message")


class Message(Nestable):
    """A message, or a part of one, without its header."""

    __slots__ = ()
    #: The type in the header. What either side sends counts on its own.
    ID: ClassVar[int]
    #: How many bytes the body has, where that does not depend on what it says.
    BODY_BYTES: ClassVar[int | None] = None
    _PARTS: ClassVar[tuple["_Part", ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._PARTS = _parts_of(cls)
        sizes = [part.size for part in cls._PARTS]
        is_flat = None not in sizes and "read" not in cls.__dict__
        cls.BODY_BYTES = sum(size for size in sizes if size) if is_flat else None

    def encode(self) -> bytes:
        """Return the body. Raises LocalProtocolError for values that would not be decoded to themselves."""
        return b"".join([part.pack(self) for part in self._PARTS])

    @classmethod
    def read(cls: type[MessageT], reader: Reader) -> MessageT:
        """Decode from a reader, which may have more bytes left. Raises MisfitError."""
        values: list[Any] = []
        for part in cls._PARTS:
            part.read(reader, values)
        return cls(*values)

    @classmethod
    def decode(cls: type[MessageT], body: bytes) -> MessageT:
        """Decode a whole body. Raises MisfitError."""
        reader = Reader(body)
        message = cls.read(reader)
        reader.expect_end()
        return message


class _Part:
    """Adjacent fields of a message."""

    size: int | None = None

    @abstractmethod
    def pack(self, message: Message) -> bytes: ...

    @abstractmethod
    def read(self, reader: Reader, values: list[Any]) -> None:
        """Append the values of the fields to those of the fields before."""


class _Field(_Part):
    def __init__(self, name: str, meaning: str, layout: Layout) -> None:
        self._name, self._meaning, self._layout = name, meaning, layout

    def pack(self, message: Message) -> bytes:
        return self._layout.pack(getattr(message, self._name), self._meaning)

    def read(self, reader: Reader, values: list[Any]) -> None:
        values.append(self._layout.read(reader, self._name))


class _ChosenField(_Part):
    def __init__(self, name: str, meaning: str, choice: Choice, tag_index: int) -> None:
        self._name, self._meaning, self._choice, self._tag_index = name, meaning, choice, tag_index

    def pack(self, message: Message) -> bytes:
        layout = self._choice.by(getattr(message, self._choice.tag))
        return layout.pack(getattr(message, self._name), self._meaning)

    def read(self, reader: Reader, values: list[Any]) -> None:
        values.append(self._choice.by(values[self._tag_index]).read(reader, self._name))


class _NumberFields(_Part):
    """Adjacent numbers, which one struct packs and reads."""

    def __init__(self) -> None:
        self._fields: list[tuple[str, str, Numbers]] = []
        self._layout = struct.Struct(">")

    def add(self, name: str, meaning: str, numbers: Numbers) -> None:
        self._fields.append((name, meaning, numbers))
        self._layout = struct.Struct(">" + "".join(numbers.form for _, _, numbers in self._fields))
        self.size = self._layout.size

    def pack(self, message: Message) -> bytes:
        values = [
            number for name, meaning, field in self._fields for number in field.flat(getattr(message, name), meaning)
        ]
        try:
            return self._layout.pack(*values)
        except UNPACKABLE:  # one by one, of which one says what is wrong with it
            return b"".join([field.pack(getattr(message, name), meaning) for name, meaning, field in self._fields])

    def read(self, reader: Reader, values: list[Any]) -> None:
        numbers = reader.numbers(self._layout)
        if len(numbers) == len(self._fields):
            values.extend(numbers)
            return
        position = 0
        for _, _, field in self._fields:
            end = position + field.width
            values.append(numbers[position:end] if field.width > 1 else numbers[position])
            position = end


def _parts_of(kind: type) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    names: list[str] = []
    for name, annotation in inspect.get_annotations(kind).items():
        try:
            layout = layout_of(annotation)
        except TypeError:
            continue
        meaning = f"{name} of {kind.__name__}"
        if isinstance(layout, Numbers):
            if not (parts and isinstance(parts[-1], _NumberFields)):
                parts.append(_NumberFields())
            assert isinstance(parts[-1], _NumberFields)
            parts[-1].add(name, meaning, layout)
        elif isinstance(layout, Choice):
            parts.append(_ChosenField(name, meaning, layout, names.index(layout.tag)))
        else:
            parts.append(_Field(name, meaning, layout))
        names.append(name)
    return tuple(parts)
