# SPDX-License-Identifier: Apache-2.0
"""Without optional libraries, every executable and command starts, or names the missing package in a sentence."""

import array
import configparser
import os
import subprocess
import sys

import pytest
from repository import ROOT
from sensor_msgs.msg import Image
from written_bags import write_bag

from drone_bridge.programs import missing_package
from drone_bridge.tools.doctor import command as doctor

OPTIONAL = ("cv2", "cv_bridge", "orjson", "pybase64", "rosbags", "mcap", "plotly", "foxglove")
#: What each of these can't do without; all other executables start.
NEEDED = {
    "drone_controller": {"cv2": "opencv-python-headless", "cv_bridge": "cv-bridge"},
    "pad_finder": {"cv2": "opencv-python-headless", "cv_bridge": "cv-bridge"},
    "recorder": {"mcap": "mcap"},
    "web_bridge": dict.fromkeys(("foxglove", "websockets"), "pip install foxglove-sdk 'websockets>=15' segno"),
    "telemetry_emulator": {"cv2": "opencv-python-headless"},
    "drone-bridge emulate telemetry": {"cv2": "opencv-python-headless"},
    "drone-bridge launch testbed.launch.xml": {"yaml": "PyYAML"},
    "drone-bridge demo testbed": {"rosbags": "rosbags"},
    "drone-bridge info bag": {"rosbags": "rosbags"},
    "drone-bridge wire bag": {"mcap": "mcap"},
    "drone-bridge play bag": {"rosbags": "rosbags"},
    "drone-bridge report bag": {"rosbags": "rosbags"},
    "-m drone_bridge.telemetry.vehicle.emulator": {"cv2": "opencv-python-headless"},
}
#: What these can't do without when they have read a bag with an image.
NEEDED_FOR_A_BAG = {"drone-bridge report": {"plotly": "plotly", "cv2": "opencv-python-headless"}}
HIDE = "import os, sys; sys.modules.update(dict.fromkeys(os.environ['HIDDEN'].split()))"


@pytest.fixture(scope="module")
def executables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bin")
    write = [sys.executable, ROOT / "cmake/write_executables.py", ROOT / "setup.cfg", folder]
    subprocess.run(write, check=True, timeout=60)
    return folder


@pytest.fixture
def run_without(tmp_path, executables):
    """run_without(modules, command, ...) runs a command where these modules are not installed."""
    (tmp_path / "sitecustomize.py").write_text(HIDE)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])

    def run(modules, command, *arguments):
        environment = os.environ | {"PYTHONPATH": path, "HIDDEN": " ".join(modules)}
        command = [sys.executable, command if command in ("-c", "-m") else executables / command, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.mark.parametrize(
    ("command", "module", "package"),
    [(command, module, package) for command, needed in NEEDED.items() for module, package in needed.items()],
)
def test_a_missing_package_is_reported_in_one_sentence(run_without, command, module, package):
    done = run_without([module], *command.split())
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(command.removeprefix("-m ").removesuffix(" bag").removesuffix(" testbed.launch.xml"))
    assert package in done.stderr


@pytest.mark.parametrize(
    ("command", "module", "package"),
    [(command, module, package) for command, needed in NEEDED_FOR_A_BAG.items() for module, package in needed.items()],
)
def test_a_package_missing_for_bags_is_reported_in_one_sentence(run_without, tmp_path, command, module, package):
    for other in NEEDED_FOR_A_BAG[command].keys() - {module}:
        pytest.importorskip(other, reason="rosdep has no key for plotly")
    image = Image(width=4, height=2, encoding="rgb8", step=12, data=array.array("B", range(24)))
    bag = write_bag(tmp_path / "bag", [("/image_raw", number, image) for number in range(1, 3)])
    done = run_without([module], *command.split(), bag)
    assert done.returncode == 2
    assert done.stderr == (
        f"{command}: this needs the Python package '{module}'. To install it: python3 -m pip install {package}\n"
    )


def test_everything_else_works_without_them(run_without):
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    lines = "".join(config["options.entry_points"].values()).strip().splitlines()
    targets = dict(map(str.strip, line.split("=")) for line in lines)
    modules = {target.partition(":")[0] for name, target in targets.items() if name not in NEEDED}
    assert len(modules) >= 10
    imports = "".join(f"import {module}\n" for module in sorted(modules))
    done = run_without(OPTIONAL, "-c", imports)
    assert (done.returncode, done.stderr) == (0, "")


def test_doctor_names_each_package_of_an_extra():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    lines = [
        line for name, lines in config["options.extras_require"].items() if name != "check" for line in lines.split()
    ]
    packages = {line.partition(">")[0] for line in lines} - {"pyyaml"}  # all nodes need that one
    assert packages <= {missing_package.DISTRIBUTIONS.get(name, name) for name in doctor.OPTIONAL}


def test_the_line_that_installs_it_is_one_that_pip_takes(monkeypatch, tmp_path):
    (tmp_path / "EXTERNALLY-MANAGED").touch()
    monkeypatch.setattr(missing_package.sysconfig, "get_path", lambda _: tmp_path)
    line = missing_package.install_command("rosbags")
    assert line == "python3 -m pip install rosbags"  # into this virtual environment
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert missing_package.install_command("rosbags").endswith("pip install --user --break-system-packages rosbags")


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("cv2", "sudo apt install python3-opencv"),
        ("cv_bridge", "sudo apt install ros-jazzy-cv-bridge"),
        ("plotly", "python3 -m pip install plotly"),
        ("pytest", "python3 -m pip install 'drone_bridge[check]'"),
    ],
)
def test_beside_the_ros_of_apt_it_is_installed_by_apt_if_that_has_it(monkeypatch, tmp_path, module, command):
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(missing_package.sysconfig, "get_path", lambda _: tmp_path)
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/ws/install/drone_bridge{os.pathsep}/opt/ros/jazzy")
    assert missing_package.install_command(module) == command
    monkeypatch.setenv("AMENT_PREFIX_PATH", "/srv/robostack")
    assert missing_package.install_command(module).startswith("python3 -m pip install")


def test_what_apt_installs_is_named_by_package_xml():
    package = (ROOT / "package.xml").read_text()
    for name in missing_package.APT.values():
        assert f">{name.removeprefix('ros-{}-').replace('-', '_') if 'ros-' in name else name}<" in package


@pytest.mark.parametrize("kind", ["msg", "action"])
def test_missing_messages_are_a_sentence(run_without, kind):
    done = run_without([f"drone_bridge.{kind}"], "drone_controller")
    assert done.stderr == (
        "drone_controller: this needs the messages of drone_bridge: pip install 'drone_bridge[ros]', or colcon build.\n"
    )
