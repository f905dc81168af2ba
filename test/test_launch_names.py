# SPDX-License-Identifier: Apache-2.0
"""Arguments of launch files: a file that includes ours keeps its own, whatever common names they have."""

import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from xml.etree import ElementTree

import pytest
from ament_index_python.packages import get_package_share_directory

from drone_bridge.tools.launch import renamed
from drone_bridge.tools.launch.arguments import declared_in
from drone_bridge.tools.launch.command import main
from drone_bridge.tools.launch.evaluate import evaluate
from drone_bridge.tools.launch.parse import load

LAUNCH = Path(get_package_share_directory("drone_bridge")) / "launch"
PART = LAUNCH / "parts" / renamed.PART
OLD_NAMES = sorted({name for names in renamed.RENAMED.values() for name in names})
# What other files have as well means the same there: these are taken from a file that includes ours.
SHARED = {
    *("emulate", "control", "relay", "operate", "record", "bag", "compression", "rviz", "view", "steer", "namespace"),
    *("view_port", "view_host", "frame_prefix", "params_file", "log_level", "use_sim_time"),
}
# Words that nobody has for anything else.
OURS_ALONE = {"gusts", "obstacles", "rover", "dialect", "subsystems", "quirks"}

each_owner = pytest.mark.parametrize("owner", renamed.RENAMED)


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch):
    monkeypatch.setattr(renamed, "_warned_about", set())


def including(tmp_path, owner, arguments="", given=()):
    """Write a launch file that includes ours; return the processes without the names of their parameter files."""
    path = tmp_path / "mine.launch.xml"
    include = f'<include file="{LAUNCH}/{owner}.launch.xml">{"".join(given)}</include>'
    path.write_text(f"<launch>{arguments}{include}</launch>")
    warnings = []
    processes = evaluate(path, {}, tmp_path, warnings.append)
    return [(process.command, list(process.files.values())) for process in processes], warnings


def everything(owner):
    others = {"relay", "operate"} if owner.endswith("_server") else {"control"}
    return [f'<arg name="{name}" value="true"/>' for name in ("emulate", "record", "view", *others)]


def test_every_launch_file_says_which_names_it_had():
    assert {path.name.removesuffix(".launch.xml") for path in LAUNCH.glob("*.launch.xml")} == renamed.RENAMED.keys()


@each_owner
def test_no_name_is_one_that_other_files_have(owner):
    names = declared_in(load(LAUNCH / f"{owner}.launch.xml")).arguments.keys()
    assert names - SHARED - OURS_ALONE == {name for name in names - SHARED if "_" in name}
    assert not names & renamed.RENAMED[owner].keys()
    assert names >= set(renamed.RENAMED[owner].values())


@each_owner
def test_what_an_including_file_has_under_common_names_changes_nothing(tmp_path, owner):
    expected, no_warnings = including(tmp_path, owner, given=everything(owner))
    own = "".join(f'<arg name="{name}" default="accident"/>' for name in OLD_NAMES)
    processes, warnings = including(tmp_path, owner, own, everything(owner))
    assert processes == expected
    assert no_warnings == []
    # Whoever meant it hears of it, once of each name.
    assert warnings[0].startswith(f"{owner}.launch.xml does not read '")
    named = [name for warning in warnings for name in re.findall(r"'(\w+)'", warning.partition(" of the file ")[0])]
    assert len(set(named)) == len(named) >= len(renamed.RENAMED[owner])


def test_what_an_including_file_passes_is_taken(tmp_path):
    given = [*everything("landing"), '<arg name="rover_speed" value="0.7"/>', '<arg name="telemetry_port" value="9"/>']
    processes, warnings = including(tmp_path, "landing", '<arg name="speed" default="accident"/>', given)
    texts = [text for _, files in processes for text in files]
    assert any(" --rover-speed 0.7 " in " ".join(command) for command, _ in processes)
    assert any("port: 9" in text for text in texts)
    assert len(warnings) == 1
    assert warnings[0].endswith("pass 'rover_speed'")


@each_owner
def test_an_old_name_works_where_it_is_typed(tmp_path, capfd, owner):
    path = LAUNCH / f"{owner}.launch.xml"
    values = {new: f"{number}" for number, new in enumerate(renamed.RENAMED[owner].values())}
    choices = declared_in(load(path)).arguments
    values |= {new: choices[new].choices[-1] for new in values if choices[new].choices}
    values |= {new: str(LAUNCH.parent / "config" / "no_parameters.yaml") for new in values if new.endswith("_items")}
    values |= {new: "true" for new in values if new.endswith("_running")}
    flags = dict.fromkeys(("emulate", "relay", "operate") if owner.endswith("_server") else ("emulate",), "true")
    warnings = []
    old = {old: values[new] for old, new in renamed.RENAMED[owner].items()}
    assert evaluate(path, old | flags, tmp_path, warnings.append) == evaluate(path, values | flags, tmp_path)
    expected = {f"{old}:= is called {new}:= now" for old, new in renamed.RENAMED[owner].items()}
    assert {warning.partition(";")[0] for warning in warnings} == expected


def test_the_runner_warns_of_old_names_and_refuses_unknown_ones(capfd):
    assert main(["--dry-run", "testbed.launch.xml", "host:=192.0.2.9"]) == 0
    output = capfd.readouterr()
    assert "host: 192.0.2.9" in output.out
    assert output.err.startswith("drone-bridge launch: host:= is called testbed_host:= now; ")
    assert output.err.count("\n") == 1
    assert main(["--dry-run", "testbed.launch.xml", "speed:=1"]) == 2  # which it never had
    assert main(["--show-args", "testbed.launch.xml"]) == 0
    assert "'host'" not in capfd.readouterr().out


FILE = LAUNCH / "testbed.launch.xml"


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        (["ros2", "launch", "drone_bridge", "testbed.launch.xml", "host:=x", "port:=1:=2"], {"host", "port"}),
        (["ros2", "launch", "-d", str(FILE), "host:=x"], {"host"}),
        (["ros2", "launch", "mine", "testbed.launch.xml", "host:=x"], set()),  # a file of somebody else's
        (["ros2", "launch", "drone_bridge", "testbed_server.launch.xml", "host:=x"], set()),
        (["ros2", "launch", "mine.launch.xml", "host:=x"], set()),
        ([], set()),
    ],
)
def test_arguments_typed_after_the_file_are_found(words, typed):
    assert renamed.typed_after(FILE, words) == typed


class Part:
    """`old_names.launch.py` as `ros2 launch` runs it, which need not be installed."""

    def __init__(self, monkeypatch, *words):
        self.warnings = []
        if importlib.util.find_spec("launch") is None:
            modules = {
                "launch": {"LaunchContext": object, "LaunchDescription": lambda entities: entities},
                "launch.actions": {"OpaqueFunction": lambda function: function},
                "launch.logging": {"get_logger": lambda _: None},
            }
            for name, content in modules.items():
                module = ModuleType(name)
                vars(module).update(content)
                monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr(sys, "argv", list(words))
        loader = importlib.machinery.SourceFileLoader("old_names", str(PART))
        self._module = importlib.util.module_from_spec(importlib.util.spec_from_loader("old_names", loader))
        loader.exec_module(self._module)
        monkeypatch.setattr(self._module, "get_logger", lambda _: SimpleNamespace(warning=self.warnings.append))

    def run(self, **configurations):
        assert self._module.generate_launch_description()
        self._module._rename(SimpleNamespace(launch_configurations=configurations))
        return configurations


def test_ros2_launch_takes_an_old_name_that_was_typed(monkeypatch):
    part = Part(monkeypatch, "ros2", "launch", "drone_bridge", "robot.launch.xml", "host:=x", "speed:=1")
    given = part.run(old_names_of="robot", host="x", speed="1", rover_speed="2", emulate="true")
    assert given == {
        "old_names_of": "robot",
        "robot_host": "x",
        "rover_speed": "2",
        "emulate": "true",
    }  # the new one wins
    assert [warning.partition(" ")[0] for warning in part.warnings] == ["host:=", "speed:="]


def test_ros2_launch_leaves_an_including_file_s_values_alone(monkeypatch):
    part = Part(monkeypatch, "ros2", "launch", "mine.launch.xml", "host:=x")
    given = {"old_names_of": "robot", "host": "x", "width": "3"}
    assert part.run(**given) == given
    assert part.run(**given) == given
    assert [re.sub(" of the file.*", "", warning) for warning in part.warnings] == [
        "robot.launch.xml does not read 'host'"
    ]


def test_ros2_launch_ends_with_a_process_that_ends_the_launch(monkeypatch):
    """`ends_launch.launch.py`, which `ros2 launch` needs because humble has no on_exit in XML."""
    if importlib.util.find_spec("launch") is None:
        modules = {
            "launch": dict.fromkeys(("LaunchContext", "LaunchDescriptionEntity"), object) | {"LaunchDescription": list},
            "launch.actions": {"RegisterEventHandler": lambda handler: handler, "Shutdown": SimpleNamespace},
            "launch.event_handlers": {"OnProcessExit": SimpleNamespace},
            "launch.events": {},
            "launch.events.process": {"ProcessExited": object},
        }
        for name, content in modules.items():
            module = ModuleType(name)
            vars(module).update(content)
            monkeypatch.setitem(sys.modules, name, module)
    loader = importlib.machinery.SourceFileLoader("ends_launch", str(PART.parent / "ends_launch.launch.py"))
    part = importlib.util.module_from_spec(importlib.util.spec_from_loader("ends_launch", loader))
    loader.exec_module(part)
    assert part.generate_launch_description()
    for word, is_shut_down, actions in (("--ends-launch", False, 1), ("--other", False, 0), ("--ends-launch", True, 0)):
        event = SimpleNamespace(cmd=["testbed_emulator", word], process_name="testbed-1")
        assert len(part._end(event, SimpleNamespace(is_shutdown=is_shut_down))) == actions


@each_owner
def test_each_file_asks_for_old_names_before_it_declares_any(owner):
    first = ElementTree.parse(LAUNCH / f"{owner}.launch.xml").getroot()[0]
    assert first.get("file").endswith(f"/launch/parts/{renamed.PART}")
    assert [(one.get("name"), one.get("value")) for one in first] == [(renamed.OWNER, owner)]
