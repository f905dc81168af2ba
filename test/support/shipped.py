# SPDX-License-Identifier: Apache-2.0
"""Launch files, executables and parameter files of the package."""

import configparser
import importlib

import pytest
import yaml
from own_robots import Pioneer
from repository import ROOT

LAUNCH_FILES = sorted((ROOT / "launch").glob("*.launch.xml"))
PARTS = sorted((ROOT / "launch" / "parts").glob("*.launch.xml"))  # which launch files include


#: Required arguments of launch files without a default vehicle.
REQUIRED = {"vehicle.launch.xml": {"robot": "pioneer"}}


def by_name(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.name)


def executables(section):
    """Return the modules of executables in lib/drone_bridge by name, from a section of setup.cfg."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    lines = config["options.entry_points"][section].strip().split("\n")
    return {name.strip(): main.strip().partition(":")[0] for name, _, main in (line.partition("=") for line in lines)}


NODES = executables("drone_bridge.nodes")
EXECUTABLES = NODES | executables("drone_bridge.programs")
#: Modules with the parameters of nodes that do not have them in their own module.
DECLARING = {"recorder": "drone_bridge.tools.record.settings", "web_bridge": "drone_bridge.tools.web.node"}


def declared(node):
    """Return the declarations of a node's parameters by name."""
    if node == "web_bridge":
        pytest.importorskip("foxglove", reason="web_bridge needs foxglove-sdk, for which rosdep has no key")
    if node.startswith("robot_class_"):
        return {each.name: each for each in getattr(Pioneer.parts, f"{node.rpartition('_')[2]}_parameters")}
    module = importlib.import_module(DECLARING.get(node, NODES[node]))
    return {each.name: each for each in module.PARAMETERS}


def parameters_in(text):
    """Return the parameters in the text of a file: {node: {name: value}}."""
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
