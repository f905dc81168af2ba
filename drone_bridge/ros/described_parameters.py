# SPDX-License-Identifier: Apache-2.0
"""Dataclasses of described fields as ROS parameters."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from drone_bridge.described import MEANING, RANGE
from drone_bridge.ros.parameters import ParameterDeclaration

T = TypeVar("T")


def declarations(parameters: type, prefix: str) -> tuple[ParameterDeclaration, ...]:
    """Return the declaration of each field, named `prefix`.field."""
    return tuple(
        ParameterDeclaration(
            f"{prefix}.{item.name}",
            list(item.default) if isinstance(item.default, tuple) else item.default,
            item.metadata[MEANING],
            range=item.metadata[RANGE],
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
