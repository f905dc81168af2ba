# SPDX-License-Identifier: Apache-2.0
"""What telemetry costs without orjson and pybase64: python benchmark/telemetry_libraries.py [image bytes]."""

import sys
import timeit

from drone_bridge.telemetry.codec import json_and_base64

ROUNDS = 5
READS = 2000


def main() -> None:
    """Print the time that reading a document with an image takes, both ways."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    document = json_and_base64.to_json(
        {"imu": {"roll": 0.1}, "camera": {"image": json_and_base64.to_base64(bytes(size))}}
    )

    def read() -> None:
        json_and_base64.from_base64(json_and_base64.from_json(document)["camera"]["image"])

    for name, is_quick in (("orjson and pybase64", True), ("Python's own modules", False)):
        json_and_base64.HAS_ORJSON = json_and_base64.HAS_PYBASE64 = is_quick  # type: ignore[misc]
        seconds = min(timeit.repeat(read, number=READS, repeat=ROUNDS)) / READS
        print(f"{name:22} {seconds * 1e6:8.1f} us for a document with an image of {size} bytes")


if __name__ == "__main__":
    main()
