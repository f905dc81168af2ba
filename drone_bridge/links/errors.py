# SPDX-License-Identifier: Apache-2.0
"""What ends the use of a link, beside the peer's regular end."""

import os
import socket


class LinkError(Exception):
    """The link can't be used any more; the text is a sentence for people."""


class LinkTimeoutError(LinkError):
    """The peer kept us waiting for longer than allowed."""


class LinkCancelledError(LinkError):
    """Our own side asked to stop waiting."""


class LinkRefusedError(LinkError):
    """Nobody listens where a datagram was sent to. The link can be used on: somebody may come yet."""


def reason(error: Exception) -> str:
    """Return what went wrong in the system's words, without what Python adds to them."""
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
