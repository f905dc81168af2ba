# SPDX-License-Identifier: Apache-2.0
"""JsonObject: reads and writes a JSON object by the annotated fields of a message, each of which is declared once.

A message is a dataclass or a NamedTuple, and its fields say what the document has:

    altitude: float                                   a number of at most MAX_MAGNITUDE
    thrust: Annotated[float, Range(-1.0, 1.0)]        within a range
    velocity: Vector                                  an object, by the fields of that message
    landed: bool | None = None                        may be missing, or null
    landing_pad: Annotated[LandingPad | None, NULL]   has to be there, and may be null
    pattern: Annotated[str, Name()]                   read and written by a Field of the protocol's own

    problem: Annotated[str, NOT_SENT] = ""            in no document; such fields come last

What can't be read is named by its path: `imu.orientation.roll is 'x', and has to be a number from -1e+06 to 1e+06.`
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

#: No measurement of a vehicle is beyond it: m, m/s, m/s^2, rad, rad/s.
MAX_MAGNITUDE = 1e6
#: Of a field that has to be there, and may be null; and of one that no document has.
NULL, NOT_SENT = object(), object()
_MISSING = object()


class RefusedValueError(ValueError):
    """A value that a field does not take; the text goes on where its name and `is` or `has` are missing."""


def shown(value: Any) -> str:
    """Return a value for a sentence, shortened."""
    return reprlib.repr(value)


class Field(Protocol):
    """How one value is read and written. Both raise RefusedValueError."""

    name: str
    """In the document; empty: that of the message's field."""

    def read(self, value: Any, context: Any) -> Any:
        """Return what a value of a document means, in the context that the document is read in."""

    def write(self, value: Any) -> Any:
        """Return a value of a message for a document."""


class Number:
    """A number within a range; NaN is not between anything."""

    name = ""

    def __init__(self, least: float, most: float) -> None:
        self._least, self._most = least, most

    def read(self, value: Any, context: Any = None) -> float:
        if type(value) is float and self._least <= value <= self._most:
            return value  # as nearly all of them are
        if is_number(value) and self._least <= value <= self._most:
            return float(value)
        raise RefusedValueError(f" is {shown(value)}, and has to be a number from {self._least:g} to {self._most:g}.")

    def write(self, value: Any) -> Any:
        """Return the number as it is, a whole one without a point."""
        self.read(value)
        return value


class Flag:
    """True or false."""

    name = ""

    def read(self, value: Any, context: Any = None) -> bool:
        if not isinstance(value, bool):
            raise RefusedValueError(f" is {shown(value)}, and has to be true or false.")
        return value

    write = read


class JsonObject(Generic[MessageT]):
    """A message as an object of JSON. It is a Field itself, of messages that hold such a one."""

    name = ""

    def __init__(self, kind: type[MessageT]) -> None:
        """Prepare to read and write messages of this kind, by its annotations."""
        self._kind = kind
        hints = get_type_hints(kind, include_extras=True)
        self._fields = [_Entry(name, hint) for name, hint in hints.items() if NOT_SENT not in get_args(hint)]

    def read(self, value: Any, context: Any = None) -> MessageT:
        """Return the message of an object. Raises RefusedValueError, whose text begins with the path of a value."""
        if not isinstance(value, dict):
            raise RefusedValueError(f" is {shown(value)}, and has to be an object.")
        return self._kind(*[entry.read(value, context) for entry in self._fields])

    def read_document(self, document: Object, context: Any = None) -> MessageT:
        """Return the message of a whole document. Raises RemoteProtocolError."""
        try:
            return self.read(document, context)
        except RefusedValueError as error:
            raise RemoteProtocolError(str(error).removeprefix(".")) from error

    def write(self, message: MessageT) -> Object:
        """Return the object of a message. Raises RefusedValueError for what no reader would take."""
        document: Object = {}
        for entry in self._fields:
            entry.write(getattr(message, entry.attribute), document)
        return document


class _Entry:
    """One field of a message, where it may be missing or null."""

    def __init__(self, attribute: str, hint: Any) -> None:
        self.attribute = attribute
        extras: tuple[Any, ...] = ()
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            extras = tuple(more)
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        self._may_be_null = NoneType in kinds
        self._may_be_missing = self._may_be_null and NULL not in extras
        self._field = _field_of(next(kind for kind in kinds if kind is not NoneType), extras)
        self._key = self._field.name or attribute

    def read(self, document: Mapping[str, Any], context: Any) -> Any:
        value = document.get(self._key, _MISSING)
        if value is None and self._may_be_null:
            return None
        if value is _MISSING:
            if self._may_be_missing:
                return None
            raise RefusedValueError(f".{self._key} is missing.")
        try:
            return self._field.read(value, context)
        except RefusedValueError as error:
            raise RefusedValueError(f".{self._key}{error}") from error

    def write(self, value: Any, document: Object) -> None:
        if value is None and self._may_be_null:
            if not self._may_be_missing:
                document[self._key] = None
            return
        try:
            document[self._key] = self._field.write(value)
        except RefusedValueError as error:
            raise RefusedValueError(f".{self._key}{error}") from error


def _field_of(kind: Any, extras: tuple[Any, ...]) -> Field:
    """Return what reads and writes values of a kind: one of the extras, or what the kind itself says."""
    for extra in extras:
        if isinstance(extra, Range):
            return Number(*extra)
        if hasattr(extra, "read"):
            field: Field = extra
            return field
    plain: dict[Any, Callable[[], Field]] = {float: lambda: Number(-MAX_MAGNITUDE, MAX_MAGNITUDE), bool: Flag}
    return plain[kind]() if kind in plain else JsonObject(kind)
