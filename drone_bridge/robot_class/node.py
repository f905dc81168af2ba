# SPDX-License-Identifier: Apache-2.0
"""Executables of the nodes of any Robot: robot_class_bridge and robot_class_server, see USAGE.

An empty parameter value means the default, so that a launch file can pass on arguments that were not given.
"""

import sys

from drone_bridge.kind import NodeKind, kinds, unloadable
from drone_bridge.ros.process.environment import check_message_fields

check_message_fields()  # a description may fill messages of its own

from drone_bridge.ros.node.program import run  # noqa: E402

USAGE = "usage: {0} <robot> [parameter:=value ...] [--ros-args ...]\n\nexample: {0} tello --ros-args -r __ns:=/my_tello"
REFUSED = 2  # like argparse


def bridge() -> int:
    """Run the bridge of the robot that the command line names. Return the exit status."""
    return _run({name: kind.bridge for name, kind in kinds().items()})


def server() -> int:
    """Run the server of the robot that the command line names. Return the exit status."""
    return _run({name: kind.server for name, kind in kinds().items() if kind.server})


def _run(nodes: dict[str, NodeKind]) -> int:
    program, *words = sys.argv
    name, *others = words or [""]
    if name in ("-h", "--help"):
        print(USAGE.format(program.rpartition("/")[2]))
        return 0
    if reason := unloadable().get(name):
        print(f"Robot {name!r} can't be loaded: {reason.rstrip('.')}.", file=sys.stderr)
        return REFUSED
    if name not in nodes:
        print(f"Robot {name!r} is not installed (pip install -e DIR). Available: {', '.join(nodes)}.", file=sys.stderr)
        print(USAGE.format(program.rpartition("/")[2]), file=sys.stderr)
        return REFUSED
    at = others.index("--ros-args") if "--ros-args" in others else len(others)
    ours = [each for each in others[:at] if ":=" in each]
    given = [word for each in ours if not each.endswith(":=") for word in ("-p", each)]
    ignored = [each for each in others[:at] if each not in ours]  # refused by name
    sys.argv = [program, *ignored, "--ros-args", *given, "--", *others[at:]]
    return run(nodes[name].make)
