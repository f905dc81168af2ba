# SPDX-License-Identifier: Apache-2.0
"""Commands whose first argument is the program to run, such as `drone-bridge emulate testbed`."""

import argparse
import importlib
from collections.abc import Mapping, Sequence


def run_named(
    command: str, what: str, programs: Mapping[str, str], modules: Mapping[str, str], argv: Sequence[str]
) -> int:
    """Run the program that `argv` names with the options after it; returns its exit status.

    `command` runs them, `what` is one of them; `programs` has a summary of each, and `modules` where its main is.
    """
    parser = argparse.ArgumentParser(
        prog=f"drone-bridge {command}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=what,
        epilog="programs:\n" + "\n".join(f"  {name:10} {summary}" for name, summary in programs.items()),
    )
    parser.add_argument(
        "program", choices=programs, metavar="program", help=f"'drone-bridge {command} <program> --help' explains"
    )
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="...", help="options of the program")
    chosen = parser.parse_args(argv or ["--help"])
    status: int = importlib.import_module(modules[chosen.program]).main(chosen.options)
    return status
