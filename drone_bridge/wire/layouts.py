# SPDX-License-Identifier: Apache-2.0
"""Layouts: packing and reading of the fields of binary messages. messages.py composes messages of them.

Numbers are big-endian, unless a message declares another order (`Message.ORDER`). Packing raises LocalProtocolError for
a value that would not be read back unchanged. Reading raises MisfitError. `meaning` names the value in an error.
"""

import copy
import struct
from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import Annotated, Any, TypeVar

from drone_bridge.wire.events import LocalProtocolError

#: Errors of packing a number out of range, or a value that is not a number.
UNPACKABLE = (struct.error, OverflowError, TypeError, ValueError)
BIG_ENDIAN, LITTLE_ENDIAN = ">", "<"


LayoutT = TypeVar("LayoutT", bound="Layout")


class MisfitError(Exception):
    """Mismatch between the bytes and the expected layout. The text is the end of a sentence, with the position."""


class LayoutReader:
    """Sequential reader of one payload. Every method raises MisfitError if bytes are missing."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._position = 0

    def numbers(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Return the next numbers."""
        if self.remaining < layout.size:
            raise MisfitError(
                f"{layout.size} bytes should follow at byte {self._position}, but {self.remaining} are left"
            )
        values = layout.unpack_from(self._payload, self._position)
        self._position += layout.size
        return values

    def take(self, length: int, what: str) -> bytes:
        """Return the next `length` bytes; `what` names them in errors."""
        end = self._position + length
        if end > len(self._payload):
            raise MisfitError(
                f"{what} of {length} bytes should follow at byte {self._position}, but {self.remaining} are left"
            )
        taken = self._payload[self._position : end]
        self._position = end
        return taken

    @property
    def remaining(self) -> int:
        return len(self._payload) - self._position

    def expect_end(self) -> None:
        """Raise MisfitError if bytes are left."""
        if self.remaining:
            raise MisfitError(f"it should end at byte {self._position}, and {self.remaining} more follow")


def is_one_of(value: Any, allowed: Collection[Any]) -> bool:
    """Return whether a value is allowed. An array never is, since it compares element by element."""
    try:
        return value in allowed
    except ValueError:
        return False


class Layout:
    """Base class for layouts of one field."""

    def ordered(self: LayoutT, order: str) -> LayoutT:
        """Return a copy of the layout with this byte order."""
        changed = copy.copy(self)
        for name, part in vars(self).items():
            if isinstance(part, struct.Struct):
                setattr(changed, name, struct.Struct(order + part.format.lstrip(BIG_ENDIAN + LITTLE_ENDIAN)))
            elif isinstance(part, Layout):
                setattr(changed, name, part.ordered(order))
            elif isinstance(part, Mapping):
                setattr(changed, name, {key: each.ordered(order) for key, each in part.items()})
        return changed

    @abstractmethod
    def pack(self, value: Any, meaning: str) -> bytes:
        """Return the bytes of a value."""

    @abstractmethod
    def read(self, reader: LayoutReader, meaning: str) -> Any:
        """Read the next value."""


class Numbers(Layout):
    """Number, or tuple of `width` numbers, in a format of the module struct."""

    def __init__(self, form: str, width: int = 1) -> None:
        self.form = form if width == 1 else f"{width}{form}"
        self.width = width
        self.layout = struct.Struct(f">{self.form}")

    def flat(self, value: Any, meaning: str) -> tuple[Any, ...] | list[Any]:
        """Return a value's numbers. Raises LocalProtocolError."""
        if self.width > 1:
            if not (isinstance(value, tuple | list) and len(value) == self.width):
                raise LocalProtocolError(f"The {meaning} is {value!r:.200} but must be {self.width} numbers.")
            return value
        if self.form == "?" and not (isinstance(value, bool) or is_one_of(value, (0, 1))):
            raise LocalProtocolError(f"The {meaning} is {value!r:.200} but must be true or false.")
        return (value,)

    def pack(self, value: Any, meaning: str) -> bytes:
        numbers = self.flat(value, meaning)
        try:
            return self.layout.pack(*numbers)
        except UNPACKABLE as error:
            shown = ", ".join(map(repr, numbers))
            raise LocalProtocolError(f"The {meaning} is {shown:.200}, which does not fit the wire: {error}.") from error

    def read(self, reader: LayoutReader, meaning: str) -> Any:
        numbers = reader.numbers(self.layout)
        return numbers if self.width > 1 else numbers[0]


class Bytes(Layout):
    """Bytes with a length prefix, or without one up to the end of the message."""

    def __init__(self, length: str | None = None) -> None:
        """`length` is the struct format of the length prefix."""
        self._length = struct.Struct(f">{length}") if length else None

    def pack(self, value: Any, meaning: str) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise LocalProtocolError(f"The {meaning} is {value!r:.200} but must be bytes.")
        raw = bytes(value)
        if self._length is None:
            return raw
        longest = (1 << 8 * self._length.size) - 1
        if len(raw) > longest:
            raise LocalProtocolError(f"The {meaning} has {len(raw)} bytes, and {longest} are allowed.")
        return self._length.pack(len(raw)) + raw

    def read(self, reader: LayoutReader, meaning: str) -> Any:
        return self.read_bytes(reader, meaning)

    def read_bytes(self, reader: LayoutReader, meaning: str) -> bytes:
        """Read the next bytes, undecoded."""
        if self._length is None:
            return reader.take(reader.remaining, meaning)
        return reader.take(reader.numbers(self._length)[0], meaning)


class Text(Bytes):
    """UTF-8 string with a length prefix. `errors` is the error handler for invalid bytes."""

    def __init__(self, length: str, errors: str) -> None:
        super().__init__(length)
        self._errors = errors

    def pack(self, value: Any, meaning: str) -> bytes:
        try:
            raw = value.encode(errors=self._errors)
        except (AttributeError, UnicodeEncodeError) as error:
            raise LocalProtocolError(f"The {meaning} is {value!r:.200}, which UTF-8 can't carry.") from error
        if raw.decode(errors=self._errors) != value:  # escaped surrogates that form a valid character
            raise LocalProtocolError(f"The {meaning} is {value!r:.200}, which would be read as something else.")
        return super().pack(raw, meaning)

    def read(self, reader: LayoutReader, meaning: str) -> Any:
        return self.read_bytes(reader, meaning).decode(errors=self._errors)


class ListOf(Layout):
    """Tuple of items with a count prefix."""

    def __init__(self, count: str, item: Any) -> None:
        """`count` is the struct format of the prefix, and `item` the annotation of an item."""
        self._count = struct.Struct(f">{count}")
        self._item = layout_of(item)

    def pack(self, value: Any, meaning: str) -> bytes:
        most = (1 << 8 * self._count.size) - 1
        if not isinstance(value, tuple | list) or len(value) > most:
            raise LocalProtocolError(f"The {meaning} are {value!r:.200} but must be a tuple of at most {most}.")
        item = f"one of the {meaning}"
        return self._count.pack(len(value)) + b"".join([self._item.pack(each, item) for each in value])

    def read(self, reader: LayoutReader, meaning: str) -> Any:
        (count,) = reader.numbers(self._count)
        if isinstance(self._item, Numbers):  # in one go: lists of IDs are long
            numbers = self._item.layout
            raw = reader.take(count * numbers.size, meaning)
            return tuple([number for (number,) in numbers.iter_unpack(raw)])
        return tuple([self._item.read(reader, meaning) for _ in range(count)])


class Choice(Layout):
    """Tagged union: the layout depends on the value of an earlier field, `tag`."""

    def __init__(self, tag: str, layouts: Mapping[int, Layout], otherwise: Layout) -> None:
        self.tag = tag
        self._layouts = layouts
        self._otherwise = otherwise

    def by(self, tag: int) -> Layout:
        """Return the layout for a tag."""
        return self._layouts.get(tag, self._otherwise)


def check_items(items: Any, kind: type, meaning: str) -> None:
    """Raise LocalProtocolError unless `items` is a tuple or list of `kind`. `meaning` names them, in plural."""
    if not isinstance(items, tuple | list) or not all(isinstance(item, kind) for item in items):
        raise LocalProtocolError(f"The {meaning} are {items!r:.200} but must be a tuple of {kind.__name__}.")


class Nestable:
    """Base class for messages, which can be fields of other messages."""

    __slots__ = ()

    @abstractmethod
    def encode(self) -> bytes:
        """Return the bytes of all fields."""

    @classmethod
    @abstractmethod
    def read(cls, reader: LayoutReader) -> Any:
        """Read the next value."""


class _Nested(Layout):
    def __init__(self, kind: type[Nestable]) -> None:
        self._kind = kind

    def pack(self, value: Any, meaning: str) -> bytes:
        if not isinstance(value, self._kind):
            raise LocalProtocolError(f"The {meaning} is {value!r:.200} but must be {self._kind.__name__}.")
        return value.encode()

    def read(self, reader: LayoutReader, meaning: str) -> Any:
        return self._kind.read(reader)


def layout_of(annotation: Any) -> Layout:
    """Return the layout of an annotation: the one in Annotated, or that of a nested message. Raises TypeError."""
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
