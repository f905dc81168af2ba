# SPDX-License-Identifier: Apache-2.0
"""Parameters from the package's launch files to their nodes: the user's own, time, log level, profile."""

import re
from pathlib import Path

import pytest
from ament_index_python.packages import get_package_share_directory
from repository import ROOT
from shipped import REQUIRED

from drone_bridge.tools.launch.evaluate import evaluate

SHARE = Path(get_package_share_directory("drone_bridge"))
LAUNCH_FILES = sorted((SHARE / "launch").glob("*.launch.xml"))
PROFILE = "FASTDDS_DEFAULT_PROFILES_FILE"

each_launch_file = pytest.mark.parametrize("path", LAUNCH_FILES, ids=lambda path: path.name)


def processes(path, tmp_path, **given):
    """Processes of a launch file with all options, except rviz."""
    others = {"relay": "true"} if path.name.endswith("_server.launch.xml") else {"control": "true"}
    return evaluate(
        path, {"emulate": "true", "record": "true", **others, **REQUIRED.get(path.name, {}), **given}, tmp_path
    )


def nodes(path, tmp_path, **given):
    return [process for process in processes(path, tmp_path, **given) if "__node:=" in " ".join(process.command)]


@each_launch_file
def test_every_node_gets_time_and_log_level(tmp_path, path):
    for process in nodes(path, tmp_path, use_sim_time="true", log_level="debug"):
        assert "--ros-args --log-level debug" in " ".join(process.command), process.label
        assert any("use_sim_time: true" in text for text in process.files.values()), process.label


@each_launch_file
def test_time_is_the_machine_s_without_a_publisher_of_clock(tmp_path, path):
    texts = [text for process in processes(path, tmp_path) for text in process.files.values()]
    assert any("use_sim_time: false" in text for text in texts)
    assert not any("use_sim_time: true" in text or "publish_clock: true" in text for text in texts)


@pytest.mark.parametrize("name", ["testbed", "simulator", "telemetry"])
def test_a_launch_that_publishes_clock_uses_it(tmp_path, name):
    for process in nodes(SHARE / "launch" / f"{name}.launch.xml", tmp_path, publish_clock="true"):
        assert any("use_sim_time: true" in text for text in process.files.values()), process.label


@each_launch_file
def test_the_user_s_own_profile_takes_precedence(tmp_path, path, monkeypatch):
    monkeypatch.setenv(PROFILE, "/mine.xml")
    assert {process.environment[PROFILE] for process in nodes(path, tmp_path)} == {"/mine.xml"}
    monkeypatch.delenv(PROFILE)
    assert {process.environment[PROFILE] for process in nodes(path, tmp_path)} == {str(SHARE / "config/fastdds.xml")}


def test_a_file_that_includes_ours_keeps_its_common_names(tmp_path):
    """As in docs/launch.md."""
    page = (SHARE / "launch" / "testbed.launch.xml", "docs/launch.md")
    text = ROOT.joinpath(page[1]).read_text()
    path = tmp_path / "mine.launch.xml"
    path.write_text(re.search(r"```xml\n(<launch>.*?</launch>)\n```", text, re.DOTALL)[1])
    emulator, bridge = evaluate(path, {}, tmp_path)
    assert " --rate 60.0 --width 320 --height 200 " in " ".join(emulator.command)
    assert "__ns:=/field/drone1" in bridge.command
    assert any("host: 127.0.0.1" in text for text in bridge.files.values())
