# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge new NAME`: write the package of a new robot, described in one class, which runs unchanged.

The description is the source of `robot_class.two_wheels` under another name, so it is covered by its tests.
"""

import argparse
import keyword
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from drone_bridge.kind import ROBOTS, kinds

TEMPLATE = "drone_bridge.robot_class.two_wheels"
REFUSED = 2

#: The package has its own build backend: setuptools would be downloaded, and a robot's own Wi-Fi has no internet.
PYPROJECT = """[build-system]
requires = []
build-backend = "build_{name}"
backend-path = ["."]
"""
BACKEND = '''"""Package of {name} for pip, without a download. Its entry point registers the robot with drone_bridge."""

from pathlib import Path
from zipfile import ZipFile

NAME, VERSION, ENTRY_POINT = "{name}_robot", "0.1", "{name} = {name}:{cls}"
HERE, INFO = Path(__file__).parent, f"{{NAME}}-{{VERSION}}.dist-info"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _write(wheel_directory, {{"{name}.py": (HERE / "{name}.py").read_text()}})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _write(wheel_directory, {{f"{{NAME}}.pth": str(HERE)}})


def _write(folder, files):
    files[f"{{INFO}}/METADATA"] = f"Metadata-Version: 2.1\\nName: {{NAME}}\\nVersion: {{VERSION}}\\n"
    files[f"{{INFO}}/WHEEL"] = "Wheel-Version: 1.0\\nGenerator: {name}\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    files[f"{{INFO}}/entry_points.txt"] = f"[drone_bridge.protocols]\\n{{ENTRY_POINT}}\\n"
    files[f"{{INFO}}/RECORD"] = "".join(f"{{name}},,\\n" for name in [*files, f"{{INFO}}/RECORD"])
    with ZipFile(Path(folder, f"{{NAME}}-{{VERSION}}-py3-none-any.whl"), "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return Path(wheel.filename).name
'''
TESTS = '''"""Tests that `drone-bridge check {name}` can't have: signs, units, and the bytes of the robot's document."""

from {name} import {cls}

from drone_bridge.robot_class import BodyVelocity
from drone_bridge.robot_class.robot import misspelt


def test_each_attribute_is_used():
    assert [*misspelt({cls})] == []


def test_forward_and_left_are_positive():
    assert {cls}().encode_command(BodyVelocity(0.3, turn=1.0)) == b"drive 150 450\\n"


def test_odometry_is_in_metres_and_radians():
    told = {cls}().decode_report(b"at 1500 -200 785 100 300 12300\\n")
    assert told.position == (1.5, -0.2, 0.0)
    assert (told.yaw, told.voltage) == (0.785, 12.3)
    assert told.velocity.turn > 0
'''
README = """# {name} for ROS 2, by drone_bridge

    pip install -e .                     # once: registers the robot with drone_bridge, also without internet
    drone-bridge launch vehicle.launch.xml robot:={name} emulate:=true view:=true     # drives an emulated one
    pip install 'drone_bridge[check]'    # once: for the next two
    pytest                               # signs and units
    drone-bridge check {name}            # stops after any fault?
    drone-bridge launch vehicle.launch.xml robot:={name} robot_host:=192.168.1.5 view:=true

`{name}.py` is a fictitious robot. Replace its methods one by one by those of your robot.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="drone-bridge new",
        description="Write the package of a new robot: a class that runs unchanged, with tests and a README.",
    )
    parser.add_argument("name", help="name of the robot: lowercase letters, digits and underscores")
    parser.add_argument("--folder", type=Path, help="new folder for the package (default: NAME)")
    options = parser.parse_args(arguments)
    name, folder = options.name, options.folder or Path(options.name)
    if problem := _problem_with(name) or (f"{folder} exists already." if folder.exists() else ""):
        print(f"drone-bridge new: {problem}", file=sys.stderr)
        return REFUSED
    cls = _class_name(name)
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text(_description(name, cls))
    files = {f"test_{name}.py": TESTS, "pyproject.toml": PYPROJECT, f"build_{name}.py": BACKEND, "README.md": README}
    for file, text in files.items():
        (folder / file).write_text(text.format(name=name, cls=cls))
    print((folder / "README.md").read_text().replace("pip install -e .", f"pip install -e {folder}"), end="")
    return 0


def _problem_with(name: str) -> str:
    """Return the reason why a name can't be used, as a sentence; empty if it can."""
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        return f"the name {name!r} must consist of lowercase letters, digits and underscores, and begin with a letter."
    imported = re.findall(r"\w+", " ".join(re.findall("^from .* import (.*)$", _template(), re.MULTILINE)))
    if keyword.iskeyword(name) or _class_name(name) in imported:
        return f"the name {name!r}, or {_class_name(name)!r}, is reserved in Python or drone_bridge."
    if (name in kinds() and name not in ROBOTS) or find_spec(name):  # one of `robots/` may be replaced
        return f"the name {name!r} is used by an installed package."
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
    text = _template().partition("\n")[2]  # without the line of our licence, since the robot is the user's
    text = text.replace("which `drone-bridge new` copies: lines", "to be replaced by yours: lines")
    return text.replace("two_wheels", name).replace("TwoWheels", cls)
