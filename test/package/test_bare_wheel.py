# SPDX-License-Identifier: Apache-2.0
"""The wheel on a machine without ROS, in an environment without other packages."""

import os
import re
import subprocess
import sys
import venv

import pytest
from processes import TIMEOUT_S, Process
from repository import ROOT

from drone_bridge.kind import OWN

pytestmark = pytest.mark.exhaustive

NODES = ("testbed_bridge", "recorder", "drone_controller", "vehicle_model")
# These need nothing but Python itself.
BARE_CODECS = tuple(f"{name}.codec" for name in OWN)
# And these, of the emulators.
BARE_EMULATORS = ("robot",)


class Installation:
    """Virtual environment with the wheel."""

    def __init__(self, folder):
        self.bin = folder / "bin"
        self.environment = {
            **{name: value for name, value in os.environ.items() if "ROS" not in name and "AMENT" not in name},
            "PYTHONPATH": "",
            "PYTHONNOUSERSITE": "1",
            "LD_LIBRARY_PATH": "",
            "PATH": os.pathsep.join([str(self.bin), "/usr/bin", "/bin"]),
        }

    def run(self, *command):
        return subprocess.run(
            [self.bin / command[0], *command[1:]],
            env=self.environment,
            cwd=self.bin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pip")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
    alone = ["--no-deps", "--no-index"]
    sources = folder / "sources"
    sources.mkdir()
    for path in ROOT.iterdir():
        if path.name not in ("build", "test") and not path.name.startswith(".") and path.suffix != ".egg-info":
            (sources / path.name).symlink_to(path)

    # With the package in PYTHONPATH, as in a sourced workspace, pip would consider it installed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*command):
        subprocess.run([*pip, *command], check=True, timeout=300, cwd=folder, env=environment)

    run("wheel", *alone, "--no-build-isolation", "--wheel-dir", folder, sources)
    (wheel,) = folder.glob("drone_bridge-*.whl")
    venv.create(folder / "venv", with_pip=False)
    run("--python", folder / "venv" / "bin" / "python", "install", *alone, wheel)
    return Installation(folder / "venv")


def test_one_command_is_installed_and_no_node(installation):
    scripts = {path.name for path in installation.bin.iterdir()}
    assert "drone-bridge" in scripts
    assert not scripts.intersection(NODES)
    assert not any(name.endswith("_emulator") for name in scripts)


def test_help_lists_available_commands_and_those_that_need_ros(installation):
    done = installation.run("drone-bridge", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    works, _, needs = done.stdout.partition("commands that need ROS 2:")
    assert "emulate" in works
    assert "launch" not in works
    assert "report     write a report of a bag as one HTML page" in works
    assert {"launch", "demo"} <= set(needs.replace(",", " ").split())
    assert "ROS 2 is not available here" in needs


@pytest.mark.parametrize("command", [[], ["emulate"]])
def test_without_an_argument_the_choice_is_listed(installation, command):
    done = installation.run("drone-bridge", *command)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {' '.join(['drone-bridge', *command])} [-h]")


def test_the_version_is_printed(installation):
    assert re.fullmatch(r"drone-bridge \d+\.\d+\.\d+\n", installation.run("drone-bridge", "--version").stdout)


@pytest.mark.parametrize("command", ["launch", "demo"])
def test_a_command_that_needs_ros_is_refused_with_that_reason(installation, command):
    done = installation.run("drone-bridge", command, "testbed.launch.xml")
    assert done.returncode == 2
    assert done.stderr.startswith(f"drone-bridge {command}: this command needs ROS 2")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("codec", BARE_CODECS)
def test_a_codec_needs_nothing_else(installation, codec):
    done = installation.run("python", "-c", f"import drone_bridge.{codec}, drone_bridge.net.tcp")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("emulator", ["testbed", "dronegui", "robot", "simulator", "telemetry"])
def test_an_emulator_runs_or_names_the_missing_package(installation, emulator):
    done = installation.run("drone-bridge", "emulate", emulator, "--duration", "0", "--port", "0")
    if emulator in BARE_EMULATORS:
        assert done.returncode == 0, done.stderr
    if done.returncode:
        assert done.returncode == 2
        assert f"drone-bridge emulate {emulator}: this needs the Python package" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_emulator_serves(installation):
    command = [installation.bin / "drone-bridge", "emulate", "robot", "--port", "0", "--discovery-port", "0"]
    with Process(*command, env=installation.environment) as robot:
        robot.wait_for_line("listening")
