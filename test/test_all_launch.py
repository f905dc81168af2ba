# SPDX-License-Identifier: Apache-2.0
"""all.launch.xml, configuration, views and docs have what each protocol needs, and no more."""

import re
from pathlib import Path

import pytest

from drone_bridge.kind import kinds
from drone_bridge.tools.launch.arguments import declared_in
from drone_bridge.tools.launch.evaluate import evaluate
from drone_bridge.tools.launch.parse import load

ROOT = Path(__file__).parent.parent
ALL = ROOT / "launch" / "all.launch.xml"

NAMES = {kind.launch_file.removesuffix(".launch.xml"): kind for kind in kinds().values()}
each_system = pytest.mark.parametrize("system", NAMES)


def elements(root, tag):
    for child in root.children:
        if child.tag == tag:
            yield child
        yield from elements(child, tag)


def arguments_handed_to(system):
    include = next(
        include
        for include in elements(load(ALL), "include")
        if include.attributes["file"].endswith(f"/launch/{system}.launch.xml")
    )
    return {argument.attributes["name"]: argument.attributes["value"] for argument in include.named("arg")}


def test_each_launch_file_is_a_system():
    names = {path.name.removesuffix(".launch.xml") for path in ROOT.joinpath("launch").glob("*.launch.xml")}
    of_servers = {name for name in names if name.endswith("_server")}
    assert names - {"all", "fleet"} - of_servers == set(NAMES)


@each_system
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


@each_system
def test_it_passes_on_every_argument_that_both_files_have(system):
    """An included file would otherwise take the value of the file around it."""
    its_own = declared_in(load(ROOT / "launch" / f"{system}.launch.xml")).arguments.keys()
    recorder = {"bag", "compression"}  # which `record` switches off
    of_all = {argument.attributes["name"] for argument in load(ALL).named("arg")}
    assert of_all & its_own - recorder <= arguments_handed_to(system).keys()


@each_system
def test_each_port_of_it_can_be_chosen(system):
    declared = declared_in(load(ALL)).arguments
    handed = arguments_handed_to(system)
    its_own = declared_in(load(ROOT / "launch" / f"{system}.launch.xml")).arguments
    ports = {name for name in its_own if name.endswith("_port")}
    assert len(ports - {"view_port"}) >= len(NAMES[system].ports)
    for port in ports:
        assert handed[port].removeprefix("$(var ").removesuffix(")") in declared


@each_system
def test_it_is_configured_viewed_and_described(system):
    bridge = f"{NAMES[system].name}_bridge"
    assert ROOT.joinpath("config", f"{bridge}.yaml").is_file()
    assert f" {bridge} = " in ROOT.joinpath("setup.cfg").read_text()
    assert ROOT.joinpath("rviz", f"{system}.rviz").is_file()
    assert ROOT.joinpath("docs", f"{system}.md").is_file()
    assert f"\n| `{system}.launch.xml` |" in ROOT.joinpath("docs", "views.md").read_text()
