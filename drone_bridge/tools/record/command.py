# SPDX-License-Identifier: Apache-2.0
"""drone-bridge record: record topics into a bag until Ctrl-C.

drone-bridge record                                  # all topics, into ~/drone_bridge_bags
drone-bridge record flight --topics /odom /tf --compress
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ament_index_python.packages import get_package_prefix

from drone_bridge.net.disk_space import DEFAULT_MB
from drone_bridge.ros.node.parameter_files import parameter_arguments
from drone_bridge.tools.command_parser import AS_WRITTEN, CommandParser


def main(argv: Sequence[str]) -> NoReturn:
    """Replace this process by the node recorder, with the options as its parameters."""
    parser = CommandParser(prog="drone-bridge record", description=__doc__, formatter_class=AS_WRITTEN)
    parser.add_argument(
        "bag", nargs="?", type=Path, help="the folder to create (~/drone_bridge_bags/bag_<date>_<time>)"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="BAG", help="the same, as of ros2 bag record")
    parser.add_argument("--topics", nargs="+", metavar="NAME", help="record only these")
    parser.add_argument("--exclude", metavar="REGEX", help="exclude topics whose name matches")
    parser.add_argument("--compress", action="store_true", help="compress the bag (zstd)")
    parser.add_argument(
        "--min-free-space",
        type=float,
        default=DEFAULT_MB,
        metavar="MB",
        help="end while the disk has so much free space (the smaller of 1 GB and 5 %% of the disk; 0: unlimited)",
    )
    options = parser.parse_args(argv)
    options.bag = options.bag or options.output
    if options.bag and options.bag.expanduser().exists():
        sys.exit(f"drone-bridge record: '{options.bag}' exists already; choose another name.")
    parameters = {
        "bag": str(options.bag or ""),
        "topics": options.topics or [""],
        "exclude": options.exclude or "",
        "compression": "zstd" if options.compress else "none",
        "min_free_space": options.min_free_space,
    }
    program = os.path.join(get_package_prefix("drone_bridge"), "lib", "drone_bridge", "recorder")
    sys.stdout.flush()
    os.execv(program, [program, "--ros-args", *parameter_arguments(parameters)])
