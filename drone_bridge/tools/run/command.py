# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge run`: run one node of this package, as `ros2 run drone_bridge` does."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from ament_index_python.packages import get_package_prefix

from drone_bridge.programs.options import known
from drone_bridge.tools.command_parser import CommandParser


def main(argv: Sequence[str]) -> int:
    """Replace this process by the node; `argv` are its name and its arguments. Returns only with an error."""
    folder = Path(get_package_prefix("drone_bridge"), "lib", "drone_bridge")
    names = sorted(path.name for path in folder.iterdir())
    parser = CommandParser(
        prog="drone-bridge run", description=f"Run a node: {', '.join(names)}.", usage="%(prog)s node [arguments]"
    )
    parser.add_argument("node", type=known(names), help="its name")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="such as --ros-args -p port:=9000")
    words = parser.parse_args(argv[argv[:1] == ["drone_bridge"] :])  # the package's name, as of ros2 run, is optional
    os.execv(folder / words.node, [words.node, *words.arguments])
