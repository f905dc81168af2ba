# SPDX-License-Identifier: Apache-2.0
"""Dataclasses whose fields are ROS parameters: each says once what it means, its default and its range."""

from collections.abc import Callable
from dataclasses import field, fields
from typing import Any, TypeVar

from drone_bridge.bridges.parameters import ParameterDeclaration

T = TypeVar("T")
_MEANING, _RANGE = "meaning", "range"


def described(default: Any, meaning: str, low: float | None = None, high: float | None = None) -> Any:
    """Return a dataclass field with a default, a meaning that names the unit, and a range if it has one."""
    bounds = None if low is None or high is None else (low, high)
    return field(default=default, metadata={_MEANING: meaning, _RANGE: bounds})


def declarations(parameters: type, prefix: str) -> tuple[ParameterDeclaration, ...]:
    """Return the declaration of each field, named `prefix`.field."""
    return tuple(
        ParameterDeclaration(
            f"{prefix}.{item.name}",
            list(item.default) if isinstance(item.default, tuple) else item.default,
            item.metadata[_MEANING],
            range=item.metadata[_RANGE],
        )
        for item in fields(parameters)
    )


def read(parameters: Callable[..., T], prefix: str, values: Any) -> T:
    """Return the dataclass, each field with the value of its parameter; `values[name]` gives that."""
    read_values = {}
    for item in fields(parameters):  # type: ignore[arg-type]
        value = values[f"{prefix}.{item.name}"]
        read_values[item.name] = tuple(value) if isinstance(item.default, tuple) else value
    return parameters(**read_values)
