# SPDX-License-Identifier: Apache-2.0
"""The emulated vehicles of a fleet, each in a process of its own, which the launch runner starts and stops."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence

from drone_bridge.tools.fleet.plan import Vehicle
from drone_bridge.tools.launch.processes import LONGEST_STOP_S, end_with_parent

COMMAND = "drone_bridge.tools.cli"


def start_emulators(vehicles: Sequence[Vehicle]) -> "subprocess.Popen[str] | None":
    """Start the emulators of those vehicles that have one; return the runner that they are children of."""
    commands = {
        f"{vehicle.name} emulator": [
            *(sys.executable, "-m", COMMAND, "emulate", vehicle.kind.emulator.name),
            *vehicle.emulator_options,
        ]
        for vehicle in vehicles
        if vehicle.emulate is not None
    }
    if not commands:
        return None
    runner = subprocess.Popen(
        [sys.executable, "-m", "drone_bridge.tools.launch.processes"],
        stdin=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C goes to the bridges, whose last commands the emulators still take
        preexec_fn=end_with_parent,  # noqa: PLW1509 -- it takes no lock
    )
    assert runner.stdin
    with runner.stdin:
        json.dump(commands, runner.stdin)
    return runner


def stop_emulators(runner: "subprocess.Popen[str]") -> None:
    """Stop them, and the runner."""
    runner.send_signal(signal.SIGTERM)
    try:
        runner.wait(2 * LONGEST_STOP_S)
    except subprocess.TimeoutExpired:
        runner.kill()
