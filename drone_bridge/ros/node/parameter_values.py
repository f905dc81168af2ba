# SPDX-License-Identifier: Apache-2.0
"""parameter_like: value from a person, in the type of the parameter that it is for."""

from array import array
from collections.abc import Callable
from typing import Any

from rcl_interfaces.msg import ParameterType
from rclpy.parameter import Parameter

from drone_bridge.wire.json_numbers import is_number, whole_number


def parameter_like(name: str, kind: int, value: Any) -> "Parameter[Any]":
    """Return a parameter with a value converted to its type, as JSON and YAML have 1 for 1.0, and lists without a type.

    `kind` is one of ParameterType. A value of another type is not converted. Raises TypeError, ValueError and
    AssertionError for one that no parameter can have.
    """
    write = _WRITTEN.get(kind, lambda each: each)
    value = [write(each) for each in value] if isinstance(value, (list, tuple, array)) else write(value)
    return Parameter(name, Parameter.Type(kind) if value == [] else None, value)


def _as_double(value: Any) -> Any:
    return float(value) if is_number(value) else value


def _as_integer(value: Any) -> Any:
    whole = whole_number(value)
    return value if whole is None else whole


_WRITTEN: dict[int, Callable[[Any], Any]] = {
    ParameterType.PARAMETER_DOUBLE: _as_double,
    ParameterType.PARAMETER_DOUBLE_ARRAY: _as_double,
    ParameterType.PARAMETER_INTEGER: _as_integer,
    ParameterType.PARAMETER_INTEGER_ARRAY: _as_integer,
}
