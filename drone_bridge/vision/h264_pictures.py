# SPDX-License-Identifier: Apache-2.0
"""H264Pictures: pictures of a stream of H.264 (ITU-T H.264, Annex B) that comes in datagrams. Pure.

A picture begins with a datagram, and ends with a shorter one, unless this ends a slice of several. Then, and if the
size is a multiple of theirs, it ends with the beginning of the next picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

MAX_PICTURE_BYTES = 1 << 20
#: Types of units with any importance: slices, those of an IDR, and parameters of a sequence. Groups of bytes.
_SLICES, _IDRS, _SEQUENCES = rb"\x01\x05\x21\x25\x41\x45\x61\x65", rb"\x05\x25\x45\x65", rb"\x07\x27\x47\x67"
#: Start of a picture: its first slice, or what comes before.
_START = re.compile(rb"\x00{2,3}\x01(?:[" + _SLICES + rb"][\x80-\xff]|[\x06\x08\x09\x28\x48\x68" + _SEQUENCES + rb"])")
#: A slice in a datagram's beginning, and units in a picture: a slice, and what needs no other picture.
_BEGUN_SLICE = re.compile(rb"\x00{2,3}\x01[" + _SLICES + rb"]")
_SLICE, _KEY = (re.compile(rb"\x00\x00\x01[" + kinds + rb"]") for kinds in (_SLICES, _IDRS + _SEQUENCES))


class H264Picture(NamedTuple):
    """Picture, whose number is that of the one before plus one, unless data are known to be lost between them."""

    data: bytes
    is_key: bool
    number: int


class H264Pictures:
    """Pictures of one stream."""

    def __init__(self) -> None:
        self._data, self._number, self._longest = bytearray(), 0, 0
        self._has_slices = False  # several in a picture

    def receive(self, datagrams: Iterable[bytes]) -> Iterator[H264Picture]:
        """Yield the pictures that these datagrams complete."""
        for datagram in datagrams:
            self._longest = max(self._longest, len(datagram))
            if begins := _START.match(datagram):
                yield from self._taken()
            if not (begins or self._data) or len(self._data) + len(datagram) > MAX_PICTURE_BYTES:
                self._has_slices |= bool(_BEGUN_SLICE.match(datagram))
                self._data.clear()
                self._number += 1  # its beginning is lost
                continue
            self._data += datagram
            if len(datagram) < self._longest and not self._has_slices:
                yield from self._taken()

    def _taken(self) -> Iterator[H264Picture]:
        """Yield the picture that has come so far, unless these are only its parameters."""
        if _SLICE.search(self._data):
            self._number += 1
            yield H264Picture(bytes(self._data), bool(_KEY.search(self._data)), self._number)
            self._data.clear()
