# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge node`: list the nodes of the ROS domain."""

from collections.abc import Sequence

from rclpy.node import Node

from drone_bridge.tools.command_parser import CommandParser
from drone_bridge.tools.shell.node import discovered, run


def main(argv: Sequence[str]) -> int:
    """Run the command. Returns the exit status."""
    parser = CommandParser(prog="drone-bridge node", description="List the nodes of this ROS domain.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    verbs.add_parser("list", help="their full names")
    parser.parse_args(argv)
    return run("node", argv, _list)


def _list(node: Node) -> int:
    own = node.get_fully_qualified_name()

    def names() -> list[tuple[str, list[str]]]:
        present = node.get_node_names_and_namespaces()
        return [(f"{namespace.rstrip('/')}/{name}", []) for name, namespace in present if not name.startswith("_")]

    for name, _ in discovered(node, names):
        if name != own:
            print(name)
    return 0
