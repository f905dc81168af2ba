# SPDX-License-Identifier: Apache-2.0
"""Node of a shell command: discovery in the ROS graph, and service calls.

SIGINT sets a flag, for which `spin_until` raises KeyboardInterrupt, so that rclpy is never interrupted.
"""

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import rclpy
from rclpy.node import Node

from drone_bridge.programs.options import suggestion
from drone_bridge.ros.node.program import initialize_ros, shut_down_ros
from drone_bridge.ros.process.environment import discovery_problem
from drone_bridge.ros.type_names import name_of_type
from drone_bridge.tools.shared.discovery import DISCOVERY_S, QUIET_S
from drone_bridge.tools.shared.interfaces import UnknownTypeError, import_interface

Found = TypeVar("Found")

#: Timeout of a service, s.
ANSWER_S = 10.0
#: The same for a service that is called once, s: a takeoff or a landing takes long.
ONCE_S = 60.0
#: Time without a new name after which a name counts as absent, s, if there are other nodes: 1.5 s. Less is wrong at
#: times: DDS discovers some nodes a second after others.
ABSENT_S = 0.15 * DISCOVERY_S
_LOOK_S = 0.1
#: Exit status if something was not found, refused or invalid.
FAILED = 1

_interrupted = threading.Event()


class CommandFailedError(Exception):
    """Failure of a command. The text is a sentence."""


def run(verb: str, argv: Sequence[str] | None, serve: Callable[[Node], int]) -> int:
    """Execute a command with a new node, or by `ros2` if it is installed and has it. Returns the exit status."""
    if argv is not None and (ros2 := shutil.which("ros2")):
        print(f"With ROS 2 installed, this is: ros2 {verb} {' '.join(argv)}", file=sys.stderr, flush=True)
        os.execv(ros2, [ros2, verb, *argv])
    signal.signal(signal.SIGINT, lambda *_: _interrupted.set())
    initialize_ros([])
    node = rclpy.create_node(f"drone_bridge_{verb}_{os.getpid()}")
    try:
        return serve(node)
    except (CommandFailedError, UnknownTypeError) as error:
        print(f"drone-bridge {verb}: {error}", file=sys.stderr)
        return FAILED
    finally:
        if len(node.get_node_names()) <= 1 and (problem := discovery_problem()):
            print(f"drone-bridge {verb}: {problem}", file=sys.stderr)
        node.destroy_node()
        shut_down_ros()


def spin_until(node: Node, condition: Callable[[], Found], timeout_s: float) -> Found:
    """Return the result of a condition once it is true, or after the timeout. Raises KeyboardInterrupt after SIGINT."""
    end_s = time.monotonic() + timeout_s
    while not (found := condition()) and (left_s := end_s - time.monotonic()) > 0:
        rclpy.spin_once(node, timeout_sec=min(left_s, _LOOK_S))
        if _interrupted.is_set():
            raise KeyboardInterrupt
    return found


def resolved(node: Node, name: str) -> str:
    """Return the full name of a topic or service. Raises CommandFailedError."""
    try:
        return str(node.resolve_topic_name(name))
    except (RuntimeError, ValueError):
        raise CommandFailedError(
            f"'{name}' is not a name in ROS: letters, digits, underscores and slashes, and no digit after a slash."
        ) from None


def discovered(node: Node, names_and_types: Callable[[], Any], wanted: str = "") -> list[tuple[str, list[str]]]:
    """Return the names in the ROS graph, each with its types, once no more are discovered, or after DISCOVERY_S.

    With a wanted name, as soon as that one is discovered, or after ABSENT_S without a new one.
    """
    found: list[tuple[str, list[str]]] = []
    changed_s = time.monotonic()

    def is_complete() -> bool:
        nonlocal found, changed_s
        before, found = found, sorted(names_and_types())
        if found != before:
            changed_s = time.monotonic()
        others = len(node.get_node_names()) > 1
        is_quiet = time.monotonic() - changed_s > (ABSENT_S if wanted and others else QUIET_S)
        return wanted in dict(found) or (is_quiet and (others or bool(wanted)))

    spin_until(node, is_complete, DISCOVERY_S)
    return found


def types_of(node: Node, name: str, names_and_types: Callable[[], Any], absence: str) -> list[str]:
    """Return the types of a name in the ROS graph. Raises CommandFailedError with `absence`, and with similar names."""
    found = dict(discovered(node, names_and_types, name))
    if name not in found:
        raise CommandFailedError(f"{absence}{suggestion(name, found) or '.'}")
    return found[name]


def check_type(name: str, types: Iterable[str], wanted: str) -> None:
    """Raise CommandFailedError if a name does not have the wanted type."""
    if wanted not in types:
        raise CommandFailedError(f"{name} has type {' or '.join(types)}, not {wanted}.")


def served(node: Node) -> list[tuple[str, list[str]]]:
    """Return the services that other nodes serve, each with its types. Those that only have clients are left out."""
    found: dict[str, list[str]] = {}
    for name, namespace in node.get_node_names_and_namespaces():
        with suppress(RuntimeError):  # it has just disappeared
            found |= node.get_service_names_and_types_by_node(name, namespace) if name != node.get_name() else ()
    return list(found.items())


def call(node: Node, kind: Any, service: str, request: Any, *, again_s: float = ONCE_S) -> Any:
    """Return the response of a service. Raises CommandFailedError.

    The request is retried every `again_s`, since the response to a client that the server has not discovered yet is
    lost. By default it is not retried. Only idempotent requests may be.
    """
    name, wanted = resolved(node, service), name_of_type(kind)
    types = types_of(node, name, lambda: served(node), f"No node serves {service}")
    check_type(service, types, wanted)
    client: Any = node.create_client(kind, name)
    try:
        client.wait_for_service(ANSWER_S)
        futures: list[Any] = []
        limit_s = max(ANSWER_S, again_s)
        end_s = time.monotonic() + limit_s
        while time.monotonic() < end_s:
            futures.append(client.call_async(request))
            if answered := spin_until(node, lambda: [each for each in futures if each.done()], again_s):
                return answered[0].result()
        raise CommandFailedError(f"{service} has not answered within {limit_s:g} s.")
    finally:
        node.destroy_client(client)


def imported(kind: str, name: str) -> Any:
    """Return the class of a type, package/kind/Name, or shorter package/Name. Raises UnknownTypeError."""
    package, _, rest = name.partition("/")
    return import_interface(name if "/" in rest else f"{package}/{kind}/{rest}", kind)
