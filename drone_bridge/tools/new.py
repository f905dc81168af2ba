# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge new NAME`: write a robot of one's own in one class, which runs as it is.

The description is the source of `robot_class.two_wheels` under another name, so what is written has been tried.
"""

import argparse
import keyword
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from drone_bridge.kind import kinds

TEMPLATE = "drone_bridge.robot_class.two_wheels"
REFUSED = 2

PYPROJECT = """[project]
name = "{name}-robot"
version = "0.1"
[project.entry-points."drone_bridge.protocols"]
{name} = "{name}:{cls}"
[tool.setuptools]
py-modules = ["{name}"]
"""
TESTS = '''"""What `drone-bridge check {name}` can't know: signs, units, and the bytes of the robot's document."""

from {name} import {cls}

from drone_bridge.robot_class import BodyVelocity


def test_forward_and_left_are_positive():
    assert {cls}().drive(BodyVelocity(0.3, turn=1.0)) == b"drive 150 450\\n"


def test_odometry_is_in_metres_and_radians():
    told = {cls}().hear(b"at 1500 -200 785 100 300 12300\\n")
    assert told.position == (1.5, -0.2, 0.0)
    assert (told.yaw, told.voltage) == (0.785, 12.3)
    assert told.velocity.turn > 0
'''
README = """# {name} for ROS 2, by drone_bridge

    pip install -e .                     # once; from now on drone_bridge knows it
    drone-bridge launch vehicle.launch.xml robot:={name} emulate:=true view:=true     # drives an emulated one
    pytest                               # signs and units
    drone-bridge check {name}            # does it stop, whatever happens?
    drone-bridge launch vehicle.launch.xml robot:={name} robot_host:=192.168.1.5 view:=true

`{name}.py` is a fictitious robot. Replace its methods one by one by those of your robot.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="drone-bridge new",
        description="Write a robot of your own in one class, with tests, packaging and a README, that runs as it is.",
    )
    parser.add_argument("name", help="what it is called: lowercase letters, digits and underscores")
    parser.add_argument("--folder", type=Path, help="where to write it; a new folder of its name by default")
    options = parser.parse_args(arguments)
    name, folder = options.name, options.folder or Path(options.name)
    if problem := _problem_with(name) or (f"{folder} exists already." if folder.exists() else ""):
        print(f"drone-bridge new: {problem}", file=sys.stderr)
        return REFUSED
    cls = _class_name(name)
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text(_description(name, cls))
    for file, text in ((f"test_{name}.py", TESTS), ("pyproject.toml", PYPROJECT), ("README.md", README)):
        (folder / file).write_text(text.format(name=name, cls=cls))
    print((folder / "README.md").read_text().replace("pip install -e .", f"pip install -e {folder}"), end="")
    return 0


def _problem_with(name: str) -> str:
    """Return why a name can't be had, in a sentence; empty if it can."""
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        return f"the name {name!r} must be of lowercase letters, digits and underscores, and begin with a letter."
    imported = re.findall(r"\w+", " ".join(re.findall("^from .* import (.*)$", _template(), re.MULTILINE)))
    if keyword.iskeyword(name) or _class_name(name) in imported:
        return f"the name {name!r}, or {_class_name(name)!r}, has another meaning in Python or in drone_bridge."
    if name in kinds() or find_spec(name):
        return f"the name {name!r} is taken by an installed package."
    return ""


def _class_name(name: str) -> str:
    return "".join(map(str.capitalize, name.split("_")))


def _template() -> str:
    spec = find_spec(TEMPLATE)
    assert spec
    assert spec.origin
    return Path(spec.origin).read_text()


def _description(name: str, cls: str) -> str:
    """Return the template's source under another name."""
    text = _template().partition("\n")[2]  # without our licence: it is theirs
    text = text.replace("which `drone-bridge new` copies: lines", "to be replaced by yours: lines")
    return text.replace("two_wheels", name).replace("TwoWheels", cls)
