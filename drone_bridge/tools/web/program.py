# SPDX-License-Identifier: Apache-2.0
"""web_bridge: node that shows the ROS graph in a browser and in Foxglove.

web_bridge --ros-args -p port:=8765
"""

import sys

from drone_bridge.ros.process.environment import ask_for_all_topics, check_message_fields

check_message_fields()  # clients of rosbridge fill messages

from drone_bridge.ros.node.program import run  # noqa: E402
from drone_bridge.tools.shared.suspend_key import hold_all_at_each  # noqa: E402


def main() -> int:
    """Run the node until a stop signal. Returns the exit status."""
    from drone_bridge.tools.web.node import WebBridge  # whose libraries may be missing

    ask_for_all_topics()
    hold_all_at_each(lambda sentence: print(sentence, flush=True))
    return run(WebBridge)


if __name__ == "__main__":
    sys.exit(main())
