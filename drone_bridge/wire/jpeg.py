# SPDX-License-Identifier: Apache-2.0
"""JPEG size, read from the header without decoding the image."""

SIGNATURE = b"\xff\xd8\xff"  # start of image, and the first byte of the next marker

# The second bytes of markers; the first one is 0xff.
_START_OF_SCAN = 0xDA
_END_OF_IMAGE = 0xD9
_FILL = 0xFF  # a marker may be preceded by any number of these
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})  # TEM, RSTn, SOI
# Start of frame (SOFn), in all codings. 0xc4, 0xc8 and 0xcc in that range have other meanings.
_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
#: Limit of markers and fill bytes before the size. Real headers have a few, or some hundred with a large colour
#: profile. Parsing millions would take a second.
MAX_MARKERS = 1000
_SIZE_END = 7  # bytes of a frame's segment up to its size: length, precision, height and width


def read_size(data: bytes) -> tuple[int, int]:
    """Return width and height in pixels. Raises ValueError for invalid data; its text is a sentence without subject."""
    if not data.startswith(SIGNATURE):
        raise ValueError(f"begins with {data[:4].hex(' ') or 'nothing'}, and not as a JPEG")
    position, end = 2, len(data)  # position of the next marker
    for _ in range(MAX_MARKERS):
        if position + 1 >= end:
            raise ValueError("is a JPEG truncated inside its header")
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
            position += 2 + max(length, 2)  # the length includes its own 2 bytes: always advance
    raise ValueError(f"is a JPEG whose header has more than {MAX_MARKERS} markers")
