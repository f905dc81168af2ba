# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge param`: list, get and set parameters of a node."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters, ListParameters, SetParameters
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python

from drone_bridge.programs.options import suggestion
from drone_bridge.ros.node.parameter_values import parameter_like
from drone_bridge.tools.command_parser import CommandParser
from drone_bridge.tools.shell.messages import parse
from drone_bridge.tools.shell.node import CommandFailedError, call, run

_ask = partial(call, again_s=1.0)


def main(argv: Sequence[str]) -> int:
    """Run the command. Returns the exit status."""
    parser = CommandParser(prog="drone-bridge param", description="List, get or set parameters of a node.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    for name, summary in (("list", "its parameters"), ("get", "a parameter's value"), ("set", "change a parameter")):
        verb = verbs.add_parser(name, help=summary)
        verb.add_argument("node", help="such as /robot_bridge")
        if name != "list":
            verb.add_argument("parameter")
        if name == "set":
            verb.add_argument("value", help="as YAML")
    words = parser.parse_args(argv)
    serve: dict[str, Callable[[Node, Any], int]] = {"list": _list, "get": _get, "set": _set}
    return run("param", argv, lambda node: serve[words.verb](node, words))


def _list(node: Node, words: Any) -> int:
    answer = _ask(node, ListParameters, f"{words.node}/list_parameters", ListParameters.Request())
    print("\n".join(sorted(answer.result.names)))
    return 0


def _absence(node: Node, words: Any) -> CommandFailedError:
    there = _ask(node, ListParameters, f"{words.node}/list_parameters", ListParameters.Request()).result.names
    return CommandFailedError(
        f"{words.node} has no parameter {words.parameter}{suggestion(words.parameter, there) or '.'}"
    )


def _get(node: Node, words: Any) -> int:
    request = GetParameters.Request(names=[words.parameter])
    values = _ask(node, GetParameters, f"{words.node}/get_parameters", request).values
    if not values or not values[0].type:
        raise _absence(node, words)
    print(parameter_value_to_python(values[0]))
    return 0


def _set(node: Node, words: Any) -> int:
    request = GetParameters.Request(names=[words.parameter])
    present = _ask(node, GetParameters, f"{words.node}/get_parameters", request).values
    try:
        kind = present[0].type if present else ParameterType.PARAMETER_NOT_SET
        change = parameter_like(words.parameter, kind, parse(words.value)).to_parameter_msg()
    except (TypeError, ValueError, AssertionError, OverflowError):
        raise CommandFailedError(
            f"'{words.value}' is not a parameter value: it must be a number, a text, a bool, or a list."
        ) from None
    request = SetParameters.Request(parameters=[change])
    (result,) = _ask(node, SetParameters, f"{words.node}/set_parameters", request).results
    if not result.successful:
        if "undeclared" in result.reason:  # rclpy does not name it
            raise _absence(node, words)
        raise CommandFailedError(f"{words.node} refused: {result.reason}")
    return 0
