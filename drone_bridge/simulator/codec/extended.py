# SPDX-License-Identifier: Apache-2.0
"""The simulator protocol's messages about extended attributes: named bytes of entities."""

from dataclasses import dataclass
from typing import Annotated

from drone_bridge.simulator.codec.wire import Data, ItemType, Key, Request, Response
from drone_bridge.simulator.codec.world import Added, Ok
from drone_bridge.wire.layouts import ListOf, Message, UInt32


@dataclass(frozen=True, slots=True)
class ExtendedAttribute(Message):
    """A name and its bytes, whose meaning is up to the clients."""

    key: Key  # at most 255 bytes
    data: Data


ExtendedAttributes = Annotated[tuple[ExtendedAttribute, ...], ListOf("B", ExtendedAttribute)]


@dataclass(frozen=True, slots=True)
class SetExtended(Request):
    """EXSET (19): add or change an attribute. Error 0: no such entity."""

    ID = 19
    NAME = "EXSET"
    ANSWER = Ok
    id: UInt32
    key: Key
    data: Data

    @property
    def texts(self) -> tuple[str | bytes, ...]:
        return (self.key, self.data)


@dataclass(frozen=True, slots=True)
class ExtendedGot(Response):
    """EXGOT (9): the value of an attribute."""

    ID = 9
    key: Key
    data: Data


@dataclass(frozen=True, slots=True)
class GetExtended(Request):
    """EXGET (20): get an attribute. Answered with an Error if the entity lacks the key."""

    ID = 20
    NAME = "EXGET"
    ANSWER = ExtendedGot
    id: UInt32
    key: Key

    @property
    def texts(self) -> tuple[str | bytes, ...]:
        return (self.key,)

    def is_answered_by(self, response: Response) -> bool:
        return isinstance(response, ExtendedGot) and response.key == self.key


@dataclass(frozen=True, slots=True)
class StreamExtended(Request):
    """EXSTREAM (21): send ExtendedData after every `period` steps."""

    ID = 21
    NAME = "EXSTREAM"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = Added
    ADDS = ItemType.EXTENDED_STREAM
    id: UInt32
    period: UInt32  # steps
    keys: Annotated[tuple[str, ...], ListOf("B", Key)]  # at most 255


@dataclass(frozen=True, slots=True)
class ExtendedData(Response):
    """EXDATA (135): extended attributes of an entity after a step."""

    ID = 135
    id: UInt32  # of the stream
    attributes: ExtendedAttributes  # at most 255
