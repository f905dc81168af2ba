# SPDX-License-Identifier: Apache-2.0
"""What ends the use of a link, beside the peer's regular end."""


class LinkError(Exception):
    """The link can't be used any more; the text is a sentence for people."""


class LinkTimeoutError(LinkError):
    """The peer kept us waiting for longer than allowed."""


class LinkCancelledError(LinkError):
    """Our own side asked to stop waiting."""


class LinkRefusedError(LinkError):
    """Nobody listens where a datagram was sent to. The link can be used on: somebody may come yet."""
