# SPDX-License-Identifier: Apache-2.0
"""Robots of drone_bridge/robots, and the installation of other packages with robots."""

import os
import shutil
import subprocess
import sys

from drone_bridge.robots import pioneer
from drone_bridge.robots.create2 import Create2
from drone_bridge.robots.kobuki import Kobuki
from drone_bridge.robots.pioneer import Pioneer
from drone_bridge.robots.robomaster import RoboMaster
from drone_bridge.robots.tello import Tello

__all__ = ["Create2", "Kobuki", "Pioneer", "RoboMaster", "Tello", "installed", "pioneer"]


def installed(folder, *sources):
    """Install packages into a folder with pip, offline. Return the environment with them."""
    copies = [shutil.copytree(source, folder / "source" / source.name) for source in sources]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet", "install", "--no-deps"]
    command = [*pip, "--no-build-isolation", "--no-index", "--target", folder / "site", *copies]
    subprocess.run(command, check=True, timeout=300, env={**os.environ, "PYTHONPATH": ""})
    return {"PYTHONPATH": os.pathsep.join([str(folder / "site"), os.environ.get("PYTHONPATH", "")])}
