# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge emulate`: a vehicle without hardware, and without ROS."""

import argparse
import importlib
from collections.abc import Sequence
from typing import Final

EMULATORS: Final = {
    "testbed": "a drone with two cameras in a seeded world",
    "dronegui": "a drone behind its control GUI",
    "robot": "a tracked robot",
    "simulator": "an underwater simulator",
    "landing": "a drone without GPS above a rover, and its telemetry",
}


def main(argv: Sequence[str]) -> int:
    """Run the emulator that `argv` names with the options after it; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="drone-bridge emulate",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Be a vehicle to try things on.",
        epilog="emulators:\n" + "\n".join(f"  {name:10} {summary}" for name, summary in EMULATORS.items()),
    )
    parser.add_argument(
        "emulator", choices=EMULATORS, metavar="emulator", help="'drone-bridge emulate <emulator> --help' explains"
    )
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="...", help="what the emulator takes")
    chosen = parser.parse_args(argv)
    status: int = importlib.import_module(f"drone_bridge.emulators.{chosen.emulator}.__main__").main(chosen.options)
    return status
