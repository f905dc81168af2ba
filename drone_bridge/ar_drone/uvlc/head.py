# SPDX-License-Identifier: Apache-2.0
"""Head of a picture: parsing, with a reason if it can't be decoded, and writing."""

from dataclasses import dataclass

from drone_bridge.ar_drone.uvlc.layout import HEAD, HEAD_BITS, INTRA, P264_START, SIZES, START, size
from drone_bridge.wire.events import RemoteProtocolError


@dataclass(frozen=True, slots=True)
class Head:
    """Head of a supported picture.

    Attributes:
        width: in pixels.
        height: in pixels.
        quantizer: of row 0.
        number: the drone's picture counter, 32 bits.
    """

    width: int
    height: int
    quantizer: int
    number: int

    @classmethod
    def read(cls, ordered: bytes) -> "Head":
        """Read the head of a packet in bit order. Raises RemoteProtocolError."""
        if 8 * len(ordered) < HEAD_BITS:
            raise RemoteProtocolError(f"A video packet is truncated at {len(ordered)} bytes.")
        fields = _fields(ordered)
        if fields["start"] == P264_START:
            raise RemoteProtocolError(
                "The drone sends its video in P264, which is not decoded: set its video:video_codec to 32 (UVLC)."
            )
        if fields["start"] != START:
            raise RemoteProtocolError(f"A video packet starts with {fields['start']:#x} instead of {START:#x}.")
        pixels = size(fields["family"], fields["resolution"])
        if pixels is None:
            raise RemoteProtocolError(
                f"A picture has size {fields['resolution']} of family {fields['family']}, which does not exist."
            )
        if pixels not in SIZES:
            known = " and ".join(f"{width} x {height}" for width, height in SIZES)
            raise RemoteProtocolError(f"A picture has {pixels[0]} x {pixels[1]} pixels; {known} are decoded.")
        if fields["type"] != INTRA:
            raise RemoteProtocolError(f"A picture has type {fields['type']}; only INTRA ({INTRA}) is decoded.")
        return cls(*pixels, checked_quantizer(fields["quantizer"], row=0), fields["number"])

    def codes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the values of the fields, and their lengths in bits."""
        family, resolution = SIZES[self.width, self.height]
        return (START, family, resolution, INTRA, self.quantizer, self.number), tuple(HEAD.values())


def _fields(ordered: bytes) -> dict[str, int]:
    head_bytes = -(-HEAD_BITS // 8)
    bits = int.from_bytes(ordered[:head_bytes], "big")
    below = 8 * head_bytes
    fields = {}
    for name, length in HEAD.items():
        below -= length
        fields[name] = bits >> below & (1 << length) - 1
    return fields


def checked_quantizer(quantizer: int, row: int) -> int:
    """Return the quantizer of a row. Raises RemoteProtocolError if it is invalid."""
    if not quantizer:
        raise RemoteProtocolError(f"Row {row} of a picture has quantizer 0; 1 to 31 are allowed.")
    return quantizer
