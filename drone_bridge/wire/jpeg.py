# SPDX-License-Identifier: Apache-2.0
"""The size of a JPEG, read from its header without decoding it."""

SIGNATURE = b"\xff\xd8\xff"  # start of image, and the first byte of the next marker

# The second bytes of markers; the first one is 0xff.
_START_OF_SCAN = 0xDA
_END_OF_IMAGE = 0xD9
_FILL = 0xFF  # any number of these may come before a marker
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})  # temporary, restarts, start of image
# Start of frame, in all kinds of coding: 0xc4, 0xc8 and 0xcc among them are something else.
_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
#: Of everything that can come before the size, fill bytes as well. Real headers have a few, those with a large colour
#: profile some hundred; to look at millions would take a second.
MAX_MARKERS = 1000
_SIZE_END = 7  # bytes of a frame's segment up to its size: length, precision, height and width


def read_size(data: bytes) -> tuple[int, int]:
    """Return width and height in pixels. Raises ValueError with half a sentence about data that is not a JPEG."""
    if not data.startswith(SIGNATURE):
        raise ValueError(f"begins with {data[:4].hex(' ') or 'nothing'}, and not as a JPEG")
    position, end = 2, len(data)  # where the next marker has to be
    for _ in range(MAX_MARKERS):
        if position + 1 >= end:
            raise ValueError("is a JPEG cut short inside its header")
        if data[position] != _FILL:
            raise ValueError(f"has no marker of a JPEG at byte {position}")
        marker = data[position + 1]
        if marker == _FILL:
            position += 1
        elif marker in _WITHOUT_LENGTH:
            position += 2
        elif marker in (_START_OF_SCAN, _END_OF_IMAGE):
            raise ValueError("is a JPEG without a size")
        else:
            length = int.from_bytes(data[position + 2 : position + 4], "big")
            if marker in _START_OF_FRAME and length >= _SIZE_END and position + 2 + _SIZE_END <= end:
                height, width = data[position + 5 : position + 7], data[position + 7 : position + 9]
                return int.from_bytes(width, "big"), int.from_bytes(height, "big")
            position += 2 + max(length, 2)  # the length counts itself, so it can't be less: always onwards
    raise ValueError(f"is a JPEG whose header has more than {MAX_MARKERS} markers")
