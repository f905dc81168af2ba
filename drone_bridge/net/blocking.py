# SPDX-License-Identifier: Apache-2.0
"""receive: blocking reception from a link, for single-threaded programs. Nodes run a LinkLoop instead."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from drone_bridge.net.connector import Cancellation, LinkCancelledError, Selectable, wait_readable

#: Longest time between two polls of a link: it may have peers to disconnect, or accept connections again.
TURN_S = 0.1
ArrivedT_co = TypeVar("ArrivedT_co", covariant=True)


class ReceivingLink(Protocol[ArrivedT_co]):
    """Receiving half of a Link."""

    def files(self) -> Sequence[Selectable]:
        """See Link."""

    def receive(self) -> ArrivedT_co | None:
        """See Link."""


def receive(link: ReceivingLink[ArrivedT_co], cancellation: Cancellation) -> ArrivedT_co:
    """Return the next event of a link, waiting for it if necessary.

    Raises LinkCancelledError, and the errors of `link.receive`.
    """
    while not cancellation.is_set:
        if (arrived := link.receive()) is not None:
            return arrived
        wait_readable([*link.files(), cancellation], TURN_S)
    raise LinkCancelledError("Receiving was cancelled.")
