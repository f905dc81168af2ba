# SPDX-License-Identifier: Apache-2.0
"""Measure all figures in README.md and docs/wire_log.md again: python benchmark/figures.py [testbed ...].

Rewrites them in place. Run it on an idle machine; it takes more than 20 minutes.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from system import script_command

HERE: Final = Path(__file__).resolve().parent
README: Final = HERE / "README.md"
PAGES: Final = {
    "testbed": README,
    "simulator": README,
    "telemetry": README,
    "footprint": README,
    "wire_log": HERE.parent / "docs" / "wire_log.md",
}


def measure(program: str, arguments: list[str]) -> str:
    """Run a benchmark, show its output, and return its results. Raises CalledProcessError when it fails."""
    command = script_command(f"{program}.py", *arguments)
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        for line in running.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, command)
    return "".join(line for line in lines if not re.match(r"round \d+ of|\d+ s in all", line)).strip()


def replaced(text: str, program: str, results: str) -> str:
    """Return a page with new results of a benchmark. Raises ValueError when it has no place for them."""
    begin, end = f"<!-- {program} -->\n", f"<!-- end of {program} -->"
    before, found, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found and found_end):
        raise ValueError(f"{PAGES[program].name} has no place for the figures of {program}: {begin.strip()} to {end}.")
    return f"{before}{begin}```text\n{results}\n```\n{end}{after}"


def main() -> int:
    """Measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", default=list(PAGES), metavar="PROGRAM", help=f"of {', '.join(PAGES)}")
    parser.add_argument("--rounds", type=int, help="of each, instead of their own number")
    options = parser.parse_args()
    arguments = ["--rounds", str(options.rounds)] if options.rounds else []
    for program in options.programs:
        results = measure(program, arguments)
        page = PAGES[program]
        page.write_text(replaced(page.read_text(), program, results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
