# SPDX-License-Identifier: Apache-2.0
"""Declared layouts: byte order of a message and its parts."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from drone_bridge.wire.layouts import LITTLE_ENDIAN, Bytes, Choice, ListOf, Numbers, Text, UInt8, UInt16, UInt32
from drone_bridge.wire.messages import Message


@dataclass(frozen=True, slots=True)
class Inner(Message):
    """Has its own order, the default."""

    number: UInt16


@dataclass(frozen=True, slots=True)
class Little(Message):
    """Has each sort of layout."""

    ORDER = LITTLE_ENDIAN
    tag: UInt8
    one: UInt16
    two: Annotated[tuple[int, ...], Numbers("H", 2)]
    text: Annotated[str, Text("H", "strict")]
    data: Annotated[bytes, Bytes("I")]
    numbers: Annotated[tuple[int, ...], ListOf("H", UInt32)]
    chosen: Annotated[int, Choice("tag", {1: Numbers("H")}, Numbers("I"))]
    inner: Inner
    rest: Annotated[bytes, Bytes()]


def test_a_message_has_one_byte_order_and_a_nested_one_its_own():
    message = Little(1, 2, (3, 4), "a", b"b", (5,), 6, Inner(7), b"rest")
    data = message.encode()
    assert data == b"\x01\x02\0\x03\0\x04\0\x01\0a\x01\0\0\0b\x01\0\x05\0\0\0\x06\0\0\x07rest"
    assert Little.decode(data) == message


@pytest.mark.parametrize("kind", [UInt8, UInt16, UInt32])
def test_the_order_of_one_message_changes_no_other(kind):
    @dataclass(frozen=True, slots=True)
    class Big(Message):
        value: kind

    assert Big.decode(Big(1).encode()) == Big(1)
    assert Big(1).encode()[-1] == 1
