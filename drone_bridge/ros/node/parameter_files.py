# SPDX-License-Identifier: Apache-2.0
"""Parameter overrides from files and command lines, and detection of those that a node does not declare.

rcl silently ignores an override of an undeclared parameter, such as a misspelt or removed one, and all arguments that
are not after --ros-args.
"""

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

#: Set by launch files: the path of the file in their argument params_file.
LAUNCH_FILE = "DRONE_BRIDGE_PARAMS_FILE"
#: Pattern of an override without a node name. A process here has one node.
_THIS = ""
#: Names that remapping gives a node, with their patterns and rules.
_NODE_NAMES = dict.fromkeys(("__node", "__name"), (r"[A-Za-z_]\w*", "letters, digits and underscores, no digit first"))
_NODE_NAMES["__ns"] = r"/|(/[A-Za-z_]\w*)+", "a slash before each name of letters, digits and underscores"


class Section(NamedTuple):
    """Names of the parameters that a file sets for the nodes of one pattern."""

    pattern: str
    names: tuple[str, ...]

    @property
    def is_for_several(self) -> bool:
        """Whether the pattern may match several nodes, each with its own subset of the parameters."""
        return self.pattern.endswith("*")

    def is_for(self, node: str) -> bool:
        """Return whether the pattern matches a node's full name, as in rcl: * is one token, ** any number."""
        if self.pattern == _THIS:
            return True
        parts = {"**": "(/[^/]+)*", "*": "/[^/]+"}
        expression = (parts.get(part, f"/{re.escape(part)}") for part in self.pattern.strip("/").split("/"))
        return re.fullmatch("".join(expression), node) is not None


def check_launch_file() -> None:
    """Raise ValueError if the parameter file of the launch is missing or unreadable, which `ros2 launch` ignores."""
    if path := os.environ.get(LAUNCH_FILE):
        try:
            with open(path, "rb"):
                pass
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ValueError(
                f"The parameter file {path} (params_file) can't be read: {reason}. Without its limits, no node starts."
            ) from None


def check_arguments(words: Sequence[str]) -> None:
    """Raise ValueError for an argument of a node that ROS would ignore, and for a name of the node that it refuses."""
    for option, word in _options(words[1:]):
        if not option:
            raise ValueError(f"{word} would be ignored: write --ros-args first, as in --ros-args -p port:=9000.")
        rule, _, name = word.partition(":=")
        pattern, allowed = _NODE_NAMES.get(rule.rpartition(":")[2], ("", ""))
        if option in ("-r", "--remap") and pattern and not re.fullmatch(pattern, name, re.ASCII):
            raise ValueError(f"{word}: {name!r} is not possible. Write {allowed}.")


def parameter_arguments(values: Mapping[str, Any]) -> list[str]:
    """Return the arguments after `--ros-args` that set parameters. Texts may contain any characters."""
    # rcl parses values as YAML, a superset of JSON.
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in values.items()}
    return [word for name, text in texts.items() for word in ("-p", f"{name}:={text}")]


def sections(content: object, prefix: str = "") -> Iterator[Section]:
    """Yield the sections of a parsed parameter file."""
    for key, value in content.items() if isinstance(content, Mapping) else ():
        if key == "ros__parameters":
            yield Section(prefix or "/", tuple(_names(value)))
        else:
            yield from sections(value, f"{prefix}/{str(key).strip('/')}")


def is_of_every_node(name: str) -> bool:
    """Return whether ROS itself reads this parameter, on every node."""
    return name in ("use_sim_time", "start_type_description_service") or name.startswith("qos_overrides.")


def unknown(words: Sequence[str], node: str, declared: Collection[str]) -> Iterator[str]:
    """Yield each parameter that a command line sets for a node, and that the node has not declared.

    Of parameters for several nodes, only names in one of this node's groups are reported, such as `limits.`.

    Args:
        words: the whole command line. Only arguments after --ros-args matter.
        node: the node's full name.
        declared: the names of its parameters.
    """
    groups = {name.rpartition(".")[0] for name in declared} - {""}
    for section in _given(words):
        if section.is_for(node):
            for name in section.names:
                is_meant = not section.is_for_several or name.rpartition(".")[0] in groups
                if is_meant and name not in declared and not is_of_every_node(name):
                    yield name


def unaddressed(words: Sequence[str], node: str) -> Iterator[str]:
    """Yield a sentence for each parameter file of a command line without a section for the node.

    Launch files of this package pass their params_file to all nodes, and check it themselves.
    """
    for option, path in _options(words):
        if option == "--params-file" and path != os.environ.get(LAUNCH_FILE):
            found = [*_sections_of(Path(path))]
            if found and not any(section.is_for(node) for section in found):
                patterns = ", ".join(section.pattern for section in found)
                yield f"{path} is ignored: it has parameters for {patterns}, and none for {node}."


def _options(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the options after --ros-args with their values, and other arguments without an option."""
    is_of_ros, option = False, ""
    for word in words:
        if word in ("--ros-args", "--"):
            is_of_ros, option = word == "--ros-args", ""
        elif not is_of_ros:
            yield "", word
        elif option in ("--params-file", "-p", "--param", "-r", "--remap"):
            yield option, word
            option = ""
        else:
            option = word


def _given(words: Iterable[str]) -> Iterator[Section]:
    """Yield the sections of a command line, from its parameter files and its own arguments."""
    for option, word in _options(words):
        if option == "--params-file":
            yield from _sections_of(Path(word))
        elif option in ("-p", "--param"):
            node, _, name = word.partition(":=")[0].rpartition(":")
            yield Section(f"/**/{node}" if node else _THIS, (name,))


def _sections_of(path: Path) -> Iterator[Section]:
    try:
        yield from sections(yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader))
    except (OSError, ValueError, yaml.YAMLError):
        return  # rcl reports it


def _names(parameters: object, prefix: str = "") -> Iterator[str]:
    for key, value in parameters.items() if isinstance(parameters, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _names(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
