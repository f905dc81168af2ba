# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge service`: list services, and call one."""

from collections.abc import Sequence
from typing import Any

from rclpy.node import Node

from drone_bridge.tools.command_parser import CommandParser
from drone_bridge.tools.shell.messages import as_yaml, filled
from drone_bridge.tools.shell.node import call, discovered, imported, run, served


def main(argv: Sequence[str]) -> int:
    """Run the command. Returns the exit status."""
    parser = CommandParser(prog="drone-bridge service", description="List or call services.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    listing = verbs.add_parser("list", help="the services of this ROS domain")
    listing.add_argument("-t", "--show-types", action="store_true", help="with their types")
    calling = verbs.add_parser("call", help="call a service, and print its answer")
    calling.add_argument("service")
    calling.add_argument("type", help="of the service, such as std_srvs/srv/Trigger")
    calling.add_argument("request", nargs="?", default="", help="its fields as YAML; others are zero")
    words = parser.parse_args(argv)
    return run("service", argv, lambda node: (_list if words.verb == "list" else _call)(node, words))


def _list(node: Node, words: Any) -> int:
    for name, types in discovered(node, lambda: served(node)):
        print(f"{name} [{', '.join(types)}]" if words.show_types else name)
    return 0


def _call(node: Node, words: Any) -> int:
    kind = imported("srv", words.type)
    request = filled(kind.Request(), words.request)
    print(as_yaml(call(node, kind, words.service, request)), end="")
    return 0
