# SPDX-License-Identifier: Apache-2.0
"""Errors that end the use of a link."""

import os
import socket


class LinkError(Exception):
    """The link is no longer usable; the text is a human-readable sentence."""


class LinkTimeoutError(LinkError):
    """The peer did not respond in time."""


class LinkCancelledError(LinkError):
    """Waiting was cancelled by our own side."""


class LinkRefusedError(LinkError):
    """Nobody listens at the datagram's destination. The link stays usable, as the peer may still come up."""


def reason(error: Exception) -> str:
    """Return the operating system's description of an error, without Python's errno prefix."""
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
