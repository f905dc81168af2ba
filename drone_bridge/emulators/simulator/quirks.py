# SPDX-License-Identifier: Apache-2.0
"""How the CUAUV server speaks, where that is not what the document says. docs/simulator.md tells all of it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final

from drone_bridge.protocols import simulator as wire
from drone_bridge.protocols.simulator import ItemType


class Quirks(str, Enum):
    """How to speak."""

    NONE = "none"  # as the document says
    REAL = "real"  # as the CUAUV server does, so far as it is known


_UNKNOWN: Final = (
    wire.ListObjectClasses,
    wire.ListObjects,
    wire.SetObject,
    wire.GetObject,
    wire.ListCameras,
    wire.ViewCamera,
    wire.BroadcastCamera,
    wire.StreamExtended,
    wire.Spy,
)
#: What it removes. It says OK to REMOVE of anything else, and leaves it where it is.
_REMOVABLE: Final = (ItemType.ENTITY, ItemType.OBJECT, ItemType.CAMERA, ItemType.CAMERA_STREAM, ItemType.SPY)


def reason_to_hang_up(request: wire.Request) -> str | None:
    """Return why the CUAUV server closes the connection on a request that the document allows; None if it does not."""
    if isinstance(request, _UNKNOWN):
        return f"it has sent {type(request).__name__}, which the CUAUV server does not know"
    if not all(_strings(request)):
        return f"it has sent {type(request).__name__} with an empty string, which the CUAUV server can't read"
    return None


def is_ignored(request: wire.Request) -> bool:
    """Return whether the CUAUV server says OK to a request and does nothing."""
    return isinstance(request, wire.Remove) and request.type not in _REMOVABLE


def _strings(request: wire.Request) -> Iterator[str | bytes]:
    if isinstance(request, wire.AddEntity):
        for attribute in request.attributes:
            yield from (attribute.key, attribute.data)
    elif isinstance(request, wire.SetExtended):
        yield from (request.key, request.data)
    elif isinstance(request, wire.GetExtended):
        yield request.key
    elif isinstance(request, wire.AddObject):
        yield request.class_name
