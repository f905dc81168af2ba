# SPDX-License-Identifier: Apache-2.0
"""web_bridge: node that shows the ROS graph in a browser and in Foxglove.

web_bridge --ros-args -p port:=8765
"""

import ctypes
import sys

from drone_bridge.ros.node.discovery_server import ask_for_all_topics
from drone_bridge.ros.node.program import run

#: Larger blocks, such as images, are returned to the system when they are freed. By default, glibc raises the threshold
#: up to 32 MiB after freeing a large block, and the queued images of disconnected viewers would stay allocated.
_RETURNED_BYTES = 1 << 20
_M_MMAP_THRESHOLD = -3  # of mallopt(3)


def return_memory() -> None:
    """Configure the allocator to return the memory of images to the system, if it supports that (glibc)."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(_M_MMAP_THRESHOLD, _RETURNED_BYTES)


def main() -> int:
    """Run the node until a stop signal. Returns the exit status."""
    from drone_bridge.tools.web.node import WebBridge  # whose libraries may be missing

    return_memory()
    ask_for_all_topics()
    return run(WebBridge)


if __name__ == "__main__":
    sys.exit(main())
