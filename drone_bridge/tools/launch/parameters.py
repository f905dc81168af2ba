# SPDX-License-Identifier: Apache-2.0
"""The <param> children of a node: values typed by the rules of YAML, as files that rcl reads.

A value is read as YAML. Where it, or an item of a list, has substitutions, they are performed and the result is
read as YAML once more, so that value="$(var rate)" is a number when the argument is one. `type` asks for a type.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from drone_bridge.kind import kinds
from drone_bridge.programs.options import suggestion
from drone_bridge.ros.parameter_files import is_of_every_node, sections
from drone_bridge.tools.launch import substitutions, yaml_text
from drone_bridge.tools.launch.parse import Element, read_file
from drone_bridge.tools.launch.substitutions import Scope, SubstitutionError

Scalar = bool | int | float | str
Value = Scalar | list[Scalar]
Scalars = type[str] | type[bool] | type[int] | type[float]

#: What a parameter file has to look like.
_FORM = "write 'node: {ros__parameters: {name: value}}'"
_SCALARS = (str, bool, int, float)
_LARGEST_PORT = 65535
#: What a text is not that can't be read as one of them.
_WORDS: dict[Scalars | None, str] = {int: "a whole number", float: "a number", str: "text", None: "YAML"}
#: What `type` may be, None for any type.
_TYPES: dict[str | None, Scalars | None] = {**{kind.__name__: kind for kind in _SCALARS}, "yaml": None, None: None}


def parameter_file(element: Element, scope: Scope, node: str | None) -> str:
    """Return the text of the parameter file for one <param name=...>.

    `node` is the node's name with its namespace, or None when one of them is not known; then the parameter goes to
    every node of the process. Raises SubstitutionError.
    """
    if element.attributes.keys() - {"type"} != {"name", "value"}:
        raise SubstitutionError("<param> takes either 'name' with 'value', and 'type', or 'from'")
    name = substitutions.perform(element.templates["name"], scope)
    values = {name: typed_value(element.attributes["value"], element.attributes.get("type"), scope)}
    text: str = yaml.dump({node or "/**": {"ros__parameters": values}}, default_flow_style=False)
    return text


def unused(path: Path, nodes: Mapping[str, Collection[str] | None]) -> Iterator[str]:
    """Yield a sentence for each entry of a parameter file, which has been checked, that none of these nodes takes.

    What is given to one node by its name is that node's to complain about.

    Args:
        path: the file.
        nodes: the parameters of each node by its full name, or None where they are not known.
    """
    for section in sections(yaml_text.read(_text_of(path)) or {}):
        addressed = [declared for node, declared in nodes.items() if section.is_for(node)]
        if not addressed:
            yield f"{path}: '{section.pattern}' names no node of this launch; there are {', '.join(nodes)}"
            continue
        known = {name for declared in addressed for name in declared or ()}
        for name in section.names if section.is_for_several and None not in addressed else ():
            if name not in known and not is_of_every_node(name):
                yield (
                    f"{path}: no node that '{section.pattern}' names has a parameter '{name}'{suggestion(name, known)}"
                )


def declared_by(executable: str) -> Collection[str] | None:
    """Return the parameters of a node of this package by its executable; None for others."""
    for kind in kinds().values():
        controller = kind.controller.node.partition(":")[0].rpartition(".")[2]
        nodes = {f"{kind.name}_bridge": kind.bridge, f"{kind.name}_server": kind.server, controller: kind.controller}
        if executable in nodes:
            try:
                return nodes[executable].declarations
            except ImportError:  # the node says so itself
                return None
    return None


def _text_of(path: Path) -> str:
    try:
        return read_file(path).decode()
    except UnicodeDecodeError as error:
        raise SubstitutionError(f"{path} is not text in UTF-8: {error}") from error


def check_file(path: Path) -> None:
    """Refuse a parameter file that no node could read. Raises SubstitutionError and OSError."""
    text = _text_of(path)
    try:
        nodes = yaml_text.read(text)
    except yaml.YAMLError as error:
        raise SubstitutionError(yaml_text.refusal(path, error)) from error
    if nodes is not None and not isinstance(nodes, dict):
        raise SubstitutionError(f"{path} holds no parameters: {_FORM}")
    for name in _above_parameters(nodes):
        raise SubstitutionError(f"{path}: '{name}' stands above ros__parameters: {_FORM}")


def _above_parameters(content: object) -> Iterator[str]:
    """Yield the names of values that belong to no node, which rcl refuses by their line alone."""
    for name, value in content.items() if isinstance(content, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _above_parameters(value) if name != "ros__parameters" else ()
        elif value is not None:
            yield str(name)


def check_ports(text: str) -> None:
    """Refuse the parameters of a node of this package with a port that can't be. Raises SubstitutionError."""
    for section in yaml_text.read(text).values():
        for name, value in section["ros__parameters"].items():
            if name.rpartition("_")[2] == "port" and isinstance(value, int) and not 0 <= value <= _LARGEST_PORT:
                raise SubstitutionError(f"{name} has to be from 0 to {_LARGEST_PORT}, not {value}")


def typed_value(text: str, wanted: str | None, scope: Scope) -> Value:
    """Return the value that `text` has for the `type` given. Raises SubstitutionError."""
    if wanted not in _TYPES:
        raise SubstitutionError(f"there is no parameter type '{wanted}'; there are {', '.join(filter(None, _TYPES))}")
    if scalar := _TYPES[wanted]:
        return _coerced(substitutions.perform(substitutions.parse(text), scope), scalar)
    value = _read(text)
    if isinstance(value, list):
        return _uniform([_performed(i, scope) if isinstance(i, str) else i for i in value], text)
    if isinstance(value, str):
        value = _performed(value, scope)
    return _uniform(value, text) if isinstance(value, list) else value


def _uniform(items: Sequence[Value], text: str) -> list[Scalar]:
    """Refuse a list of mixed or other types."""
    kinds = {type(item) for item in items}
    if len(kinds) > 1 or not kinds <= set(_SCALARS):
        raise SubstitutionError(f"the items of '{text}' are not all of one type")
    return [item for item in items if not isinstance(item, list)]


def _read(text: str) -> Value:
    """Read a value as it is written; what is not YAML yet may become so by its substitutions."""
    try:
        return _checked(yaml_text.read(text)) if text else text
    except yaml_text.RefusedYamlError as error:
        raise SubstitutionError(str(error)) from error
    except yaml.YAMLError:
        return text


def _performed(text: str, scope: Scope) -> Value:
    """Perform the substitutions in a text and read the result; a text that has none is one already."""
    template = substitutions.parse(text)
    result = substitutions.perform(template, scope)
    return result if substitutions.is_plain(template) else _coerced(result, None)


def _coerced(text: str, wanted: Scalars | None) -> Value:
    """Read a text as the wanted type, or as YAML."""
    if wanted is bool:
        return substitutions.truth(text)
    if wanted is None and not text:
        return text
    try:
        value = yaml_text.read(text) if wanted is None else wanted(text)
    except (ValueError, yaml.YAMLError) as error:
        why = "" if wanted else f": {error}"
        raise SubstitutionError(f"'{text}' is not {_WORDS[wanted]}{why}") from error
    return _checked(value)


def _checked(value: object) -> Value:
    """Refuse anything that is not a parameter value."""
    if isinstance(value, _SCALARS) or (isinstance(value, list) and all(isinstance(item, _SCALARS) for item in value)):
        return value
    kind = "nothing" if value is None else type(value).__name__
    raise SubstitutionError(f"YAML reads '{value}' as {kind}; a parameter is a bool, int, float, str or a list of one")
