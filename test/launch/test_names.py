# SPDX-License-Identifier: Apache-2.0
"""Arguments of launch files: a file that includes ours keeps its own, even with common names."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from ament_index_python.packages import get_package_share_directory
from shipped import REQUIRED

from drone_bridge.tools.launch.evaluate import evaluate

LAUNCH = Path(get_package_share_directory("drone_bridge")) / "launch"
FILES = sorted(path.name.removesuffix(".launch.xml") for path in LAUNCH.glob("*.launch.xml"))
# Common arguments of other files, with another meaning.
COMMON = ("host", "port", "rate", "speed", "seed", "pattern", "width", "height", "plan", "pace", "scene", "trajectory")

each_file = pytest.mark.parametrize("name", FILES)


def including(tmp_path, name, arguments="", given=()):
    """Write a launch file that includes ours; return the processes without the names of their parameter files."""
    path = tmp_path / "mine.launch.xml"
    include = f'<include file="{LAUNCH}/{name}.launch.xml">{"".join(given)}</include>'
    path.write_text(f"<launch>{arguments}{include}</launch>")
    warnings = []
    processes = evaluate(path, {}, tmp_path, warnings.append)
    return [(process.command, list(process.files.values())) for process in processes], warnings


def everything(name):
    others = {"relay", "operate"} if name.endswith("_server") else {"control"}
    given = dict.fromkeys(("emulate", "record", "view", *others), "true") | REQUIRED.get(f"{name}.launch.xml", {})
    return [f'<arg name="{name}" value="{value}"/>' for name, value in given.items()]


@each_file
def test_arguments_of_an_including_file_with_common_names_have_no_effect(tmp_path, name):
    expected, _ = including(tmp_path, name, given=everything(name))
    own = "".join(f'<arg name="{each}" default="accident"/>' for each in COMMON)
    assert including(tmp_path, name, own, everything(name)) == (expected, [])


def test_ros2_launch_ends_with_a_process_that_ends_the_launch(monkeypatch):
    """`ends_launch.launch.py`, which `ros2 launch` needs because humble has no on_exit in XML."""
    found = importlib.util.find_spec("launch")
    if found is None or found.origin is None:  # otherwise our folder of that name was found: `python -m pytest`
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
    loader = importlib.machinery.SourceFileLoader("ends_launch", str(LAUNCH / "parts" / "ends_launch.launch.py"))
    part = importlib.util.module_from_spec(importlib.util.spec_from_loader("ends_launch", loader))
    loader.exec_module(part)
    assert part.generate_launch_description()

    def actions(program, word, status, *, is_shutdown=False):
        event = SimpleNamespace(cmd=[program, word], process_name="it-1", returncode=status)
        return len(part._end(event, SimpleNamespace(is_shutdown=is_shutdown)))

    assert actions("testbed_emulator", "--ends-launch", 0) == 1
    assert actions("testbed_emulator", "--other", 0) == 0
    assert actions("testbed_emulator", "--ends-launch", 2, is_shutdown=True) == 0
    assert actions("lib/drone_controller", "--ros-args", 1) == 0
    assert actions("lib/recorder", "--ros-args", 2) == 0
    for program, word, status in (
        ("testbed_emulator", "--ends-launch", 1),
        ("testbed_emulator", "--other", 2),
        ("lib/drone_controller", "--ros-args", 2),
    ):  # LaunchService ends with status 1 after an exception, and with 0 after a Shutdown
        with pytest.raises(RuntimeError, match=r"^it-1 "):
            actions(program, word, status)
