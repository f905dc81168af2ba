# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge emulate` and `drone-bridge operate`: emulated vehicles and scripted operators, without ROS."""

import argparse
from collections.abc import Sequence

from drone_bridge.kind import Program, kinds, load, unloadable
from drone_bridge.programs.options import known
from drone_bridge.tools.command_parser import CommandParser


def emulate(argv: Sequence[str]) -> int:
    """Run the emulator that `argv` names with the options after it; returns its exit status."""
    if any(word.partition("=")[0] == "--replay" for word in argv):
        status: int = load("drone_bridge.tools.wire.replay:main")(argv)  # which needs mcap
        return status
    return _run(
        "emulate",
        "Emulate a vehicle, or replay a wire log or a pcap as one (--replay FILE).",
        [each for kind in kinds().values() if (each := kind.emulator)],
        argv,
    )


def operate(argv: Sequence[str]) -> int:
    """Run the operator that `argv` names with the options after it; returns its exit status."""
    what = "Steer a vehicle as a legacy program does: an operator that follows a plan."
    return _run("operate", what, [each for kind in kinds().values() if (each := kind.operator)], argv)


def _run(command: str, what: str, programs: Sequence[Program], argv: Sequence[str]) -> int:
    by_name = {program.name: program for program in programs}
    parser = CommandParser(
        prog=f"drone-bridge {command}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=what,
        epilog="programs:\n" + "\n".join(f"  {each.name:10} {each.summary}" for each in programs),
    )
    parser.add_argument(
        "program", type=known(by_name, unloadable()), help=f"'drone-bridge {command} <program> --help' explains"
    )
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="...", help="options of the program")
    chosen = parser.parse_args(argv or ["--help"])
    status: int = load(by_name[chosen.program].main)(chosen.options)
    return status
