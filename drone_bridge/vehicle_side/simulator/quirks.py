# SPDX-License-Identifier: Apache-2.0
"""How the CUAUV server deviates from the document; all of it is in docs/simulator.md."""

from __future__ import annotations

from enum import Enum

from drone_bridge.protocols import simulator as wire


class Quirks(str, Enum):
    """Deviations from the document, one switch each."""

    NONE = "none"  # as the document says
    REAL = "real"  # as the CUAUV server does, so far as it is known


def reason_to_hang_up(request: wire.Request) -> str | None:
    """Return why the CUAUV server closes the connection on a request that the document allows; None if it does not."""
    if not request.IS_KNOWN_TO_CUAUV:
        return f"it has sent {type(request).__name__}, which the CUAUV server does not know"
    if not all(request.texts):
        return f"it has sent {type(request).__name__} with an empty string, which the CUAUV server can't read"
    return None


def is_ignored(request: wire.Request) -> bool:
    """Return whether the CUAUV server says OK to a request and does nothing."""
    return isinstance(request, wire.Remove) and request.type not in request.REMOVED_BY_CUAUV
