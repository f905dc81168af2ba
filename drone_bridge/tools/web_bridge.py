# SPDX-License-Identifier: Apache-2.0
"""web_bridge: shows the graph in a browser, and to Foxglove.

web_bridge --ros-args -p port:=8765
"""

import importlib.util
import sys

NEEDED = {"foxglove": "foxglove-sdk", "websockets": "websockets"}


def main() -> int:
    """Run the node until SIGINT or SIGTERM. Returns the exit status, which is 1 when it can't start."""
    missing = [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]
    if not missing and importlib.util.find_spec("websockets.asyncio") is None:
        missing = ["'websockets>=15'"]
    if missing:
        print(f"web_bridge: missing on this machine. Install it with: pip install {' '.join(missing)}", file=sys.stderr)
        return 1

    from drone_bridge.ros.program import ask_for_all_topics, run
    from drone_bridge.tools.web.node import WebBridge

    ask_for_all_topics()
    return run(WebBridge)


if __name__ == "__main__":
    sys.exit(main())
