# SPDX-License-Identifier: Apache-2.0
"""What every connection's next_event() can return beside the messages of its protocol."""

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal


class _Signal(Enum):
    NEED_DATA = "NEED_DATA"

    def __repr__(self) -> str:
        return self.value


NeedData = Literal[_Signal.NEED_DATA]
#: Everything received has been turned into events; more bytes are needed for the next one.
NEED_DATA: Final = _Signal.NEED_DATA


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """The peer ended the conversation where the protocol allows it to end."""
