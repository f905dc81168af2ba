# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge view`: view and steer the running vehicles in a browser, or view a bag."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ament_index_python.packages import get_package_prefix

from drone_bridge.programs.options import port
from drone_bridge.ros.node.parameter_files import parameter_arguments
from drone_bridge.tools.command_parser import CommandParser
from drone_bridge.tools.shared import suspend_key


def main(argv: Sequence[str]) -> int:
    """Serve a bag, or replace this process by the node web_bridge, with the options as its parameters."""
    parser = CommandParser(
        prog="drone-bridge view",
        description="Show the running graph in a browser, and steer its vehicles there. Ctrl-C ends it.",
    )
    parser.add_argument(
        "bag", nargs="?", type=Path, help="a bag to open instead, with a timeline to play and search it"
    )
    parser.add_argument("--port", type=port, default=8765, help="port to listen on; 0 picks a free one (default: 8765)")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; for other machines (0.0.0.0) the link contains a secret (default: 127.0.0.1)",
    )
    parser.add_argument(
        "--steer", action="store_true", help="allow viewers on other machines to steer and to change settings"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address instead of opening a browser")
    options = parser.parse_args(argv)
    if options.bag:
        from drone_bridge.tools.bags.bag import run_on_bag
        from drone_bridge.tools.web.bag_view import serve

        opens = not options.no_browser
        return run_on_bag("view", options.bag, lambda bag: serve(bag, options.host, options.port, opens_browser=opens))
    return _become_web_bridge(options)


def _become_web_bridge(options: argparse.Namespace) -> NoReturn:
    parameters = {
        "host": options.host,
        "port": options.port,
        "steer": options.steer,
        "open_browser": not options.no_browser,
    }
    program = os.path.join(get_package_prefix("drone_bridge"), "lib", "drone_bridge", "web_bridge")
    sys.stdout.flush()
    suspend_key.block()
    os.execv(program, [program, "--ros-args", *parameter_arguments(parameters)])
