# SPDX-License-Identifier: Apache-2.0
"""Run the tests of the gate, or all tests, by ctest: run.py [--all] [PATTERN]

With a pattern, it runs the entries whose name matches. The entries are those of `colcon test`. It prints a line for
each entry that ends, the output of failed ones, and finally the number of tests, the time, and the CPU time of all
processes.
"""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from entry import LOCK_UPS

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance" / "support"))
import place

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "test"
#: Most entries wait for two thirds of their time.
ENTRIES_PER_CORE = 2
#: Line of ctest about an entry that has ended.
ENDED = re.compile(r"\s*\d+/(\d+) Test\s+#\d+: (\S+) \.* *(Passed|\*\*\*.*?|Skipped)\s+([\d.]+) sec")


@dataclass(slots=True)
class Counts:
    """Numbers of tests, and of entries that ended without results."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def tests(self) -> int:
        """Total number of tests."""
        return self.passed + self.failed + self.skipped

    def add(self, other: "Counts") -> None:
        """Add the numbers of another one."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def counts_in(result: Path, *, has_passed: bool) -> Counts:
    """Return the counts in an entry's JUnit results. An entry that failed as a whole counts as one failed test."""
    counts = Counts()
    try:
        suites = list(ElementTree.parse(result).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        suites = []
    for suite in suites:
        tests, failed, skipped = (
            sum(int(suite.get(name) or 0) for name in names)
            for names in (("tests",), ("failures", "errors"), ("skipped",))
        )
        counts.add(Counts(tests - failed - skipped, failed, skipped))
    if not has_passed and not counts.failed:
        counts.failed = 1
    return counts


def configure(*, is_all: bool) -> None:
    """Configure CMake with the entries of the tests only: the package is already built and installed."""
    command = ["cmake", "-S", str(ROOT), "-B", str(BUILD), "-DTESTS_ONLY=ON", f"-DPython3_EXECUTABLE={sys.executable}"]
    command += [f"-DALL_TESTS={'ON' if is_all else 'OFF'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nThe tests' entries could not be written: see above.")


def names(pattern: str) -> list[str]:
    """Return the names of the entries that match."""
    command = ["ctest", "--test-dir", str(BUILD), "--show-only", "--tests-regex", pattern]
    return re.findall(r"Test +#\d+: (\S+)", subprocess.run(command, capture_output=True, text=True, check=False).stdout)


def run(pattern: str) -> int:
    """Run the entries. Return the exit status. Raises SystemExit with all names if none matches."""
    if not names(pattern):
        sys.exit(f"No entry's name matches '{pattern}'. There are:\n" + "\n".join(names("")))
    output, began_s = BUILD / "test_output", time.monotonic()
    shutil.rmtree(output, ignore_errors=True)
    jobs = min(ENTRIES_PER_CORE * (os.cpu_count() or 1), place.COUNT // 2)
    command = ["ctest", "--test-dir", str(BUILD), "--parallel", str(jobs), "--no-tests=error", "--tests-regex", pattern]
    total, ended = Counts(), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ctest:
        signal.signal(signal.SIGTERM, lambda *_: ctest.terminate())  # its entries notice
        assert ctest.stdout is not None
        others = []
        for line in ctest.stdout:
            if not (match := ENDED.match(line)):
                others.append(line)
                continue
            entries, name, outcome, seconds = int(match[1]), match[2], match[3], float(match[4])
            ended += 1
            result = BUILD / "test_results" / "drone_bridge" / f"{name}.xunit.xml"
            counts = counts_in(result, has_passed=outcome == "Passed")
            total.add(counts)
            state = "passed" if not counts.failed else f"{counts.failed} FAILED"
            print(f"{state:>9} {name:42} {counts.tests:4} tests {seconds:6.0f} s {entries - ended:4} left", flush=True)
            if counts.failed:
                shown = output / f"{name}.txt"
                print(shown.read_text(errors="replace") if shown.exists() else "It has printed nothing.", flush=True)
    if not ended:
        print(*others, sep="")
    lock_ups = len(list((output / LOCK_UPS).glob("*")))
    seconds, used = time.monotonic() - began_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    print(
        f"{total.tests} tests in {ended} entries: {total.failed or 'none'} failed, {total.skipped} were skipped; "
        f"{lock_ups or 'no'} lock-up{'s' * (lock_ups != 1)} of the middleware; {seconds:.0f} s, "
        f"{used.ru_utime + used.ru_stime:.0f} s of CPU."
    )
    return 1 if total.failed or ctest.returncode else 0


if __name__ == "__main__":
    patterns = [word for word in sys.argv[1:] if word != "--all"]
    configure(is_all="--all" in sys.argv)
    sys.exit(run(*patterns or [""]))
