# SPDX-License-Identifier: Apache-2.0
"""Dataclass fields with a description and allowed values, from which ROS parameters are declared."""

from collections.abc import Callable
from dataclasses import field
from typing import Any


def parameter(
    default: Any,
    meaning: str,
    *bounds: float,
    choices: tuple[Any, ...] = (),
    live: bool = False,
    check: Callable[[Any], str | None] | None = None,
) -> Any:
    """Return a dataclass field with a default, a description that names the unit, and least and largest value, if any.

    The other arguments are those of `ros.node.parameters.ParameterDeclaration`.
    """
    more = {"range": bounds or None, "choices": choices, "live": live, "check": check}
    return field(default=default, metadata={"meaning": meaning, **more})
