# SPDX-License-Identifier: Apache-2.0
"""Parser and validator of XML launch files: an element tree with line numbers, and the supported tags."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from drone_bridge.programs.options import suggestion


class LaunchFileError(Exception):
    """Error in a launch file. The text begins with file and line, as in 'testbed.launch.xml:12: ...'."""


@dataclass(slots=True)
class Element:
    """Element of a launch file."""

    tag: str
    attributes: dict[str, str]
    path: Path
    line: int
    children: list["Element"] = field(default_factory=list)

    def error(self, problem: object) -> LaunchFileError:
        """Return an error with the location of this element."""
        return LaunchFileError(f"{self.path}:{self.line}: {problem}")

    def named(self, tag: str) -> list["Element"]:
        """Return the children with this tag."""
        return [child for child in self.children if child.tag == tag]


@dataclass(frozen=True, slots=True)
class _Tag:
    """Allowed attributes and children of a tag."""

    required: frozenset[str]
    attributes: tuple[str, ...]  # all of them, in alphabetical order
    children: Mapping[str, "_Tag"]


_NONE: Mapping[str, _Tag] = {}


def _tag(required: str = "", optional: str = "", children: Mapping[str, _Tag] = _NONE) -> _Tag:
    attributes = {*required.split(), *optional.split()}
    return _Tag(frozenset(required.split()), tuple(sorted(attributes)), children)


_CONDITION = "if unless "
_PROCESS = _CONDITION + "output respawn respawn_delay "

# All of it is supported by launch 1.0 and launch_ros 0.19 of Humble, the oldest supported distribution.
_ACTIONS: dict[str, _Tag] = {
    "arg": _tag("name", _CONDITION + "default description", {"choice": _tag("value")}),
    "let": _tag("name value", _CONDITION),
    "node": _tag(
        "pkg exec",
        _PROCESS + "name namespace args ros_args",
        {"param": _tag("", "name value type from"), "remap": _tag("from to")},
    ),
    "executable": _tag("cmd", _PROCESS + "name"),
    "include": _tag("file", _CONDITION, children={"arg": _tag("name value")}),
    "push_ros_namespace": _tag("namespace", _CONDITION),
    "set_env": _tag("name value", _CONDITION),
}
#: Tags allowed in a group, the same as in <launch>.
GROUP_TAGS: dict[str, _Tag] = {}
_ACTIONS["group"] = _tag("", _CONDITION, children=GROUP_TAGS)
GROUP_TAGS.update(_ACTIONS)
_ROOT = {"launch": _tag(optional="version", children=_ACTIONS)}


def load(path: Path) -> Element:
    """Parse and validate a launch file. Return its <launch> element. Raises LaunchFileError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LaunchFileError(f"{path}: cannot be read: {error.strerror}") from error
    root = _build_tree(path, content)
    _check(root, _ROOT, "at the top")
    return root


def _build_tree(path: Path, content: bytes) -> Element:
    parser = expat.ParserCreate()
    top = Element("", {}, path, 0)
    open_elements = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, path, parser.CurrentLineNumber)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_: str) -> None:
        open_elements.pop()

    def text(data: str) -> None:
        if data.strip():
            place = f"{path}:{parser.CurrentLineNumber}"
            raise LaunchFileError(f"{place}: text in <{open_elements[-1].tag}> means nothing: '{data.strip()}'")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise LaunchFileError(f"{path}:{error.lineno}: this is not well-formed XML: {reason}") from error
    except (ValueError, LookupError) as error:  # from Python's decoder for encoding="..."
        raise LaunchFileError(f"{path}:{parser.CurrentLineNumber}: this is not readable as XML: {error}") from error
    return top.children[0]


def _check(element: Element, known: Mapping[str, _Tag], place: str) -> None:
    """Validate an element and its descendants. Raises LaunchFileError."""
    kind = known.get(element.tag)
    if kind is None:
        hint, listed = suggestion(element.tag, known), ", ".join(sorted(known)) or "none"
        raise element.error(f"<{element.tag}> {place} is not supported by this runner{hint}; it supports {listed}")
    for name in element.attributes:
        if name not in kind.attributes:
            raise element.error(
                f"the attribute '{name}' of <{element.tag}> is not supported by this runner"
                f"{suggestion(name, kind.attributes)}; it supports {', '.join(kind.attributes)}"
            )
    for name in sorted(kind.required - element.attributes.keys()):
        raise element.error(f"<{element.tag}> needs the attribute '{name}'")
    if "if" in element.attributes and "unless" in element.attributes:
        raise element.error(f"<{element.tag}> has both 'if' and 'unless'; use one of them")
    for child in element.children:
        _check(child, kind.children, f"in <{element.tag}>")
