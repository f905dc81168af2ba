# SPDX-License-Identifier: Apache-2.0
"""Robots of examples/ that are described in one class, with their modules."""

import importlib
import os
import shutil
import subprocess
import sys

from repository import ROOT

FOLDERS = {name: ROOT / "examples" / name for name in ("pioneer", "tello", "create2", "robomaster")}
sys.path += map(str, FOLDERS.values())
pioneer, tello, create2, robomaster = map(importlib.import_module, FOLDERS)
Pioneer, Tello, Create2, RoboMaster = pioneer.Pioneer, tello.Tello, create2.Create2, robomaster.RoboMaster


def installed(folder, *sources):
    """Install packages into a folder with pip, offline. Return the environment with them."""
    copies = [shutil.copytree(source, folder / "source" / source.name) for source in sources]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet", "install", "--no-deps"]
    command = [*pip, "--no-build-isolation", "--no-index", "--target", folder / "site", *copies]
    subprocess.run(command, check=True, timeout=300, env={**os.environ, "PYTHONPATH": ""})
    return {"PYTHONPATH": os.pathsep.join([str(folder / "site"), os.environ.get("PYTHONPATH", "")])}
