# SPDX-License-Identifier: Apache-2.0
"""Marks of one team: each flight of its node to the target is a test. See docs/course.md.

TEAM=7 PILOT='python3 pilot.py' pytest flights.py --junitxml marks.xml
"""

import os
import shlex
import signal
import subprocess

import pytest

TEAM = int(os.environ.get("TEAM", "1"))
PORT = str(8000 + TEAM)
LIMIT_S = os.environ.get("LIMIT_S", "60")
os.environ["ROS_DOMAIN_ID"] = str(TEAM)
PILOT = shlex.split(os.environ.get("PILOT", "python3 pilot.py"))
BRIDGE = ["drone-bridge", "run", "testbed_bridge", "--ros-args", "-p", f"port:={PORT}"]
WORLD = ["drone-bridge", "emulate", "testbed", "--port", PORT, "--realtime", "--until-reached", "--duration", LIMIT_S]


@pytest.mark.parametrize("wind", ["0 0 0", "1.5 0 0"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_target_is_reached_in_time(seed: int, wind: str) -> None:
    """The emulated testbed ends with 0 as soon as the drone is at the target, and with 1 if its time is over."""
    world = [*WORLD, "--seed", str(seed), "--wind", wind, "--trajectory", f"flight_{seed}_{wind.replace(' ', '_')}.csv"]
    with subprocess.Popen(BRIDGE) as bridge, subprocess.Popen(PILOT) as pilot:
        try:
            assert subprocess.call(world, timeout=300) == 0, f"The target was not reached within {LIMIT_S} s."
        finally:
            for process in (pilot, bridge):
                process.send_signal(signal.SIGINT)
