# SPDX-License-Identifier: Apache-2.0
"""Substitution: the $(...) of launch files. Text is read once into a template, and performed where it is needed.

A template is text and substitutions, whose arguments are templates; `_Reader` makes it, by recursive descent, and KNOWN
has what each name stands for.
"""

import shlex
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from drone_bridge.programs.options import suggestion


class SubstitutionError(ValueError):
    """A text cannot be parsed or performed; says why, without the place."""


@dataclass(frozen=True, slots=True)
class Substitution:
    """One $(name argument ...)."""

    name: str
    arguments: tuple["Template", ...]


Template = tuple[str | Substitution, ...]


@dataclass(slots=True)
class Scope:
    """The context in which a substitution is performed."""

    configurations: dict[str, str]
    environment: dict[str, str]
    directory: Path  # of the current launch file


def parse(text: str) -> Template:
    """Return the template that `text` describes; raises SubstitutionError."""
    return _Reader(text).parts() or ("",)


def perform(template: Template, scope: Scope) -> str:
    """Return the text that a template stands for in this scope; raises SubstitutionError."""
    return "".join(
        part if isinstance(part, str) else KNOWN[part.name].perform(scope, part.arguments) for part in template
    )


def truth(text: str) -> bool:
    """Return whether `text` is true, as YAML has it, or 1; raises SubstitutionError."""
    if text.lower() not in (*_TRUE, *_FALSE):
        raise SubstitutionError(f"'{text}' is neither true nor false")
    return text.lower() in _TRUE


_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def split_command(template: Template) -> tuple[Template, ...]:
    """Split a command line at the spaces of its text, as a shell would; what is substituted is never split."""
    words: list[Template] = []
    word: Template = ()
    for part in template:
        if isinstance(part, Substitution):
            word = (*word, part)
            continue
        try:
            tokens = shlex.split(part)
        except ValueError:
            raise SubstitutionError(
                f"a quote in '{part}' is not closed; quotes cannot enclose a substitution"
            ) from None
        if not tokens:
            words.append(word)
            word = ()
            continue
        if part[0].isspace() and word:
            words.append(word)
            word = ()
        first, *rest = tokens
        word = (*word, first)
        if rest:
            words += [word, *((token,) for token in rest[:-1])]
            word = (rest[-1],)
        if part[-1].isspace():
            words.append(word)
            word = ()
    return (*words, word) if word else tuple(words)


class _Reader:
    """Recursive descent over one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def parts(self, ends: str = "") -> Template:
        """Read text and substitutions up to one of the characters in `ends`, or to the end of everything."""
        parts: list[str | Substitution] = []
        plain = ""
        while self._at < len(self._text) and self._text[self._at] not in ends:
            if self._is_at_substitution():
                parts += [plain] if plain else []
                plain = ""
                parts.append(self._substitution())
            else:
                plain += self._character()
        return (*parts, plain) if plain else tuple(parts)

    def _is_at_substitution(self) -> bool:
        """Tell whether $( follows; after a backslash, be it an escaped one, it is text."""
        return self._text.startswith("$(", self._at) and self._text[self._at - 1 : self._at] != "\\"

    def _character(self) -> str:
        """Read one character; a backslash makes the next one ordinary."""
        if self._text[self._at] == "\\" and self._at + 1 < len(self._text):
            self._at += 1
        self._at += 1
        return self._text[self._at - 1]

    def _substitution(self) -> Substitution:
        start = self._at
        self._at += len("$(")
        name = ""
        while self._at < len(self._text) and (self._text[self._at].isalnum() or self._text[self._at] in "_-"):
            name += self._text[self._at]
            self._at += 1
        arguments: list[Template] = []
        while self._text.startswith(" ", self._at):
            self._at += 1
            arguments.append(self._argument())
        if not name or not self._text.startswith(")", self._at):
            raise SubstitutionError(
                f"'{self._text[start:]}' is not a substitution: write $(name argument ...) "
                "with single spaces, and quote an argument that has spaces in it"
            )
        self._at += 1
        _check(name, len(arguments))
        return Substitution(name, tuple(arguments))

    def _argument(self) -> Template:
        opening = self._text[self._at : self._at + 1]
        if opening and opening in "'\"":
            self._at += 1
            argument = self.parts(ends=opening)
            if not self._text.startswith(opening, self._at):
                raise SubstitutionError(f"a {opening} in '{self._text}' is not closed")
            self._at += 1
            return argument
        argument = self.parts(ends=" ()'\"")
        if not argument:
            raise SubstitutionError(f"an argument is missing in '{self._text}'; an empty one is written ''")
        return argument


@dataclass(frozen=True, slots=True)
class _Kind:
    """A substitution that is known: how many arguments it takes, and what it does with them."""

    least: int
    most: int
    perform: Callable[[Scope, tuple[Template, ...]], str]


def _var(scope: Scope, arguments: tuple[Template, ...]) -> str:
    name = perform(arguments[0], scope)
    if name in scope.configurations:
        return scope.configurations[name]
    if len(arguments) == 1:
        raise SubstitutionError(f"there is no launch argument or variable '{name}' here")
    return perform(arguments[1], scope)


def _env(scope: Scope, arguments: tuple[Template, ...]) -> str:
    name, *default = (perform(argument, scope) for argument in arguments)
    if name in scope.environment:
        return scope.environment[name]
    if not default:
        raise SubstitutionError(f"the environment variable '{name}' is not set, and no default is given")
    return default[0]


def _anonymous(scope: Scope, arguments: tuple[Template, ...]) -> str:
    """Return a name that no other launch has; below where it is first used, the same for the same argument."""
    name = perform(arguments[0], scope)
    return scope.configurations.setdefault(f"anon{name}", f"{name}_{uuid.uuid4().hex}")  # as upstream keeps it


def _find_package_prefix(scope: Scope, arguments: tuple[Template, ...]) -> str:
    return str(package_prefix(perform(arguments[0], scope)))


def _find_package_share(scope: Scope, arguments: tuple[Template, ...]) -> str:
    name = perform(arguments[0], scope)
    return str(package_prefix(name) / "share" / name)


def _executable_in_package(scope: Scope, arguments: tuple[Template, ...]) -> str:
    executable, package = (perform(argument, scope) for argument in arguments)
    return find_executable(package, executable)


def package_prefix(name: str) -> Path:
    """Return the prefix in which a package is installed; raises SubstitutionError."""
    try:
        from ament_index_python.packages import PackageNotFoundError, get_package_prefix
    except ImportError:
        raise SubstitutionError(f"the package '{name}' cannot be looked up: no ROS environment is active") from None
    try:
        return Path(get_package_prefix(name))
    except (PackageNotFoundError, ValueError, OSError) as error:
        raise SubstitutionError(f"the package '{name}' is not installed: {error}") from error


def find_executable(package: str, executable: str) -> str:
    """Return the path of an executable of a package; raises SubstitutionError."""
    folder = package_prefix(package) / "lib" / package
    found = shutil.which(executable, path=folder)
    if found is None:
        there = sorted(path.name for path in folder.glob("*") if path.is_file())
        raise SubstitutionError(
            f"the package '{package}' has no executable '{executable}'{suggestion(executable, there)}; "
            f"in {folder}: {', '.join(there) or 'nothing'}"
        )
    return found


KNOWN = {
    "var": _Kind(1, 2, _var),
    "env": _Kind(1, 2, _env),
    "anon": _Kind(1, 1, _anonymous),
    "dirname": _Kind(0, 0, lambda scope, _: str(scope.directory)),
    "find-pkg-prefix": _Kind(1, 1, _find_package_prefix),
    "find-pkg-share": _Kind(1, 1, _find_package_share),
    "exec-in-pkg": _Kind(2, 2, _executable_in_package),
}


def _check(name: str, count: int) -> None:
    """Refuse a substitution that is not known, or has too few or too many arguments."""
    kind = KNOWN.get(name)
    if kind is None:
        raise SubstitutionError(
            f"the substitution $({name} ...) is not supported by this runner{suggestion(name, KNOWN)}; "
            f"it knows {', '.join(KNOWN)}"
        )
    if not kind.least <= count <= kind.most:
        wanted = str(kind.least) if kind.least == kind.most else f"{kind.least} to {kind.most}"
        raise SubstitutionError(f"$({name} ...) takes {wanted} arguments, not {count}")
