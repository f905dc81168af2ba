# SPDX-License-Identifier: Apache-2.0
"""Parses one untrusted JSON object per datagram."""

import json
import re
import reprlib
from collections.abc import Callable
from typing import Any, Final

from drone_bridge.wire.events import RemoteProtocolError

MAX_DATAGRAM_BYTES: Final = 8192
MAX_NESTING: Final = 16  # of arrays and objects; the protocol itself needs 3

# A string, closed or not; a bracket; a Python literal. None of the three can start inside another one.
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[][{}]|\b(?:True|False|None)\b', re.DOTALL)
_JSON_OF_PYTHON: Final = {"True": "true", "False": "false", "None": "null"}


def refuse_constant(name: str) -> None:
    """Refuse NaN, Infinity and -Infinity."""
    raise RemoteProtocolError(f"The packet contains {name}, which is not JSON.")


def parse(
    datagram: bytes | bytearray | memoryview,
    python_literals: bool = False,
    parse_constant: Callable[[str], Any] = refuse_constant,
) -> dict[str, Any]:
    """Return the object in a datagram. Raises RemoteProtocolError.

    Args:
        datagram: all of it.
        python_literals: read True, False and None as JSON's true, false and null.
        parse_constant: gives the value of NaN, Infinity and -Infinity.
    """
    if len(datagram) > MAX_DATAGRAM_BYTES:
        raise RemoteProtocolError(
            f"The packet has more than {MAX_DATAGRAM_BYTES} bytes ({len(datagram)}), which none needs."
        )
    try:
        text = bytes(datagram).decode()
    except UnicodeDecodeError as error:
        raise RemoteProtocolError(f"The packet is not UTF-8: {error.reason} at byte {error.start}.") from error
    _check_nesting(text)
    if python_literals:
        text = _TOKEN.sub(lambda token: _JSON_OF_PYTHON.get(token[0], token[0]), text)
    try:
        document = json.loads(text, parse_constant=parse_constant, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise RemoteProtocolError(f"The packet is not JSON: {error.msg} at character {error.pos}.") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, among others
        raise RemoteProtocolError(f"The packet can't be read: {error}") from error
    if not isinstance(document, dict):
        raise RemoteProtocolError(f"The packet is {shown(document)}, and has to be an object.")
    return document


def shown(value: Any) -> str:
    """Return a value for a sentence, shortened."""
    return reprlib.repr(value)


def is_number(value: Any) -> bool:
    """Return whether a value is a number, which true and false are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check_nesting(text: str) -> None:
    """Refuse nesting that a recursive parser might not handle, which depends on the interpreter."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in ("[", "{"):
            depth += 1
        elif token[0] in ("]", "}"):
            depth -= 1
        if depth > MAX_NESTING:
            raise RemoteProtocolError(f"The packet is nested more than {MAX_NESTING} deep.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs. Duplicate controls are refused, as either may be meant."""
    result: dict[str, Any] = {}
    for name, value in pairs:
        if name in result:
            raise RemoteProtocolError(f"The packet names {shown(name)} twice in one object.")
        result[name] = value
    return result
