# SPDX-License-Identifier: Apache-2.0
"""Requests, responses and strings of the simulator protocol.

Strings are read as UTF-8; bytes that are none become surrogates (Python's surrogateescape), so that what was read can
be written again byte for byte.
"""

from enum import IntEnum
from typing import Annotated, ClassVar

from drone_bridge.wire.layouts import Bytes, ListOf, Message, Numbers, Text, UInt32

Vector = Annotated[tuple[float, float, float], Numbers("d", 3)]
Quaternion = Annotated[tuple[float, float, float, float], Numbers("d", 4)]  # w, x, y, z
Name = Annotated[str, Text("I", errors="surrogateescape")]
Key = Annotated[str, Text("B", errors="surrogateescape")]  # at most 255 bytes
Data = Annotated[bytes, Bytes("I")]
Ids = Annotated[tuple[int, ...], ListOf("I", UInt32)]


class ItemType(IntEnum):
    """The types of items with IDs, which are counted per type."""

    ENTITY = 0
    OBJECT = 1
    CAMERA = 2
    TRIGGER = 3
    ENTITY_STREAM = 4
    CAMERA_STREAM = 5
    CAMERA_BROADCAST = 6
    EXTENDED_STREAM = 7
    SPY = 8


class Response(Message):
    """A message from the server: an answer if its ID is below 128, otherwise an out-of-band message."""

    __slots__ = ()

    @property
    def is_in_band(self) -> bool:
        """Whether it answers a request."""
        return self.ID < 128


class Request(Message):
    """A message from a client, answered once, in order, with the expected response or an Error."""

    __slots__ = ()
    #: What the document calls it.
    NAME: ClassVar[str]
    #: What answers it.
    ANSWER: ClassVar[type[Response]]
    #: The type of what it adds, where Added answers it.
    ADDS: ClassVar[ItemType | None] = None
    #: Whether the CUAUV server knows it at all. It closes the connection on what it does not know.
    IS_KNOWN_TO_CUAUV: ClassVar[bool] = True

    @property
    def is_implemented(self) -> bool:
        """Whether the CUAUV server implements the request, with its values."""
        return self.IS_KNOWN_TO_CUAUV

    @property
    def texts(self) -> tuple[str | bytes, ...]:
        """Its keys, values and names. The CUAUV server closes the connection if any of them is empty."""
        return ()

    def is_answered_by(self, response: Response) -> bool:
        """Return whether a response of the expected type, other than Error, can be the answer to this request."""
        return self.ADDS is None or getattr(response, "type", None) == self.ADDS
