# SPDX-License-Identifier: Apache-2.0
"""Messages as YAML: parsed from the command line, and printed."""

import math
import re
from typing import Any

import yaml

from drone_bridge.tools.shell.node import CommandFailedError, imported

#: Maximum number of printed elements of an array.
SHOWN_ELEMENTS = 128


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML as rcl reads it: 1e0 is a number."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+"), list("-+.0123456789")
)


def parse(text: str) -> Any:
    """Return the value of a YAML text. Raises CommandFailedError."""
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError) as error:
        raise CommandFailedError(f"'{text}' is not YAML: {' '.join(str(error).split())}.") from None


def filled(message: Any, text: str) -> Any:
    """Set the fields of a message that a YAML mapping names, and return it. Raises CommandFailedError."""
    fill(message, parse(text) or {})
    return message


def fill(message: Any, values: Any, where: str = "") -> None:
    """Set the fields of a message that a mapping names. `where` is its place in errors. Raises CommandFailedError."""
    fields = message.get_fields_and_field_types()
    if where in ("header.", "header.stamp.") and values in ("auto", "now"):  # topic pub stamps each message
        return
    if not isinstance(values, dict):
        raise CommandFailedError(
            f"{where.rstrip('.') or 'The message'} is {values!r} but must be a mapping with {', '.join(fields)}."
        )
    for name, value in values.items():
        if name not in fields:
            raise CommandFailedError(f"{where}{name} is not a field; there are {', '.join(fields)}.")
        present = getattr(message, name)
        if hasattr(present, "get_fields_and_field_types"):
            fill(present, value, f"{where}{name}.")
            continue
        try:
            setattr(message, name, _converted(value, fields[name], present, f"{where}{name}."))
        except (AssertionError, TypeError, ValueError, OverflowError):
            raise CommandFailedError(f"{where}{name} is {value!r} but must be {fields[name]}.") from None


def element_of(type_name: str) -> str:
    """Return the type of the elements of an array type, or another type unchanged."""
    return type_name.removeprefix("sequence<").partition("[")[0].rstrip(">").partition(",")[0]


def _converted(value: Any, type_name: str, present: Any, where: str) -> Any:
    element = element_of(type_name)
    if isinstance(value, list) and "/" in element:
        kind = imported("msg", element)
        elements = [kind() for _ in value]
        for number, (each, values) in enumerate(zip(elements, value, strict=True)):
            fill(each, values, f"{where.rstrip('.')}[{number}].")
        return elements
    if isinstance(present, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if element in ("float", "double") and isinstance(value, list):
        return [float(each) for each in value]
    return value


def field_of(message: Any, path: str) -> Any:
    """Return a field of a message by its names with dots, or the message for "". Raises CommandFailedError."""
    for name in filter(None, path.split(".")):
        fields = getattr(message, "get_fields_and_field_types", dict[str, str])()
        if name not in fields:
            raise CommandFailedError(f"{path}: {name} is not a field; there are {', '.join(fields) or 'none'}.")
        message = getattr(message, name)
    return message


def as_yaml(message: Any) -> str:
    """Return a message, or a field, as YAML. Long arrays are shortened to their beginning and number of elements."""
    text: str = yaml.safe_dump(_plain(message), sort_keys=False, allow_unicode=True, width=math.inf)
    return text.removesuffix("...\n")  # of a number or text alone


def _plain(value: Any) -> Any:
    if hasattr(value, "get_fields_and_field_types"):
        return {name: _plain(getattr(value, name)) for name in value.get_fields_and_field_types()}
    if isinstance(value, (bytes, str, bool, int, float)):
        return list(value) if isinstance(value, bytes) else value
    elements = [_plain(each) for each in value[:SHOWN_ELEMENTS]]
    return [getattr(each, "item", lambda each=each: each)() for each in elements] + (
        [f"... {len(value)} in all"] if len(value) > SHOWN_ELEMENTS else []
    )
