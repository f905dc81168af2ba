# SPDX-License-Identifier: Apache-2.0
"""all.launch.xml, configuration, views and docs are complete for each protocol, without extra entries."""

import re

import pytest
from repository import ROOT

from drone_bridge.kind import OWN, ROBOTS, kinds
from drone_bridge.tools.launch.arguments import declared_in
from drone_bridge.tools.launch.evaluate import evaluate
from drone_bridge.tools.launch.parse import load

ALL = ROOT / "launch" / "all.launch.xml"

NAMES = {kinds()[name].launch_file.removesuffix(".launch.xml"): kinds()[name] for name in OWN}
#: Not in all.launch.xml, which has an AR.Drone already, behind its GUI: its rates suit two processor cores.
ALONE = {"ardrone"}
each_system = pytest.mark.parametrize("system", NAMES)
each_of_all = pytest.mark.parametrize("system", [name for name in NAMES if name not in ALONE])


def test_each_launch_file_is_a_system():
    names = {path.name.removesuffix(".launch.xml") for path in ROOT.joinpath("launch").glob("*.launch.xml")}
    of_servers = {name for name in names if name.endswith("_server")}
    assert names - {"all", "vehicle"} - of_servers == {*NAMES, *ROBOTS}


@each_of_all
def test_its_nodes_are_started_in_its_namespace(tmp_path, system):
    given = {"emulate": "true", "control": "true", "view": "true"}
    started = {}
    for process in evaluate(ALL, given, tmp_path):
        command = " ".join(process.command)
        if name := re.search(rf"__node:=(\w+) .*__ns:=/{system}( |$)", command):
            started[name[1]] = "".join(process.files.values())
    kind = NAMES[system]
    controller = "rover_controller" if "rover" in kind.controller.node else "drone_controller"
    assert started.keys() == {f"{kind.name}_bridge", controller, "vehicle_model"}
    assert re.search(rf"\bmodel: '?{kind.model}\b", started["vehicle_model"])
    for parameters in started.values():
        assert "frame_prefix:" not in parameters or f"frame_prefix: {system}/" in parameters


def test_shared_nodes_are_started_once(tmp_path):
    given = dict.fromkeys(("emulate", "control", "view", "record"), "true") | {"log_level": "debug"}
    started = [" ".join(process.command) for process in evaluate(ALL, given, tmp_path)]
    assert [sum(f"__node:={name} " in command for command in started) for name in ("recorder", "web_bridge")] == [1, 1]
    assert all("--log-level debug" in command for command in started if "--ros-args" in command)


@each_of_all
def test_each_port_of_it_can_be_chosen_by_its_own_name(system, tmp_path):
    its_own = declared_in(load(ROOT / "launch" / f"{system}.launch.xml"))
    ports = [name for name in its_own if name.endswith("_port") and name != "view_port"]
    assert len(ports) >= len(NAMES[system].ports)
    for port in ports:
        texts = ["".join(process.files.values()) for process in evaluate(ALL, {port: "54321"}, tmp_path)]
        assert any("port: 54321" in text for text in texts), port


@each_system
def test_it_is_configured_viewed_and_described(system):
    bridge = f"{NAMES[system].name}_bridge"
    assert ROOT.joinpath("config", f"{bridge}.yaml").is_file()
    assert f" {bridge} = " in ROOT.joinpath("setup.cfg").read_text()
    (view,) = re.findall(r'"rviz_view" value="(\w+)"', ROOT.joinpath("launch", f"{system}.launch.xml").read_text())
    assert ROOT.joinpath("rviz", f"{view}.rviz").is_file()
    assert ROOT.joinpath("docs", f"{NAMES[system].name}.md").is_file()
