# SPDX-License-Identifier: Apache-2.0
"""value_like: value from a person, in the type of the parameter that it is for."""

from collections.abc import Callable
from typing import Any

from rcl_interfaces.msg import ParameterType, ParameterValue
from rclpy.parameter import Parameter

from drone_bridge.wire.json_numbers import is_number, whole_number


def value_like(before: ParameterValue, value: Any) -> ParameterValue:
    """Convert a value to the type of a parameter, as JSON does not distinguish 1 from 1.0, or types of lists.

    A value of another type is left to the node to refuse. Raises TypeError, ValueError and AssertionError for one that
    no parameter can have.
    """
    write = _WRITTEN.get(before.type, lambda each: each)
    value = [write(each) for each in value] if isinstance(value, list) else write(value)
    kind = Parameter.Type(before.type) if value == [] else None
    return Parameter("value", kind, value).get_parameter_value()


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
