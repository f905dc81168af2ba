# SPDX-License-Identifier: Apache-2.0
"""JSON and base64, by orjson and pybase64 where they are installed, and by Python's own modules where they are not.

Both accept and refuse the same; docs/telemetry.md says what the slower one costs.
"""

import base64
import json
import math
from typing import Any

try:
    import orjson

    # Older ones take documents that are nested without end.
    HAS_ORJSON = tuple(map(int, orjson.__version__.split(".")[:3])) >= (3, 9, 15)
except ImportError:
    HAS_ORJSON = False
try:
    import pybase64

    HAS_PYBASE64 = True
except ImportError:
    HAS_PYBASE64 = False

#: Text that is to be read, in UTF-8 where it is bytes.
Text = bytes | bytearray | memoryview | str


def from_json(text: Text) -> Any:
    """Return the value of a JSON text.

    Raises json.JSONDecodeError; NaN, Infinity, numbers too large for a float, lone surrogates and what is nested too
    deep are refused as well.
    """
    return orjson.loads(text) if HAS_ORJSON else _from_json(text)


def to_json(value: Any) -> bytes:
    """Return the JSON text of a value, in which there may be numbers of NumPy. Raises TypeError and ValueError."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY) if HAS_ORJSON else _to_json(value)


def from_base64(text: str) -> bytes:
    """Return the bytes that base64 stands for. Raises ValueError for any letter that does not belong there."""
    return pybase64.b64decode(text, validate=True) if HAS_PYBASE64 else _from_base64(text)


def to_base64(data: bytes) -> str:
    """Return bytes as base64."""
    return pybase64.b64encode_as_string(data) if HAS_PYBASE64 else base64.b64encode(data).decode("ascii")


def _from_base64(text: str) -> bytes:
    if len(text) % 4 or text.endswith("==="):  # Python's own module takes any number of them at the end
        raise ValueError("padding is missing, or there is too much")
    return base64.b64decode(text, validate=True)


def _from_json(text: Text) -> Any:
    try:
        characters = text if isinstance(text, str) else bytes(text).decode("utf-8")
        value = _DECODER.decode(characters)
        if "\\u" in characters:  # may have become half of a surrogate pair
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise json.JSONDecodeError(reason, "", 0) from error
    return value


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("number out of range")
    return value


def _integer(text: str) -> float:
    # As orjson has it, an integer that 64 bits don't hold is a float.
    value = int(text) if len(text) <= 20 else None
    return value if value is not None and -(2**63) <= value < 2**64 else _number(text)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_float=_number, parse_int=_integer, parse_constant=_refuse)


def _to_json(value: Any) -> bytes:
    return json.dumps(
        value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_number_of_numpy
    ).encode("utf-8")


def _number_of_numpy(value: Any) -> Any:
    if not hasattr(value, "tolist"):
        raise TypeError(f"{type(value).__name__} is not a JSON type")
    return value.tolist()
