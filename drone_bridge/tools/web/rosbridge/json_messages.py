# SPDX-License-Identifier: Apache-2.0
"""Messages of ROS in rosbridge's JSON, and fields of its requests."""

import json
import math
from typing import Any

from drone_bridge.wire.json_text import to_base64

_MAX_SHOWN = 60
"""Maximum length of a wrong value in an error."""
MAX_ID = 512
"""Maximum length of an id: those of a client's subscriptions are kept."""


def plain(value: Any) -> Any:
    """Return a message as JSON has it: uint8 arrays in base64, a byte as a number, and null for NaN and infinity."""
    if hasattr(value, "get_fields_and_field_types"):
        return {name: plain(getattr(value, name)) for name in value.get_fields_and_field_types()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, bytes):
        return int.from_bytes(value, "little")
    if "B" in (getattr(value, "typecode", ""), getattr(getattr(value, "dtype", None), "char", "")):
        return to_base64(value.tobytes())
    return [plain(each) for each in (value.tolist() if hasattr(value, "tolist") else value)]


def parse(frame: str | bytes) -> dict[str, Any]:
    """Return the request in a frame. Raises ValueError."""
    if isinstance(frame, bytes):
        raise ValueError("Binary messages are not served, only JSON in text.")
    try:
        request = json.loads(frame)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"The message is not JSON: {error}.") from None
    if not isinstance(request, dict):
        raise ValueError(f"The message is {shown(request)} but must be a JSON object.")
    return request


def name_in(request: dict[str, Any], field: str) -> str:
    """Return a field with a name. Raises ValueError."""
    value = request.get(field)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{field} is {shown(value)} but must be a name.")
    return value


def number_in(request: dict[str, Any], field: str) -> float:
    """Return a field with a number, zero if there is none. Raises ValueError."""
    value = request.get(field) or 0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
        raise ValueError(f"{field} is {shown(value)} but must be a number, 0 or more.")
    return value


def object_in(request: dict[str, Any], field: str) -> dict[str, Any]:
    """Return a field with an object, an empty one if there is none. Raises ValueError."""
    value = request.get(field) or {}
    if not isinstance(value, dict):
        raise ValueError(f"{field} is {shown(value)} but must be an object.")
    return value


def id_in(request: dict[str, Any]) -> str | int | None:
    """Return the request's id. Raises ValueError."""
    value = request.get("id")
    if value is not None and not isinstance(value, (str, int)):
        raise ValueError(f"id is {shown(value)} but must be a text.")
    if isinstance(value, str) and len(value) > MAX_ID:
        raise ValueError(f"id has {len(value)} characters, but at most {MAX_ID} are allowed.")
    return value


def shown(value: Any) -> str:
    """Return the beginning of a value for an error."""
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
