# SPDX-License-Identifier: Apache-2.0
"""Entries of the tests for ctest: the small files of a folder that start processes share some, all others share four.

    entries.py [--all]

CMake runs this when it configures (tests.cmake), and creates a test for each line: the entry's name, its number of
processors, its cost (most expensive first), and its files, separated by blanks. Without `--all`, files that
are marked as exhaustive as a whole are left out.
"""

import functools
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import costs

TESTS = Path(__file__).resolve().parent.parent
#: Support shared by the tests of several folders, and support installed with the conformance tests.
SUPPORT = (TESTS / "support", TESTS / "conformance" / "support")
#: Imported modules, and fixtures, of test files that need DDS or other processes.
NEEDY_MODULES = {"composition", "networks", "processes", "ros_session", "subprocess"}
NEEDY_FIXTURES = re.compile(r"^ *def \w+\([^)]*\b(?:ros|start_child|domain)\b", re.MULTILINE)
#: Number of entries for all files that need neither DDS nor other processes.
UNIT_ENTRIES = 4
#: Duration of an entry of several files, s. Shorter ones start more processes, and longer ones are the last to end.
ENTRY_S = 80.0
#: Processors of a browser, which draws without a graphics card.
BROWSER_PROCESSORS = 2
IS_EXHAUSTIVE = re.compile(r"^pytestmark = (?:\[\s*)?pytest\.mark\.exhaustive\b", re.MULTILINE)


def test_files(*, is_all: bool) -> list[Path]:
    """Return all files with tests."""
    return [path for path in sorted(TESTS.rglob("test_*.py")) if is_all or not IS_EXHAUSTIVE.search(path.read_text())]


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """Return the top-level names of the modules that a file imports, directly or by shared test code."""
    names = set(re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.MULTILINE))
    for name in tuple(names):
        for folder in (path.parent, *SUPPORT):
            support = folder / f"{name}.py"
            if support.is_file() and support != path:
                names |= imports(support)
    return frozenset(names)


def is_alone(path: Path) -> bool:
    """Return whether the tests of a file need neither DDS nor other processes."""
    text = path.read_text()
    return not imports(path) & NEEDY_MODULES and "rclpy.init(" not in text and not NEEDY_FIXTURES.search(text)


def needs_browser(path: Path) -> bool:
    """Return whether a file tests the page in a browser."""
    return "browser" in imports(path)


def name_of(path: Path) -> str:
    """Return the name of an entry of one file."""
    return "_".join(path.relative_to(TESTS).with_suffix("").parts).replace("_test_", "_").removeprefix("test_")


def shares(files: Sequence[Path], number: int) -> list[list[Path]]:
    """Return files in a number of parts of similar cost. Parts without files are left out."""
    parts: list[list[Path]] = [[] for _ in range(number)]
    for path in sorted(files, key=costs.seconds, reverse=True):
        min(parts, key=lambda part: sum(map(costs.seconds, part))).append(path)
    return [sorted(part) for part in parts if part]


def entries(files: Sequence[Path]) -> dict[str, list[Path]]:
    """Return the files of all entries by name."""
    found = {f"unit_{n}": part for n, part in enumerate(shares([*filter(is_alone, files)], UNIT_ENTRIES), start=1)}
    groups: dict[str, list[Path]] = {}
    for path in files:
        if not is_alone(path):
            folder = f"{path.parent.name}_pages" if needs_browser(path) else path.parent.name
            groups.setdefault(folder, []).append(path)
    for folder, group in groups.items():
        for n, part in enumerate(shares(group, 1 + int(sum(map(costs.seconds, group)) / ENTRY_S)), start=1):
            found[name_of(part[0]) if len(part) == 1 else f"{folder}_{n}"] = part
    return found


def main(arguments: Sequence[str]) -> int:
    """Print the entries. Those without processes, which compute, begin at equal intervals, beside others that wait."""
    found = entries(test_files(is_all="--all" in arguments))
    cost = {name: sum(map(costs.seconds, files)) for name, files in found.items()}
    units = [name for name in found if name.startswith("unit_")]
    ordered = sorted((cost[name] for name in found if name not in units), reverse=True)
    for number, name in enumerate(units):
        cost[name] = ordered[number * len(ordered) // len(units)]
    for name, files in found.items():
        processors = BROWSER_PROCESSORS if any(map(needs_browser, files)) else 1
        print(name, processors, round(cost[name]), *files)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
