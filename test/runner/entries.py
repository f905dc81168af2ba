# SPDX-License-Identifier: Apache-2.0
"""Entries of the tests for ctest: one for each file that starts processes, and a few for all others.

CMake runs this when it configures (tests.cmake), and creates a test for each line: the entry's name, whether it runs
alone (TRUE or FALSE), its cost (longest first), and its files, separated by blanks.
"""

import functools
import re
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
#: Support shared by the tests of several folders, and support installed with the conformance tests.
SUPPORT = (TESTS / "support", TESTS / "conformance" / "support")
#: Imported modules, and fixtures, of test files that need DDS or other processes.
NEEDY_MODULES = {"composition", "networks", "processes", "ros_session", "subprocess"}
NEEDY_FIXTURES = re.compile(r"^ *def \w+\([^)]*\b(?:ros|start_child|domain)\b", re.MULTILINE)
#: Number of entries for all files that need neither DDS nor other processes.
UNIT_ENTRIES = 4
#: Cost of a browser, which needs a whole machine without a graphics card: its tests run alone, after all others.
BROWSER_COST = 1
#: Cost factor of the conformance tests, which run for each protocol.
CONFORMANCE_FACTOR = 10


def test_files() -> list[Path]:
    """Return all files with tests, except those of the plugin's package."""
    return sorted(path for path in TESTS.rglob("test_*.py") if "plugin" not in path.relative_to(TESTS).parts)


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


def main() -> int:
    """Print the entries."""
    alone = sorted(filter(is_alone, test_files()), key=lambda path: path.stat().st_size, reverse=True)
    for number in range(UNIT_ENTRIES):
        files = alone[number::UNIT_ENTRIES]
        print(f"unit_{number + 1}", "FALSE", sum(path.stat().st_size for path in files), *files)
    for path in test_files():
        if not is_alone(path):
            name = "_".join(path.relative_to(TESTS).with_suffix("").parts).replace("_test_", "_").removeprefix("test_")
            size = path.stat().st_size * (CONFORMANCE_FACTOR if path.parent.name == "conformance" else 1)
            print(name, *("TRUE", BROWSER_COST) if needs_browser(path) else ("FALSE", size), path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
