# SPDX-License-Identifier: Apache-2.0
"""Subject of footprint.py: a bridge that reports its start, or an empty node for comparison.

It prints the seconds from the given time of CLOCK_MONOTONIC until the node was ready to spin. A bridge also prints its
interface as one line of JSON, from which a lifecycle node with the same topics and services, without functions, can be
created. It runs until SIGINT.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import rclpy.node  # at the top of the stack, as in the executables: cmake/write_executables.py

BARE = "bare"


def main() -> int:
    """Run until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("started_s", type=float, help="CLOCK_MONOTONIC just before this program was started")
    parser.add_argument("program", help=f"module:function, {BARE}, or the interface of a bridge")
    arguments, _ = parser.parse_known_args()

    def say() -> None:
        print(time.monotonic() - arguments.started_s, flush=True)

    if arguments.program == BARE or arguments.program.startswith("{"):
        return _run_node(arguments.program, say)
    return _run_bridge(arguments.program, say)


def _run_node(program: str, say: Callable[[], None]) -> int:
    from nodes import ros, spin

    with ros():
        node = rclpy.create_node("bare") if program == BARE else _node_with(json.loads(program))
        say()
        spin(node)
    return 0


def _node_with(interface: dict[str, list[list[str]]]) -> Any:
    """Return a lifecycle node with this interface, without functions."""
    from rclpy.lifecycle import LifecycleNode

    node = LifecycleNode("without_a_program")
    for type_name, topic in interface["publishers"]:
        node.create_publisher(_type(type_name), topic, 10)
    for type_name, topic in interface["subscriptions"]:
        node.create_subscription(_type(type_name), topic, print, 10)
    for type_name, service in interface["services"]:
        node.create_service(_type(type_name), service, lambda request, response: response)
    return node


def _interface(node: Any) -> dict[str, list[tuple[str, str]]]:
    """Return a node's own topics and services, without those of each lifecycle node."""
    kinds = {
        "publishers": [(publisher.msg_type, publisher.topic_name) for publisher in node.publishers],
        "subscriptions": [(subscription.msg_type, subscription.topic_name) for subscription in node.subscriptions],
        "services": [(service.srv_type, service.service_name) for service in node.services],
    }
    return {
        kind: [(f"{its_type.__module__}:{its_type.__name__}", name) for its_type, name in entities]
        for kind, entities in kinds.items()
    }


def _type(name: str) -> Any:
    module, name = name.split(":")
    return getattr(import_module(module.rpartition(".")[0]), name)


def _run_bridge(program: str, say: Callable[[], None]) -> int:
    gc.disable()  # until all modules are imported, as executables do (cmake/write_executables.py)
    from drone_bridge.ros import program as programs

    executor_of = programs.executor_of

    def say_and_make_executor(node: Any) -> Any:
        say()
        print(json.dumps(_interface(node)), flush=True)
        return executor_of(node)

    programs.executor_of = say_and_make_executor
    module, function = program.split(":")
    run = getattr(import_module(module), function)
    gc.freeze()
    gc.enable()
    status: int = run()
    return status


if __name__ == "__main__":
    sys.exit(main())
