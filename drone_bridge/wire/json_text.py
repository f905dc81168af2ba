# SPDX-License-Identifier: Apache-2.0
"""JSON and base64, by orjson and pybase64 if they are installed, else by the standard library.

Both variants accept and refuse the same input, except for a lone surrogate, which the standard library accepts. The
standard library is several times slower.
"""

import json
import math
from typing import Any

try:
    import orjson

    # Older versions don't limit the nesting depth.
    HAS_ORJSON = tuple(map(int, orjson.__version__.split(".")[:3])) >= (3, 9, 15)
except ImportError:
    HAS_ORJSON = False
try:
    import pybase64 as base64
except ImportError:
    import base64  # type: ignore[no-redef]

#: Undecoded document: a datagram in UTF-8, or the text of a topic.
Document = bytes | bytearray | memoryview | str


def from_json(text: Document) -> Any:
    """Return the value of a JSON text.

    Raises json.JSONDecodeError, also for NaN, Infinity, numbers too large for a float, and excessive nesting.
    """
    if HAS_ORJSON:
        return orjson.loads(text)
    try:
        return _DECODER.decode(text if isinstance(text, str) else bytes(text).decode("utf-8"))
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise json.JSONDecodeError(str(error), "", 0) from error


def to_json(value: Any) -> bytes:
    """Return the JSON text of a value. Raises TypeError and ValueError."""
    if HAS_ORJSON:
        return orjson.dumps(value)
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def from_base64(text: str) -> bytes:
    """Decode base64. Whitespace is skipped, since many encoders insert line breaks.

    Raises ValueError for any other invalid character, and for missing or excess padding.
    """
    letters = text.encode("ascii")
    try:
        return _decoded(letters)
    except ValueError:
        return _decoded(letters.translate(None, b" \t\r\n\v\f"))


def to_base64(data: bytes) -> str:
    """Encode bytes as base64."""
    return base64.b64encode(data).decode("ascii")


def _decoded(letters: bytes) -> bytes:
    if len(letters) % 4 or letters.endswith(b"==="):  # the standard library accepts any number of = at the end
        raise ValueError("padding is missing, or there is too much")
    return base64.b64decode(letters, validate=True)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("number out of range")
    return value


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_int=_finite, parse_constant=_refuse)
