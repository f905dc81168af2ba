# SPDX-License-Identifier: Apache-2.0
"""The recorder's parameters."""

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.exceptions import ParameterException
from rclpy.node import Node

COMPRESSIONS = ("none", "zstd")


class SettingsError(Exception):
    """A parameter has a value that can't be used; the text says which are allowed."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What to record, and where to."""

    bag: Path
    topics: frozenset[str]
    """Fully qualified names; empty means all that are not hidden."""
    exclude: re.Pattern[str] | None
    compress: bool


def read_settings(node: Node) -> Settings:
    """Declare the parameters and read them.

    Raises:
        SettingsError: a value is not allowed.
    """

    def declare(name: str, default: str, description: str, *, dynamic_typing: bool = False) -> Any:
        descriptor = ParameterDescriptor(description=description, read_only=True, dynamic_typing=dynamic_typing)
        value: Any = node.declare_parameter(name, default, descriptor).value
        if value is None and not dynamic_typing:  # as rcl has an empty list
            raise SettingsError(f"{name} is [], and has to be one value, as {default!r}.")
        return value

    which = "Topics to record, as a list or separated by blanks; empty: all."
    try:
        bag = declare("bag", "", "Directory to create; default bag_<date>_<time> here.", dynamic_typing=True)
        topics = declare("topics", "", which, dynamic_typing=True)
        exclude = declare("exclude", "", "Regular expression; topics in whose name it is found are left out.")
        compression = declare("compression", "none", f"One of {', '.join(COMPRESSIONS)}.")
    except ParameterException as error:
        raise SettingsError(str(error)) from None
    if compression not in COMPRESSIONS:
        raise SettingsError(f"compression is '{compression}'; allowed are {', '.join(COMPRESSIONS)}.")
    default = time.strftime("bag_%Y-%m-%d_%H-%M-%S")
    return Settings(
        bag=Path(default if bag in ("", None) else str(bag)).expanduser(),
        topics=_topics(node, topics),
        exclude=_pattern(exclude),
        compress=compression != "none",
    )


def _topics(node: Node, value: object) -> frozenset[str]:
    """Accept a list, or a string as a launch argument has it."""
    names = str(value or "").replace(",", " ").split() if isinstance(value, str | None) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SettingsError(f"topics is '{value}'; a list of topic names is expected, or a string of them.")
    try:
        return frozenset(node.resolve_topic_name(name) for name in names if name)
    except (RuntimeError, ValueError) as error:  # RCLError, which has no public home on all distributions
        raise SettingsError(f"topics is '{value}', which holds a name that no topic can have: {error}") from None


def _pattern(text: str) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise SettingsError(f"exclude is '{text}', which is not a regular expression: {error}.") from None
