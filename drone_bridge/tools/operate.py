# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge operate`: a legacy operator that follows a plan, without ROS."""

from collections.abc import Sequence
from typing import Final

from drone_bridge.tools.subcommands import run_named

OPERATORS: Final = {
    "testbed": "an autopilot that flies by body rates and thrust",
    "dronegui": "a client of the control GUI",
    "robot": "a driver of a tracked robot",
    "simulator": "a client of the underwater simulator",
    "telemetry": "a program that answers the landing challenge's telemetry with commands",
}


def main(argv: Sequence[str]) -> int:
    """Run the operator that `argv` names with the options after it; returns its exit status."""
    modules = {name: f"drone_bridge.operators.{name}" for name in OPERATORS}
    return run_named("operate", "Steer a vehicle as a legacy program does.", OPERATORS, modules, argv)
