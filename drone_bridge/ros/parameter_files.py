# SPDX-License-Identifier: Apache-2.0
"""Parameters by name, as files and command lines give them to nodes, and which of them a node does not have.

rcl keeps silent about a parameter that a node does not declare: what is misspelt, or was removed, has no effect.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

#: The pattern of what a command line gives without naming a node: a process here has one.
_THIS = ""


class Section(NamedTuple):
    """The names of parameters that a file gives to the nodes of one pattern."""

    pattern: str
    names: tuple[str, ...]

    @property
    def is_for_several(self) -> bool:
        """Whether the pattern names no node in particular, so that each takes what it has."""
        return self.pattern.endswith("*")

    def is_for(self, node: str) -> bool:
        """Return whether a node of this full name takes them, as rcl has it: * is one part of a name, ** any number."""
        if self.pattern == _THIS:
            return True
        parts = {"**": "(/[^/]+)*", "*": "/[^/]+"}
        expression = (parts.get(part, f"/{re.escape(part)}") for part in self.pattern.strip("/").split("/"))
        return re.fullmatch("".join(expression), node) is not None


def parameter_arguments(values: Mapping[str, Any]) -> list[str]:
    """Return the words after `--ros-args` that set parameters, whatever characters a text has."""
    # rcl reads values as YAML, of which JSON is a part.
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in values.items()}
    return [word for name, text in texts.items() for word in ("-p", f"{name}:={text}")]


def sections(content: object, prefix: str = "") -> Iterator[Section]:
    """Yield the sections of a parameter file that YAML has read."""
    for key, value in content.items() if isinstance(content, Mapping) else ():
        if key == "ros__parameters":
            yield Section(prefix or "/", tuple(_names(value)))
        else:
            yield from sections(value, f"{prefix}/{str(key).strip('/')}")


def is_of_every_node(name: str) -> bool:
    """Return whether ROS itself reads this parameter."""
    return name in ("use_sim_time", "start_type_description_service") or name.startswith("qos_overrides.")


def unknown(words: Sequence[str], node: str, declared: Collection[str]) -> Iterator[str]:
    """Yield each parameter that these words of a command line give to a node, and that it has not declared.

    Of what is given to several nodes, only names in a group that this node has: its `limits.` are meant for it.

    Args:
        words: the whole command line; what counts follows --ros-args.
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


def _given(words: Iterable[str]) -> Iterator[Section]:
    """Yield what a command line gives, by its files and by itself."""
    is_of_ros, option = False, ""
    for word in words:
        if word in ("--ros-args", "--"):
            is_of_ros, option = word == "--ros-args", ""
        elif is_of_ros and option == "--params-file":
            yield from _sections_of(Path(word))
            option = ""
        elif is_of_ros and option in ("-p", "--param"):
            node, _, name = word.partition(":=")[0].rpartition(":")
            yield Section(f"/**/{node}" if node else _THIS, (name,))
            option = ""
        else:
            option = word


def _sections_of(path: Path) -> Iterator[Section]:
    try:
        yield from sections(yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader))
    except (OSError, ValueError, yaml.YAMLError):
        return  # rcl has read it, and is the one to complain


def _names(parameters: object, prefix: str = "") -> Iterator[str]:
    for key, value in parameters.items() if isinstance(parameters, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _names(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
