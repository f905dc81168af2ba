# SPDX-License-Identifier: Apache-2.0
"""Measured durations of test files: python test/runner/costs.py writes those of the last run to costs.json."""

import functools
import json
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = Path(__file__).with_name("costs.json")
#: Duration of a file without a measurement, s.
UNKNOWN_S = 5.0


@functools.cache
def table() -> dict[str, float]:
    """Return durations by file, relative to the repository, s."""
    return dict(json.loads(TABLE.read_text()))


def seconds(path: Path) -> float:
    """Return the duration of a file's tests, one after the other."""
    return table().get(path.relative_to(ROOT).as_posix(), UNKNOWN_S)


def measured(results: Path) -> dict[str, float]:
    """Return the durations in a folder of JUnit results."""
    found: Counter[str] = Counter()
    for result in results.glob("*.xml"):
        for case in ElementTree.parse(result).getroot().iter("testcase"):
            found[f"{str(case.get('classname')).replace('.', '/')}.py"] += float(case.get("time") or 0.0)
    return {file: round(duration_s, 1) for file, duration_s in found.items()}


def main() -> int:
    """Write the table. Files that were not run keep their durations."""
    known = table() | measured(ROOT / "build" / "test" / "test_results" / "drone_bridge")
    kept = {file: known[file] for file in sorted(known) if (ROOT / file).is_file()}
    TABLE.write_text(json.dumps(kept, indent=0) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
