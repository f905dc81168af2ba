# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge emulate`: emulated vehicles, without hardware and without ROS."""

from collections.abc import Sequence
from typing import Final

from drone_bridge.tools.subcommands import run_named

EMULATORS: Final = {
    "testbed": "a drone with two cameras in a seeded world",
    "dronegui": "a drone behind its control GUI",
    "robot": "a tracked robot",
    "simulator": "an underwater simulator",
    "landing": "a drone without GPS above a rover, and its telemetry",
}


def main(argv: Sequence[str]) -> int:
    """Run the emulator that `argv` names with the options after it; returns its exit status."""
    modules = {name: f"drone_bridge.emulators.{name}.__main__" for name in EMULATORS}
    return run_named("emulate", "Emulate a vehicle.", EMULATORS, modules, argv)
