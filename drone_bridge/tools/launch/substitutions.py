# SPDX-License-Identifier: Apache-2.0
"""Substitutions, $(...), in launch files. `_TextParser` parses and performs them. KNOWN lists the supported ones."""

import re
import shlex
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from drone_bridge.programs.missing_package import apt_install
from drone_bridge.programs.options import suggestion


class SubstitutionError(ValueError):
    """Failure to parse or perform a substitution. The text has no location."""


@dataclass(slots=True)
class Scope:
    """Context of a substitution."""

    configurations: dict[str, str]
    environment: dict[str, str]
    directory: Path  # of the current launch file
    read: set[str] = field(default_factory=set)  # names of all variables that were used so far


class Part(NamedTuple):
    """Part of a text, either literal or substituted."""

    text: str
    is_substituted: bool


def perform(text: str, scope: Scope) -> str:
    """Perform the substitutions in a text. Raises SubstitutionError."""
    return "".join(part.text for part in _TextParser(text, scope).parts())


def truth(text: str) -> bool:
    """Parse a boolean of YAML, or 1 or 0. Raises SubstitutionError."""
    if text.lower() not in (*_TRUE, *_FALSE):
        raise SubstitutionError(f"'{text}' is neither true nor false")
    return text.lower() in _TRUE


_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def split_command(text: str, scope: Scope) -> list[str]:
    """Split a command line like a shell, but never within a substituted value. Raises SubstitutionError."""
    parts = _TextParser(text, scope).parts()
    marked = "".join(f"\0{number}\0" if part.is_substituted else part.text for number, part in enumerate(parts))
    try:
        words = shlex.split(marked)
    except ValueError:
        raise SubstitutionError(f"a quote in '{text}' is not closed") from None
    return [_MARK.sub(lambda mark: parts[int(mark[1])].text, word) for word in words]


_MARK = re.compile("\0([0-9]+)\0")  # XML has no such character


class _TextParser:
    """Recursive descent parser of a text."""

    def __init__(self, text: str, scope: Scope) -> None:
        self._text = text
        self._scope = scope
        self._at = 0

    def parts(self, ends: str = "") -> list[Part]:
        """Parse text and substitutions up to one of the characters in `ends`, or to the end of the text."""
        parts: list[Part] = []
        plain = ""
        while self._at < len(self._text) and self._text[self._at] not in ends:
            if self._is_at_substitution():
                parts += [Part(plain, False)] if plain else []
                plain = ""
                parts.append(Part(self._substitution(), True))
            else:
                plain += self._character()
        return [*parts, Part(plain, False)] if plain else parts

    def _is_at_substitution(self) -> bool:
        """Return whether $( follows. After a backslash, even an escaped one, it is literal text."""
        return self._text.startswith("$(", self._at) and self._text[self._at - 1 : self._at] != "\\"

    def _character(self) -> str:
        """Read one character. A backslash escapes the next one."""
        if self._text[self._at] == "\\" and self._at + 1 < len(self._text):
            self._at += 1
        self._at += 1
        return self._text[self._at - 1]

    def _substitution(self) -> str:
        start = self._at
        self._at += len("$(")
        name = ""
        while self._at < len(self._text) and (self._text[self._at].isalnum() or self._text[self._at] in "_-"):
            name += self._text[self._at]
            self._at += 1
        arguments: list[str] = []
        while self._text.startswith(" ", self._at):
            self._at += 1
            arguments.append(self._argument())
        if not name or not self._text.startswith(")", self._at):
            raise SubstitutionError(
                f"'{self._text[start:]}' is not a substitution: write $(name argument ...) "
                "with single spaces, and quote an argument that has spaces in it"
            )
        self._at += 1
        if name not in KNOWN:
            raise SubstitutionError(
                f"the substitution $({name} ...) is not supported by this runner{suggestion(name, KNOWN)}; "
                f"it supports {', '.join(KNOWN)}"
            )
        least, most, function = KNOWN[name]
        if not least <= len(arguments) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise SubstitutionError(f"$({name} ...) takes {wanted} arguments, not {len(arguments)}")
        return function(self._scope, *arguments)

    def _argument(self) -> str:
        opening = self._text[self._at : self._at + 1]
        if opening and opening in "'\"":
            self._at += 1
            argument = self.parts(ends=opening)
            if not self._text.startswith(opening, self._at):
                raise SubstitutionError(f"a {opening} in '{self._text}' is not closed")
            self._at += 1
        else:
            argument = self.parts(ends=" ()'\"")
            if not argument:
                raise SubstitutionError(f"an argument is missing in '{self._text}'; an empty one is written ''")
        return "".join(part.text for part in argument)


def _var(scope: Scope, name: str, *default: str) -> str:
    scope.read.add(name)
    if name in scope.configurations:
        return scope.configurations[name]
    if not default:
        raise SubstitutionError(f"there is no launch argument or variable '{name}' here")
    return default[0]


def _env(scope: Scope, name: str, *default: str) -> str:
    if name in scope.environment:
        return scope.environment[name]
    if not default:
        raise SubstitutionError(f"the environment variable '{name}' is not set, and no default is given")
    return default[0]


def _anonymous(scope: Scope, name: str) -> str:
    """Return a unique name, which later uses with the same argument in this scope share."""
    return scope.configurations.setdefault(f"anon{name}", f"{name}_{uuid.uuid4().hex}")  # as upstream stores it


def package_prefix(name: str) -> Path:
    """Return the prefix of an installed package. Raises SubstitutionError."""
    try:
        from ament_index_python.packages import PackageNotFoundError, get_package_prefix
    except ImportError:
        raise SubstitutionError(f"the package '{name}' cannot be looked up: no ROS environment is active") from None
    try:
        return Path(get_package_prefix(name))
    except (PackageNotFoundError, ValueError, OSError) as error:
        remedy = "; without it, view:=true shows the vehicle in a browser" if name == "rviz2" else ""
        remedy = f"; to install it: {command}" if (command := apt_install(name)) else remedy
        raise SubstitutionError(f"the package '{name}' is not installed: {error}{remedy}") from error


def find_executable(package: str, executable: str) -> str:
    """Return the path of an executable in a package. Raises SubstitutionError."""
    folder = package_prefix(package) / "lib" / package
    found = shutil.which(executable, path=folder)
    if found is None:
        there = sorted(path.name for path in folder.glob("*") if path.is_file())
        raise SubstitutionError(
            f"the package '{package}' has no executable '{executable}'{suggestion(executable, there)}; "
            f"in {folder}: {', '.join(there) or 'nothing'}"
        )
    return found


#: Least and largest number of arguments, and function, of each substitution.
KNOWN: dict[str, tuple[int, int, Callable[..., str]]] = {
    "var": (1, 2, _var),
    "env": (1, 2, _env),
    "anon": (1, 1, _anonymous),
    "dirname": (0, 0, lambda scope: str(scope.directory)),
    "find-pkg-prefix": (1, 1, lambda _, name: str(package_prefix(name))),
    "find-pkg-share": (1, 1, lambda _, name: str(package_prefix(name) / "share" / name)),
    "exec-in-pkg": (2, 2, lambda _, executable, package: find_executable(package, executable)),
}
