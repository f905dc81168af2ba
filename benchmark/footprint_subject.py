# SPDX-License-Identifier: Apache-2.0
"""A bridge that says when it is configured, or the bare node that it is compared with.

Prints the seconds from the moment given, on CLOCK_MONOTONIC, until the node was configured; the bare node, which has
nothing to configure, until it could be spun. Then it runs until SIGINT.
"""

import argparse
import sys
import time
from collections.abc import Callable
from importlib import import_module

BARE = "bare"


def main() -> int:
    """Run until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("started_s", type=float, help="CLOCK_MONOTONIC just before this program was started")
    parser.add_argument("program", help=f"module:function, or {BARE}")
    arguments, _ = parser.parse_known_args()

    def say() -> None:
        print(time.monotonic() - arguments.started_s, flush=True)

    return _run_bare(say) if arguments.program == BARE else _run_bridge(arguments.program, say)


def _run_bare(say: Callable[[], None]) -> int:
    import rclpy
    from nodes import ros, spin

    with ros():
        node = rclpy.create_node("bare")
        say()
        spin(node)
    return 0


def _run_bridge(program: str, say: Callable[[], None]) -> int:
    from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn

    from drone_bridge.link_node.link_node import LinkNode

    activate = LinkNode.on_activate

    def say_and_activate(node: LinkNode, state: LifecycleState) -> TransitionCallbackReturn:
        say()
        return activate(node, state)

    LinkNode.on_activate = say_and_activate  # type: ignore[method-assign]
    module, function = program.split(":")
    status: int = getattr(import_module(module), function)()
    return status


if __name__ == "__main__":
    sys.exit(main())
