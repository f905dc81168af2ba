# SPDX-License-Identifier: Apache-2.0
"""Deviations of the CUAUV server from the document, all of which are listed in docs/simulator.md."""

from __future__ import annotations

from enum import Enum

from drone_bridge.simulator import codec as wire


class Quirks(str, Enum):
    """Which deviations from the document to follow."""

    NONE = "none"  # as the document says
    REAL = "real"  # as the CUAUV server, as far as known


def reason_to_hang_up(request: wire.Request) -> str | None:
    """Return why the CUAUV server closes the connection on a valid request, None if it does not."""
    if not request.IS_KNOWN_TO_CUAUV:
        return f"it has sent {type(request).__name__}, which the CUAUV server does not know"
    if not all(request.texts):
        return f"it has sent {type(request).__name__} with an empty string, which the CUAUV server can't read"
    return None


def is_ignored(request: wire.Request) -> bool:
    """Return whether the CUAUV server answers OK and does nothing."""
    return isinstance(request, wire.Remove) and request.type not in request.REMOVED_BY_CUAUV
