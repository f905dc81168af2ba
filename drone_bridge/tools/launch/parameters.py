# SPDX-License-Identifier: Apache-2.0
"""The <param> children of a node: values typed by the rules of YAML, as files that rcl reads.

A value is read as YAML. Where it, or an item of a list, has substitutions, they are performed and the result is
read as YAML once more, so that value="$(var rate)" is a number when the argument is one. `type` asks for a type.
"""

from collections.abc import Iterator
from pathlib import Path

import yaml

from drone_bridge.tools.launch import substitutions
from drone_bridge.tools.launch.parse import Element
from drone_bridge.tools.launch.substitutions import Scope, SubstitutionError

Scalar = bool | int | float | str
Value = Scalar | list[Scalar]

_TYPES: dict[str, type] = {"str": str, "bool": bool, "int": int, "float": float}
_SCALARS = (str, bool, int, float)


def parameter_file(element: Element, scope: Scope, node: str | None) -> str:
    """Return the text of the parameter file for one <param name=...>.

    `node` is the node's name with its namespace, or None when one of them is not known; then the parameter goes to
    every node of the process. Raises SubstitutionError.
    """
    values = dict(_flatten(element, scope, prefix=""))
    text: str = yaml.dump({node or "/**": {"ros__parameters": values}}, default_flow_style=False)
    return text


def substituted_file(path: Path, scope: Scope) -> str:
    """Return the text of a parameter file with its substitutions performed. Raises SubstitutionError and OSError."""
    text = substitutions.perform(substitutions.parse(path.read_text()), scope)
    try:
        yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SubstitutionError(f"{path} is not YAML after its substitutions: {error}") from error
    return text


def _flatten(element: Element, scope: Scope, prefix: str) -> Iterator[tuple[str, Value]]:
    """Yield the parameter, or the nested ones with their names joined by dots."""
    if "name" not in element.attributes or "from" in element.attributes or "allow_substs" in element.attributes:
        raise SubstitutionError("<param> takes either 'name' or, at the top, 'from' with 'allow_substs'")
    if ("value" in element.attributes) == bool(element.children):
        raise SubstitutionError("<param> takes either 'value' or nested <param>")
    name = prefix + substitutions.perform(element.templates["name"], scope)
    if not element.children:
        yield name, typed_value(element.attributes["value"], element.attributes.get("type"), scope)
    elif "type" in element.attributes:
        raise SubstitutionError("'type' belongs to a <param> with 'value'")
    for child in element.children:
        yield from _flatten(child, scope, prefix=f"{name}.")


def typed_value(text: str, wanted: str | None, scope: Scope) -> Value:
    """Return the value that `text` has for the `type` given. Raises SubstitutionError."""
    if wanted is not None and wanted != "yaml" and wanted.removeprefix("list_of_") not in _TYPES:
        names = ", ".join([*_TYPES, *(f"list_of_{name}" for name in _TYPES), "yaml"])
        raise SubstitutionError(f"there is no parameter type '{wanted}'; there are {names}")
    is_list = wanted is not None and wanted.startswith("list_of_")
    item_type = _TYPES.get(wanted.removeprefix("list_of_")) if wanted else None
    if is_list or item_type is None:
        first = _read(text)
        if isinstance(first, list):
            return _uniform([_performed(item, item_type, scope) for item in first], text, item_type)
        value = _performed(first, None, scope)
        if isinstance(value, list):
            return _uniform(value, text, item_type)
        if not is_list:
            return value
        raise SubstitutionError(f"'{text}' is not a list")
    value = _performed(text, item_type, scope)
    if isinstance(value, list):
        raise SubstitutionError(f"'{text}' is a list, not {wanted}")
    return value


def _performed(item: object, wanted: type | None, scope: Scope) -> Value:
    """Perform the substitutions in a text, and read what comes of it; anything else is left as it is."""
    if not isinstance(item, str):
        return _checked(item)
    template = substitutions.parse(item)
    text = substitutions.perform(template, scope)
    if substitutions.is_plain(template) and wanted is None:
        return text
    return _coerced(text, wanted)


def _coerced(text: str, wanted: type | None) -> Value:
    if wanted is str or (wanted is None and not text):
        return text
    try:
        if wanted is bool:
            return substitutions.truth(text)
        if wanted is not None:
            number: Scalar = wanted(text)
            return number
        return _checked(yaml.safe_load(text))
    except (ValueError, yaml.YAMLError) as error:
        expected = "YAML" if wanted is None else wanted.__name__
        raise SubstitutionError(f"'{text}' cannot be read as {expected}: {error}") from error


def _read(text: str) -> object:
    """Read a value as it is written; what is not YAML yet may become so by its substitutions."""
    if not text:
        return text
    try:
        return _checked(yaml.safe_load(text))
    except yaml.YAMLError:
        return text


def _checked(value: object) -> Value:
    """Refuse what is no parameter value."""
    if isinstance(value, list) and all(isinstance(item, _SCALARS) for item in value):
        return value
    if isinstance(value, _SCALARS):
        return value
    kind = "nothing" if value is None else type(value).__name__
    raise SubstitutionError(f"YAML reads '{value}' as {kind}; a parameter is a bool, int, float, str or a list of one")


def _uniform(items: list[Scalar] | list[Value], text: str, wanted: type | None) -> list[Scalar]:
    """Refuse a list of mixed types."""
    kind = wanted or (type(items[0]) if items else str)
    scalars = [item for item in items if not isinstance(item, list) and type(item) is kind]
    if len(scalars) != len(items):
        raise SubstitutionError(f"the items of '{text}' are not all {kind.__name__}")
    return scalars
