# SPDX-License-Identifier: Apache-2.0
"""A robot's class that can't be loaded: every program that is asked for it ends with the reason."""

import os
import subprocess

import pytest
from processes import executable

CLASSES = {
    "SyntaxError: ": "class Broken(:\n",
    "No module named 'pyserial_of_mine'": "import pyserial_of_mine\n",
    "'sideways'": """
from drone_bridge.robot_class import Robot

class Broken(Robot):
    name = "broken"
    axes = {"sideways": 1.0}
    def encode_command(self, command): return b""
    def parse_command(self, packet): return None

KIND = Broken.KIND
""",
}
PROGRAMS = {
    "drone-bridge emulate": ("drone-bridge", "emulate", "broken"),
    "drone-bridge operate": ("drone-bridge", "operate", "broken"),
    "drone-bridge check": ("drone-bridge", "check", "broken"),
    "robot_class_emulator": ("robot_class_emulator", "broken"),
    "robot_class_bridge": ("robot_class_bridge", "broken"),
    "robot_class_server": ("robot_class_server", "broken"),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("reason", CLASSES)
def test_a_class_that_cannot_be_loaded_ends_with_the_reason(reason, program, tmp_path):
    (tmp_path / "broken.py").write_text(CLASSES[reason])
    metadata = tmp_path / "broken-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[drone_bridge.protocols]\nbroken = broken\n")
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    name, *words = PROGRAMS[program]
    done = subprocess.run(
        [executable(name), *words],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert "can't be loaded: broken: " in last
    assert reason in last
    assert "Traceback" not in done.stderr
