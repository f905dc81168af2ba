# SPDX-License-Identifier: Apache-2.0
"""DeclaredParameters: a node's parameters, with descriptors, and with a sentence for each refused value."""

import difflib
import json
import math
import sys
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import InvalidParameterTypeException, ParameterException
from rclpy.node import Node
from rclpy.parameter import Parameter

from drone_bridge.ros.distributions import call_before_set
from drone_bridge.ros.node.parameter_files import unaddressed, unknown
from drone_bridge.ros.node.parameter_values import parameter_like

T = TypeVar("T")

UNCONFIGURED = "unconfigured"
#: Types of values in sentences.
_NOUNS = {bool: "true or false", int: "a whole number", float: "a number", str: "text, in quotes", list: "a list"}


@dataclass(frozen=True, slots=True)
class ParameterDeclaration:
    """Declaration of one parameter, with its default and range.

    A parameter that is not `live` is read when the node is configured, and can be changed only while unconfigured.
    """

    name: str
    default: Any
    meaning: str
    range: tuple[float, float] | None = None
    choices: tuple[Any, ...] = ()
    live: bool = False
    read_only: bool = False
    check: Callable[[Any], str | None] | None = None  # returns the predicate of an error sentence, or None
    replaces: tuple[str, ...] = ()
    """Former parameters, or groups ending in a dot, that are refused: ignoring them would change the motion."""

    def typed(self, parameter: "Parameter[Any]") -> "Parameter[Any]":
        """Return a parameter with this parameter's type: 1 is 1.0, and an empty list has elements of this type.

        An empty list in YAML has no element type. From a command line or a file, rcl makes it a parameter that is not
        set, and `ros2 param set` makes it an empty list of bool. Raises ValueError for a value of another type.
        """
        given = list(parameter.value) if isinstance(parameter.value, (array, tuple)) else parameter.value
        kind = Parameter.Type.from_parameter_value(self.default)
        if isinstance(self.default, list) or given != []:
            typed = parameter_like(self.name, kind.value, given)
            if typed.type_ == kind:
                return typed
        raise ValueError(f"{self.name} is {given!r} but must be {_NOUNS[type(self.default)]}, as {self.default!r}.")

    def empty(self) -> "Parameter[Any]":
        """Return an empty list of this parameter's type, which is a list."""
        return Parameter(self.name, Parameter.Type.from_parameter_value(self.default), [])

    def descriptor(self) -> ParameterDescriptor:
        """Return the descriptor for `ros2 param describe`."""
        descriptor = ParameterDescriptor(description=self.meaning, read_only=self.read_only)
        choices = f"One of {', '.join(map(str, self.choices))}. " if self.choices else ""
        # Descriptors have no field for the default, by which the page detects changes.
        descriptor.additional_constraints = f"{choices}Default: {json.dumps(self.default)}."
        if self.range and isinstance(self.default, float):
            descriptor.floating_point_range = [FloatingPointRange(from_value=self.range[0], to_value=self.range[1])]
        elif self.range:
            low, high = map(int, self.range)
            descriptor.integer_range = [IntegerRange(from_value=low, to_value=high, step=1)]
        return descriptor

    def problem_with(self, value: Any, frozen: str) -> str | None:
        """Return why a value is refused, or None. `frozen` is why only live parameters can change, or empty."""
        if isinstance(value, float) and not math.isfinite(value):  # ROS's range check accepts nan
            return f"{self.name} is {value} but must be a finite number."
        if self.choices and value not in self.choices:
            return f"{self.name} is {value!r} but must be one of {', '.join(map(str, self.choices))}."
        if self.check and (problem := self.check(value)):
            return f"{self.name} {problem}"
        if frozen and not self.live:
            return f"{self.name} can be changed only {frozen}."
        return None


class _Live:
    """Present values of parameters, as attributes."""

    def __init__(self, parameters: "DeclaredParameters") -> None:
        self._parameters = parameters

    def __getattr__(self, name: str) -> Any:
        return self._parameters[name]


class DeclaredParameters:
    """Declared parameters of a node."""

    def __init__(self, node: Node, declarations: Iterable[ParameterDeclaration], *, keep_refused: bool = False) -> None:
        """Declare all parameters, and warn of overrides for undeclared ones.

        Raises ValueError and rclpy's exceptions for refused values. With `keep_refused` the errors are stored in
        `refused` instead, and such a parameter has its default until it is set.
        """
        self._node = node
        self._declarations = {declaration.name: declaration for declaration in declarations}
        self._frozen = ""
        self._of_wrong_type: dict[str, str] = {}  # errors of the present request, which rclpy would not word so
        #: Errors of refused initial values, by name, until the parameter is set.
        self.refused: dict[str, str] = {}
        for declaration in self._declarations.values():
            try:
                self._declare(declaration, ignore_override=declaration.read_only)
            except (ParameterException, ValueError) as error:
                if not keep_refused:
                    raise
                self.refused[declaration.name] = str(error)
                if node.has_parameter(declaration.name):
                    node.undeclare_parameter(declaration.name)
                self._declare(declaration, ignore_override=True)
        node.add_on_set_parameters_callback(self._check)
        call_before_set(node, self._typed)
        names = {*unknown(sys.argv, node.get_fully_qualified_name(), self._declarations)}
        replaced = {name: sentence for name in sorted(names) if (sentence := self._replaced(name))}
        if replaced and not keep_refused:
            raise ValueError(" ".join(replaced.values()))
        self.refused |= replaced
        names -= replaced.keys()
        ignored = [*unaddressed(sys.argv, node.get_fully_qualified_name())]
        for sentence in [*ignored, *([self._unknown(sorted(names))] if names else ())]:
            node.get_logger().warning(sentence)

    def _replaced(self, name: str) -> str | None:
        """Return the error sentence for a parameter that was replaced, or None."""
        for each in self._declarations.values():
            if any(name == old or (old.endswith(".") and name.startswith(old)) for old in each.replaces):
                return f"There is no {name} any more: set {each.name} ({each.meaning.rstrip('.')})."
        return None

    def _unknown(self, names: Iterable[str]) -> str:
        """Return the warning about overrides of undeclared parameters."""
        named = []
        for name in names:
            close = difflib.get_close_matches(name, self._declarations, n=1)
            named.append(f"{name} (did you mean {close[0]}?)" if close else name)
        return f"There is no parameter {', '.join(named)} here: its value is ignored."

    def _declare(self, declaration: ParameterDeclaration, *, ignore_override: bool) -> None:
        name, default = declaration.name, declaration.default
        try:
            declared = self._node.declare_parameter(
                name, default, declaration.descriptor(), ignore_override=ignore_override
            )
        except InvalidParameterTypeException:
            given = self._node.declare_parameter(name, default, ParameterDescriptor(dynamic_typing=True))
            self._node.undeclare_parameter(name)
            value = declaration.typed(given).value
            declared = self._node.declare_parameter(name, value, declaration.descriptor(), ignore_override=True)
        if declared.type_ == Parameter.Type.NOT_SET:
            if not isinstance(declaration.default, list):
                raise ValueError(f"{name} is [] but must be one value, as {default!r}.")
            self._node.set_parameters([declaration.empty()])
        if problem := declaration.problem_with(self[name], self._frozen):
            raise ValueError(problem)

    def __getitem__(self, name: str) -> Any:
        return self._node.get_parameter(name).value

    def __contains__(self, name: object) -> bool:
        return name in self._declarations

    def values(self) -> dict[str, Any]:
        """Return the values of all parameters by name."""
        return {name: self[name] for name in self._declarations}

    def live(self, kind: type[T]) -> T:
        """Return an object with the attributes of this dataclass, which are the parameters' present values."""
        assert {each.name for each in fields(kind)} <= {*self._declarations}, kind  # type: ignore[arg-type]
        return cast(T, _Live(self))

    def freeze(self, state: str) -> None:
        """Set the lifecycle state, which determines which parameters can change."""
        self.freeze_because(
            f"while the node is {UNCONFIGURED}, and it is {state}: deactivate and clean it up first"
            if state != UNCONFIGURED
            else ""
        )

    def freeze_because(self, reason: str) -> None:
        """Set the reason why parameters can't change, as in 'before ..., and ...'. Empty means they can."""
        self._frozen = reason

    @property
    def are_frozen(self) -> bool:
        """Whether only live parameters can change."""
        return bool(self._frozen)

    def publish(self, name: str, value: Any) -> None:
        """Set a read-only parameter from the node itself."""
        descriptor = self._node.describe_parameter(name)
        descriptor.read_only = False  # rclpy has no other way, and keeps this very object
        result = self._node.set_parameters([Parameter(name, value=value)])[0]
        descriptor.read_only = True
        if not result.successful:
            raise RuntimeError(f"{name} could not be set to {value}: {result.reason}")

    def _typed(self, parameters: "list[Parameter[Any]]") -> "list[Parameter[Any]]":
        self._of_wrong_type = {}
        return [self._typed_one(each) if each.name in self._declarations else each for each in parameters]

    def _typed_one(self, parameter: "Parameter[Any]") -> "Parameter[Any]":
        """Return a parameter with its declared type. For a value of another type, return the present one."""
        try:
            return self._declarations[parameter.name].typed(parameter)
        except ValueError as error:
            self._of_wrong_type[parameter.name] = str(error)
            return self._node.get_parameter(parameter.name)

    def _check(self, parameters: "list[Parameter[Any]]") -> SetParametersResult:
        for parameter in parameters:
            declaration = self._declarations.get(parameter.name)
            if declaration is None or declaration.read_only:
                continue  # rclpy itself refuses read-only parameters
            wrong = self._of_wrong_type.get(parameter.name)
            if problem := wrong or declaration.problem_with(parameter.value, self._frozen):
                return SetParametersResult(successful=False, reason=problem)
        return SetParametersResult(successful=True)


def has_value(node: Node, parameter: "Parameter[Any]") -> bool:
    """Return whether a parameter already has this value."""
    if not node.has_parameter(parameter.name):
        return False
    present = node.get_parameter(parameter.name)
    if _is_empty_list(present.value) and _is_empty_list(parameter.value):  # of any type, see `typed`
        return True
    return bool(present.get_parameter_value() == parameter.get_parameter_value())


def _is_empty_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, array)) and not len(value)


# Dataclasses with parameter fields as ROS parameters.


def declarations(parameters: type, prefix: str = "") -> tuple[ParameterDeclaration, ...]:
    """Return a declaration, named `prefix`.field, of each parameter field; not of the other fields."""
    return tuple(
        ParameterDeclaration(
            f"{prefix}.{item.name}".removeprefix("."),
            list(item.default) if isinstance(item.default, tuple) else item.default,
            **item.metadata,
        )
        for item in fields(parameters)
        if item.metadata
    )


def read(parameters: Callable[..., T], values: Any, prefix: str = "") -> T:
    """Create the dataclass, each field with the value of its parameter, or with its default if there is none.

    Args:
        parameters: the dataclass.
        values: a mapping from names to values, such as DeclaredParameters.
        prefix: the prefix of the parameters' names.
    """
    read_values = {}
    for item in fields(parameters):  # type: ignore[arg-type]
        if (name := f"{prefix}.{item.name}".removeprefix(".")) in values:
            value = values[name]
            read_values[item.name] = tuple(value) if isinstance(item.default, tuple) else value
    return parameters(**read_values)
