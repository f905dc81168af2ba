# SPDX-License-Identifier: Apache-2.0
"""Parameters of nodes: parameter files for rcl from <param> tags, and checks of given ones."""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from drone_bridge.kind import kinds
from drone_bridge.programs.options import suggestion
from drone_bridge.ros.node.parameter_files import is_of_every_node, sections
from drone_bridge.tools.launch import substitutions
from drone_bridge.tools.launch.parse import Element
from drone_bridge.tools.launch.substitutions import Scope, SubstitutionError

Scalar = bool | int | float | str
Value = Scalar | list[Scalar]

#: Expected format of a parameter file.
_FORM = "write 'node: {ros__parameters: {name: value}}'"
_SCALARS = (str, bool, int, float)
_LARGEST_PORT = 65535
#: Parser and name of each parameter type.
_TYPES: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "str": (str, "text"),
    "bool": (substitutions.truth, "true or false"),
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "yaml": (yaml.safe_load, "YAML"),
}


def parameter_file(element: Element, scope: Scope, node: str | None) -> str:
    """Return the text of the parameter file for one <param name=...>.

    `node` is the node's full name. With None, for an unknown name or namespace, the parameter applies to all nodes of
    the process. Raises SubstitutionError.
    """
    if element.attributes.keys() == {"name", "value"}:
        raise SubstitutionError(f"<param> needs a 'type', one of {', '.join(_TYPES)}; only ros2 launch guesses it")
    if element.attributes.keys() != {"name", "value", "type"}:
        raise SubstitutionError("<param> takes 'name', 'value' and 'type', or 'from'")
    name, value = (substitutions.perform(element.attributes[each], scope) for each in ("name", "value"))
    typed = typed_value(value, element.attributes["type"])
    if name.rpartition("_")[2] == "port" and isinstance(typed, int) and not 0 <= typed <= _LARGEST_PORT:
        raise SubstitutionError(f"{name} must be from 0 to {_LARGEST_PORT}, not {typed}")
    text: str = yaml.dump({node or "/**": {"ros__parameters": {name: typed}}}, default_flow_style=False)
    return text


def unused(path: Path, nodes: Mapping[str, Collection[str] | None]) -> Iterator[str]:
    """Yield a sentence for each entry of a checked parameter file that no node uses.

    Parameters in the section of a single node are not checked here, since that node reports them itself.

    Args:
        path: the file.
        nodes: parameters of each node by its full name; None: unknown.
    """
    for section in sections(yaml.safe_load(path.read_text()) or {}):
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
    """Return the parameters of a node of this package by its executable, or None for other nodes."""
    for kind in kinds().values():
        nodes = {f"{kind.name}_bridge": kind.bridge, f"{kind.name}_server": kind.server}
        if kind.controller:
            nodes[kind.controller.node.partition(":")[0].rpartition(".")[2]] = kind.controller
        if node := nodes.get(executable):
            try:
                return node.declarations
            except ImportError:  # reported by the node itself
                return None
    return None


def check_file(path: Path) -> None:
    """Validate the format of a parameter file. Raises SubstitutionError and OSError."""
    try:
        nodes = yaml.safe_load(path.read_text())
    except (ValueError, yaml.YAMLError) as error:
        raise SubstitutionError(f"{path}: this is not YAML: {' '.join(str(error).split())}") from error
    if nodes is not None and not isinstance(nodes, dict):
        raise SubstitutionError(f"{path} holds no parameters: {_FORM}")
    for name in _above_parameters(nodes):
        raise SubstitutionError(f"{path}: '{name}' stands above ros__parameters: {_FORM}")


def _above_parameters(content: object) -> Iterator[str]:
    """Yield the names of values outside any node, for which rcl's error has only the line."""
    for name, value in content.items() if isinstance(content, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _above_parameters(value) if name != "ros__parameters" else ()
        elif value is not None:
            yield str(name)


def typed_value(text: str, wanted: str) -> Value:
    """Parse a text as a value of a parameter type. Raises SubstitutionError."""
    if wanted not in _TYPES:
        raise SubstitutionError(f"there is no parameter type '{wanted}'; there are {', '.join(_TYPES)}")
    read, name = _TYPES[wanted]
    try:
        value: Value = read(text)
    except (ValueError, yaml.YAMLError) as error:
        raise SubstitutionError(f"'{text}' is not {name}") from error
    items = value if isinstance(value, list) else [value]
    if len({type(item) for item in items}) > 1 or not all(isinstance(item, _SCALARS) for item in items):
        raise SubstitutionError(f"'{text}' is neither a bool, int, float or str nor a list of one of them")
    return value
