# SPDX-License-Identifier: Apache-2.0
"""JsonObject: reads and writes JSON objects according to the annotated fields of a message.

A message is a dataclass or a NamedTuple. Its fields declare the document:

    altitude: float                                   a number, MAX_MAGNITUDE at most
    thrust: Annotated[float, Range(-1.0, 1.0)]        a number within a range
    velocity: Vector                                  an object with the fields of that message
    landed: bool | None = None                        optional: may be missing or null
    landing_pad: Annotated[LandingPad | None, NULL]   optional: None is written as null
    pattern: Annotated[str, Name()]                   read and written by a Field of the protocol

    problem: Annotated[str, NOT_SENT] = ""            neither read nor written here; such fields come last

Errors name the path of the value: `imu.orientation.roll is 'x' but must be a number from -1e+06 to 1e+06.`
"""

import reprlib
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

from drone_bridge.wire.events import RemoteProtocolError
from drone_bridge.wire.json_numbers import is_number
from drone_bridge.wire.outgoing import Range

Object = dict[str, Any]
MessageT = TypeVar("MessageT")

#: Largest plausible measurement of a vehicle: m, m/s, m/s^2, rad, rad/s.
MAX_MAGNITUDE = 1e6
#: Markers of a field: None is written as null; the field is neither read nor written.
NULL, NOT_SENT = object(), object()


class RefusedValueError(ValueError):
    """Invalid value of a field. The text is a sentence without its subject, the path of the field."""


def shown(value: Any) -> str:
    """Return a shortened representation of a value for an error sentence."""
    return reprlib.repr(value)


class Field(Protocol):
    """Reader and writer of one value. Both methods raise RefusedValueError."""

    def read(self, value: Any) -> Any:
        """Convert a value of a document."""

    def write(self, value: Any) -> Any:
        """Convert a value of a message for a document."""


class Number:
    """Number within a range. NaN is outside of any range."""

    def __init__(self, least: float, most: float) -> None:
        self._least, self._most = least, most

    def read(self, value: Any) -> float:
        if type(value) is float and self._least <= value <= self._most:
            return value  # fast path
        if is_number(value) and self._least <= value <= self._most:
            return float(value)
        raise RefusedValueError(f" is {shown(value)} but must be a number from {self._least:g} to {self._most:g}.")

    def write(self, value: Any) -> Any:
        """Return the number. An int is written without a decimal point."""
        number = self.read(value)
        return value if type(value) is int else number


class Flag:
    """Boolean."""

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise RefusedValueError(f" is {shown(value)} but must be true or false.")
        return value

    write = read


class JsonObject(Generic[MessageT]):
    """Message as a JSON object. It is a Field itself, so messages can be nested."""

    def __init__(self, kind: type[MessageT]) -> None:
        """Build the reader and writer of a message class from its annotations."""
        self._kind = kind
        hints = get_type_hints(kind, include_extras=True)
        self._fields = [_FieldEntry(name, hint) for name, hint in hints.items() if NOT_SENT not in get_args(hint)]

    def read(self, value: Any) -> MessageT:
        """Return the message of a JSON object. Raises RefusedValueError, whose text begins with a path."""
        if not isinstance(value, dict):
            raise RefusedValueError(f" is {shown(value)} but must be an object.")
        return self._kind(*[entry.read(value) for entry in self._fields])

    def read_document(self, document: Object) -> MessageT:
        """Return the message of a whole document. Raises RemoteProtocolError."""
        try:
            return self.read(document)
        except RefusedValueError as error:
            raise RemoteProtocolError(str(error).removeprefix(".")) from error

    def write(self, message: MessageT) -> Object:
        """Return the JSON object of a message. Raises RefusedValueError for values that `read` would refuse."""
        document: Object = {}
        for entry in self._fields:
            entry.write(getattr(message, entry.name), document)
        return document


class _FieldEntry:
    """Field of a message, with its name, and whether it may be missing or null."""

    def __init__(self, name: str, hint: Any) -> None:
        self.name = name
        extras: tuple[Any, ...] = ()
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            extras = tuple(more)
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        self._is_optional = NoneType in kinds
        self._is_null_written = NULL in extras
        self._field = _field_of(next(kind for kind in kinds if kind is not NoneType), extras)

    def read(self, document: Mapping[str, Any]) -> Any:
        value = document.get(self.name)
        if value is None:
            if self._is_optional:
                return None
            if self.name not in document:
                raise RefusedValueError(f".{self.name} is missing.")
        try:
            return self._field.read(value)
        except RefusedValueError as error:
            raise RefusedValueError(f".{self.name}{error}") from error

    def write(self, value: Any, document: Object) -> None:
        if value is None and self._is_optional:
            if self._is_null_written:
                document[self.name] = None
            return
        try:
            document[self.name] = self._field.write(value)
        except RefusedValueError as error:
            raise RefusedValueError(f".{self.name}{error}") from error


def _field_of(kind: Any, extras: tuple[Any, ...]) -> Field:
    """Return the Field of a type: from its annotation, or the default one of the type."""
    for extra in extras:
        if isinstance(extra, Range):
            return Number(*extra)
        if hasattr(extra, "read"):
            field: Field = extra
            return field
    plain: dict[Any, Callable[[], Field]] = {float: lambda: Number(-MAX_MAGNITUDE, MAX_MAGNITUDE), bool: Flag}
    return plain[kind]() if kind in plain else JsonObject(kind)
