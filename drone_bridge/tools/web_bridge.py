# SPDX-License-Identifier: Apache-2.0
"""web_bridge: shows the graph in a browser, and to Foxglove.

web_bridge --ros-args -p port:=8765
"""

import sys

from drone_bridge.ros.program import ask_for_all_topics, run


def main() -> int:
    """Run the node until SIGINT or SIGTERM. Returns the exit status."""
    from drone_bridge.tools.web.node import WebBridge  # whose libraries may be missing

    ask_for_all_topics()
    return run(WebBridge)


if __name__ == "__main__":
    sys.exit(main())
