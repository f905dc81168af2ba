# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge new NAME`: write the package of a new robot, described in one class, which runs unchanged.

The description is the source of `robot_class.two_wheels`, or with --serial of `two_wheels_serial`, under another name,
so it is covered by its tests.
"""

import keyword
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from drone_bridge.kind import ROBOTS, kinds
from drone_bridge.tools.command_parser import CommandParser

TEMPLATE = "drone_bridge.robot_class.two_wheels"
REFUSED = 2

#: The package has its own build backend: setuptools would be downloaded, and a robot's own Wi-Fi has no internet.
PYPROJECT = """[build-system]
requires = []
build-backend = "build_{name}"
backend-path = ["."]

[tool.pytest.ini_options]
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

import pytest
from {name} import {cls}

from drone_bridge.robot_class import BodyVelocity
from drone_bridge.robot_class.robot import misspelt


def test_each_attribute_is_used():
    assert [*misspelt({cls})] == []


def test_forward_and_left_are_positive():
    assert {cls}().encode_command(BodyVelocity(0.3, turn=1.0)) == {command}


def test_odometry_is_in_metres_and_radians():
    robot, reports = {cls}(), {reports}
    told = [robot.decode_report(report) for report in reports][-1]
    assert (*told.position[:2], told.yaw) == pytest.approx({pose}, abs=0.001)
    assert told.voltage == 12.3
    assert told.velocity.turn > 0
'''
#: What differs in the files of the two templates.
TCP = {
    "command": r'b"drive 150 450\n"',
    "reports": r'[b"at 1500 -200 785 100 300 12300\n"]',
    "pose": "(1.5, -0.2, 0.785)",
    "link": "robot_host:=192.168.1.5",
}
SERIAL = {
    "command": r'b"\xaa\x55\x05\x02\x96\x00\xc2\x01\xa0"',
    "reports": '[bytes.fromhex(f"aa55 0903 {each}") for each in ("0000 f0ff 0000 0c30 c9", "e803 0000 2000 0c30 ad")]',
    "pose": "(0.012, 0.0, 0.0267)",
    "link": "robot_serial:=/dev/ttyUSB0",
}
README = """# {name} for ROS 2, by drone_bridge

    pip install -e {here}                     # once: registers the robot with drone_bridge, also without internet
    drone-bridge launch vehicle.launch.xml robot:={name} emulate:=true view:=true     # drives an emulated one
    pip install 'drone_bridge[check]'    # once: for the next two
    pytest {here}                             # signs and units
    drone-bridge check {name}            # stops after any fault?
    drone-bridge launch vehicle.launch.xml robot:={name} {link} view:=true

`{name}.py` is a fictitious robot. Replace its methods one by one by those of your robot.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files; return the exit status."""
    parser = CommandParser(
        prog="drone-bridge new",
        description="Write the package of a new robot: a class that runs unchanged, with tests and a README.",
    )
    parser.add_argument("name", help="name of the robot: lowercase letters, digits and underscores")
    parser.add_argument("--serial", action="store_true", help="binary packets on a serial line, wheels that count")
    parser.add_argument("--folder", type=Path, help="new folder for the package (default: NAME)")
    options = parser.parse_args(arguments)
    name, folder = options.name, options.folder or Path(options.name)
    if problem := _problem_with(name) or (f"{folder} exists already." if folder.exists() else ""):
        print(f"drone-bridge new: {problem}", file=sys.stderr)
        return REFUSED
    cls = _class_name(name)
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text(_description(name, cls, "_serial" if options.serial else ""))
    values = {"name": name, "cls": cls, "here": ".", **(SERIAL if options.serial else TCP)}
    files = {f"test_{name}.py": TESTS, "pyproject.toml": PYPROJECT, f"build_{name}.py": BACKEND, "README.md": README}
    for file, text in files.items():
        (folder / file).write_text(text.format(**values))
    print(README.format(**{**values, "here": folder}), end="")
    return 0


def _problem_with(name: str) -> str:
    """Return the reason why a name can't be used, as a sentence; empty if it can."""
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        return f"the name {name!r} must consist of lowercase letters, digits and underscores, and begin with a letter."
    imported = re.findall(r"\w+", " ".join(re.findall("^from .* import (.*)$", _template("_serial"), re.MULTILINE)))
    if keyword.iskeyword(name) or _class_name(name) in imported:
        return f"the name {name!r}, or {_class_name(name)!r}, is reserved in Python or drone_bridge."
    if (name in kinds() and name not in ROBOTS) or find_spec(name):  # one of `robots/` may be replaced
        return f"the name {name!r} is used by an installed package."
    return ""


def _class_name(name: str) -> str:
    return "".join(map(str.capitalize, name.split("_")))


def _template(variant: str = "") -> str:
    spec = find_spec(TEMPLATE + variant)
    assert spec
    assert spec.origin
    return Path(spec.origin).read_text()


def _description(name: str, cls: str, variant: str) -> str:
    """Return a template's source under another name."""
    text = _template(variant).partition("\n")[2]  # without the line of our licence, since the robot is the user's
    text = re.sub("copied by `drone-bridge new.*`", "to be replaced by yours", text)
    return re.sub("two_wheels(_serial)?", name, re.sub("TwoWheels(Serial)?", cls, text))
