# SPDX-License-Identifier: Apache-2.0
"""Launch files, executables and parameter files, as they are shipped."""

import configparser
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
LAUNCH_FILES = sorted((ROOT / "launch").glob("*.launch.xml"))
PARTS = sorted((ROOT / "launch" / "parts").glob("*.launch.xml"))  # which launch files include


def by_name(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.name)


def executables():
    """The names in lib/drone_bridge, by section of setup.cfg."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    sections = config["options.entry_points"].items()
    return {section: {line.split("=")[0].strip() for line in lines.strip().split("\n")} for section, lines in sections}


NODES = executables()["drone_bridge.nodes"]
EXECUTABLES = NODES | executables()["drone_bridge.programs"]


def parameters_in(text):
    """The parameters in the text of a file: {node: {name: value}}."""
    return {
        pattern.removeprefix("/**/"): dict(flat(content["ros__parameters"]))
        for pattern, content in (yaml.safe_load(text) or {}).items()
    }


def flat(parameters, prefix=""):
    for name, value in parameters.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
