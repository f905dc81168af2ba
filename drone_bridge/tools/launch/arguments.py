# SPDX-License-Identifier: Apache-2.0
"""Launch arguments that a file and its includes declare, and their assignments on the command line."""

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from drone_bridge.programs.options import suggestion
from drone_bridge.tools.launch import substitutions
from drone_bridge.tools.launch.parse import Element, LaunchFileError, load
from drone_bridge.tools.launch.substitutions import Scope, SubstitutionError


@dataclass(frozen=True, slots=True)
class Argument:
    """Argument declared by an <arg> of a launch file."""

    name: str
    default: str | None  # as written, with substitutions; None: a value is required
    description: str
    choices: tuple[str, ...]

    @property
    def demand(self) -> str:
        """Error message for a missing value."""
        described = f" ({self.description})" if self.description else ""
        return f"the launch argument '{self.name}'{described} must be given"

    @classmethod
    def declared_by(cls, element: Element) -> "Argument":
        """Return the argument declared by an <arg>."""
        texts = element.attributes
        return cls(
            name=_unescaped(texts["name"]),
            default=texts.get("default"),
            description=_unescaped(texts.get("description", "")),
            choices=tuple(_unescaped(choice.attributes["value"]) for choice in element.named("choice")),
        )


def declared_in(root: Element) -> dict[str, Argument]:
    """Return the arguments that a launch file declares, also under conditions, by name.

    Arguments of includes whose path depends on an argument are missing.
    """
    found: dict[str, Argument] = {}
    _collect(root, found, {root.path})
    return found


def _collect(element: Element, found: dict[str, Argument], seen: set[Path]) -> None:
    for child in element.children:
        if child.tag == "arg":
            argument = Argument.declared_by(child)
            found.setdefault(argument.name, argument)
        elif child.tag == "group":
            _collect(child, found, seen)
        elif child.tag == "include":
            here = Scope({}, dict(os.environ), child.path.parent.absolute())
            try:
                path = Path(substitutions.perform(child.attributes["file"], here))
                if path not in seen:
                    seen.add(path)
                    _collect(load(path), found, seen)
            except (SubstitutionError, LaunchFileError):  # reported by the evaluation
                continue


def parse_assignments(words: Iterable[str]) -> dict[str, str]:
    """Parse `name:=value` words. The last value of a name wins. Raises LaunchFileError."""
    given = {}
    for word in words:
        name, separator, value = word.partition(":=")
        if not name or not separator or not value:
            name, equals, value = word.partition("=")
            meant = f"did you mean '{name}:={value}'?" if name.isidentifier() and equals and value else ""
            raise LaunchFileError(f"'{word}' is not a launch argument; {meant or 'write name:=value, with a value'}")
        given[name] = os.path.expanduser(value)  # shells expand no ~ after :=
    return given


def refuse_unknown(given: Iterable[str], known: Collection[str], path: Path) -> None:
    """Raise LaunchFileError for an undeclared argument."""
    for name in given:
        if name not in known:
            listed = f"it takes {', '.join(known)}" if known else "it takes none"
            raise LaunchFileError(f"{path}: there is no launch argument '{name}'{suggestion(name, known)}; {listed}")


def describe(declared: Mapping[str, Argument]) -> str:
    """Return a readable list of the arguments with their descriptions and defaults."""
    lines = ["Arguments (give them as name:=value):"]
    for argument in declared.values():
        lines += ["", f"    '{argument.name}':"]
        lines += [f"        {argument.description or 'no description'}"]
        lines += [f"        (one of: {', '.join(argument.choices)})"] if argument.choices else []
        lines += ["        (required)" if argument.default is None else f"        (default: '{argument.default}')"]
    return "\n".join(lines)


def _unescaped(text: str) -> str:
    """Remove the backslashes that escape the next character."""
    return re.sub(r"\\(.)", r"\1", text)
