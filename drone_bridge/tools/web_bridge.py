# SPDX-License-Identifier: Apache-2.0
"""web_bridge: shows the graph in a browser, and to Foxglove.

web_bridge --ros-args -p port:=8765
"""

import ctypes
import sys

from drone_bridge.ros.discovery_server import ask_for_all_topics
from drone_bridge.ros.program import run

#: Larger blocks go back to the system when they are freed: those of pictures. glibc's own threshold grows to 32 MiB
#: with the first of them, and what viewers who left had waiting would stay.
_RETURNED_BYTES = 1 << 20
_M_MMAP_THRESHOLD = -3  # of mallopt(3)


def return_memory() -> None:
    """Have the allocator return what pictures took, where that can be set (glibc)."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(_M_MMAP_THRESHOLD, _RETURNED_BYTES)


def main() -> int:
    """Run the node until SIGINT or SIGTERM. Returns the exit status."""
    from drone_bridge.tools.web.node import WebBridge  # whose libraries may be missing

    return_memory()
    ask_for_all_topics()
    return run(WebBridge)


if __name__ == "__main__":
    sys.exit(main())
