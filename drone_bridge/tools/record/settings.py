# SPDX-License-Identifier: Apache-2.0
"""RecorderSettings: parameters of the recorder."""

import contextlib
import itertools
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from rclpy.node import Node

from drone_bridge.ros.node.common_parameters import MIN_FREE_SPACE
from drone_bridge.ros.node.parameters import DeclaredParameters, ParameterDeclaration
from drone_bridge.tools.bags.folders import BAGS


def _problem_with_pattern(text: str) -> str | None:
    try:
        re.compile(text)
    except re.error as error:
        return f"is '{text}', which is not a regular expression: {error}."
    return None


PARAMETERS = (
    ParameterDeclaration(
        "bag",
        "",
        "Directory to create, with _2 at its end if it exists; default bag_<date>_<time> in ~/drone_bridge_bags.",
    ),
    ParameterDeclaration("topics", [""], "Topics to record; none: all that are not hidden."),
    ParameterDeclaration(
        "exclude", "", "Regular expression. Topics whose name has a match are excluded.", check=_problem_with_pattern
    ),
    ParameterDeclaration("compression", "none", "Compression of the bag.", choices=("none", "zstd")),
    MIN_FREE_SPACE,
)


def new_bag() -> Path:
    """Return a free path for a new bag, named by the time. Creates its parent folder."""
    folder = BAGS.expanduser()
    with contextlib.suppress(OSError):  # reported when the bag is created
        folder.mkdir(parents=True, exist_ok=True)
    return free_path(folder / time.strftime("bag_%Y-%m-%d_%H-%M-%S"))


def free_path(path: Path) -> Path:
    """Return a path, or if it exists, the first free one with _2, _3 and so on at the end.

    A machine without a battery-backed clock may repeat the time of an earlier boot.
    """
    others = (path.with_name(f"{path.name}_{number}") for number in itertools.count(2))
    return next(each for each in itertools.chain([path], others) if not os.path.lexists(each))


@dataclass(frozen=True, slots=True)
class RecorderSettings:
    """Topics to record, and the destination."""

    bag: Path
    topics: frozenset[str]
    """Fully qualified names; empty: all that are not hidden"""
    exclude: re.Pattern[str] | None
    compress: bool
    min_free_mb: float


def read_settings(node: Node) -> RecorderSettings:
    """Declare and read the parameters.

    Raises:
        ParameterException: a value has another type.
        ValueError: a value is not allowed.
    """
    declared = DeclaredParameters(node, PARAMETERS)
    names = list(declared["topics"])
    try:
        topics = frozenset(node.resolve_topic_name(name) for name in names if name)
    except (RuntimeError, ValueError) as error:  # RCLError, which is not public on all distributions
        raise ValueError(f"topics is {names}, which has an invalid topic name: {error}") from None
    declared.freeze_because("when the node starts")
    return RecorderSettings(
        bag=Path(declared["bag"]).expanduser() if declared["bag"] else new_bag(),
        topics=topics,
        exclude=re.compile(declared["exclude"]) if declared["exclude"] else None,
        compress=declared["compression"] != "none",
        min_free_mb=declared["min_free_space"],
    )
