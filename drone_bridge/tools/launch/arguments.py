# SPDX-License-Identifier: Apache-2.0
"""Launch arguments: which ones a file declares, with those of the files it includes."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from drone_bridge.programs.options import suggestion
from drone_bridge.tools.launch import substitutions
from drone_bridge.tools.launch.parse import Element, LaunchFileError, load
from drone_bridge.tools.launch.substitutions import Scope, SubstitutionError


@dataclass(frozen=True, slots=True)
class Argument:
    """One <arg> of a launch file."""

    name: str
    default: str | None  # as written, substitutions and all; None when a value must be given
    description: str
    choices: tuple[str, ...]
    conditional: bool
    line: int

    @property
    def demand(self) -> str:
        """The sentence that asks for a value."""
        described = f" ({self.description})" if self.description else ""
        return f"the launch argument '{self.name}'{described} must be given"

    @classmethod
    def declared_by(cls, element: Element, conditional: bool = False) -> "Argument":
        """Return the argument that an <arg> declares."""
        texts = element.attributes
        return cls(
            name=_unescaped(texts["name"]),
            default=texts.get("default"),
            description=_unescaped(texts.get("description", "")),
            choices=tuple(_unescaped(choice.attributes["value"]) for choice in element.named("choice")),
            conditional=conditional or "if" in texts or "unless" in texts,
            line=element.line,
        )


@dataclass(slots=True)
class Declarations:
    """The arguments declared in a file and in what it includes, as far as that is known before running it."""

    arguments: dict[str, Argument] = field(default_factory=dict)
    complete: bool = True  # False when it depends on arguments which files are included

    def add(self, arguments: Iterable[Argument]) -> None:
        """Add arguments; the first declaration of a name stands."""
        for argument in arguments:
            self.arguments.setdefault(argument.name, argument)


def declared_in(root: Element) -> Declarations:
    """Return what a launch file declares, those arguments included that depend on a condition."""
    declarations = Declarations()
    _collect(root, declarations, {root.path}, conditional=False)
    return declarations


def _collect(element: Element, declarations: Declarations, seen: set[Path], conditional: bool) -> None:
    for child in element.children:
        is_conditional = conditional or "if" in child.attributes or "unless" in child.attributes
        if child.tag == "arg":
            declarations.add([Argument.declared_by(child, conditional)])
        elif child.tag == "group":
            _collect(child, declarations, seen, is_conditional)
        elif child.tag == "include":
            here = Scope({}, dict(os.environ), child.path.parent.absolute())
            try:
                path = Path(substitutions.perform(child.templates["file"], here))
                if path not in seen:
                    seen.add(path)
                    _collect(load(path), declarations, seen, is_conditional)
            except (SubstitutionError, LaunchFileError):
                declarations.complete = False


def parse_assignments(words: Iterable[str]) -> dict[str, str]:
    """Return the values of `name:=value` words, the last one of a name winning. Raises LaunchFileError."""
    given = {}
    for word in words:
        name, separator, value = word.partition(":=")
        if not name or not separator or not value:
            name, equals, value = word.partition("=")
            meant = f"did you mean '{name}:={value}'?" if name.isidentifier() and equals and value else ""
            raise LaunchFileError(f"'{word}' is not a launch argument; {meant or 'write name:=value, with a value'}")
        given[name] = value
    return given


def refuse_unknown(given: Iterable[str], declarations: Declarations, path: Path) -> None:
    """Raise LaunchFileError for a given argument that nothing declares."""
    known = list(declarations.arguments)
    for name in given:
        if name not in known:
            listed = f"it takes {', '.join(known)}" if known else "it takes none"
            raise LaunchFileError(f"{path}: there is no launch argument '{name}'{suggestion(name, known)}; {listed}")


def describe(declarations: Declarations) -> str:
    """Return the arguments with their descriptions and defaults, to be read by people."""
    lines = ["Arguments (give them as name:=value):"]
    for argument in declarations.arguments.values():
        lines += ["", f"    '{argument.name}':{'*' if argument.conditional else ''}"]
        lines += [f"        {argument.description or 'no description'}"]
        lines += [f"        (one of: {', '.join(argument.choices)})"] if argument.choices else []
        lines += ["        (required)" if argument.default is None else f"        (default: '{argument.default}')"]
    if not declarations.arguments:
        lines += ["", "    none"]
    if any(argument.conditional for argument in declarations.arguments.values()):
        lines += ["", "* used only under some condition"]
    if not declarations.complete:
        lines += ["", "Files that are included depending on arguments may take more."]
    return "\n".join(lines)


def _unescaped(text: str) -> str:
    """Take away the backslashes that make the next character ordinary."""
    return re.sub(r"\\(.)", r"\1", text)
