# SPDX-License-Identifier: Apache-2.0
"""A robot's class that can't be loaded: every program that is asked for it ends with the reason."""

import os
import subprocess
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest
from processes import executable

from drone_bridge import kind
from drone_bridge.tools.doctor import command as doctor
from drone_bridge.tools.info import command as info

CLASSES = {
    "SyntaxError: ": "class Broken(:\n",
    "No module named 'pyserial_of_mine'": "import pyserial_of_mine\n",
    "(exit status 3)": "import sys\nsys.exit(3)\n",
    "(exit status 2)": "import argparse\nargparse.ArgumentParser().parse_args(['--port', '1'])\n",
    "'sideways'": """
from drone_bridge.robot_class import Robot, Udp

class Broken(Robot):
    name = "broken"
    control, max_speeds = Udp(1), {"sideways": 1.0}
    def encode_command(self, command): return b""
    def decode_command(self, packet): return None

KIND = Broken.KIND
""",
}
PROGRAMS = {
    "drone-bridge emulate": ("drone-bridge", "emulate", "broken"),
    "drone-bridge operate": ("drone-bridge", "operate", "broken"),
    "drone-bridge check": ("drone-bridge", "check", "broken"),
    "robot_class_emulator": ("robot_class_emulator", "broken"),
    "robot_class_bridge": ("robot_class_bridge", "broken"),
    "robot_class_server": ("robot_class_server", "broken"),
}


@pytest.mark.parametrize(
    "end",
    [
        *("sys.exit(0)", "sys.exit('no board')", "raise SystemExit", "raise ImportError"),
        *("raise KeyboardInterrupt", "raise GeneratorExit", "raise type('Abort', (BaseException,), {})('no board')"),
    ],
)
def test_a_module_that_exits_on_import_does_not_hide_the_other_protocols(monkeypatch, tmp_path, end):
    (tmp_path / "exiting_robot.py").write_text(f"import sys\n{end}\n")
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("exiting", "exiting_robot:Exiting", "drone_bridge.protocols")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])
    with pytest.warns(UserWarning, match="exiting_robot"):
        found, failures = kind._loaded.__wrapped__()
    assert list(found) == [*kind.OWN, *kind.ROBOTS]
    assert "exiting_robot" in failures["exiting"]


def test_a_class_named_otherwise_than_its_entry_point_is_refused_shortly(monkeypatch, tmp_path):
    (tmp_path / "my_tello.py").write_text(MY_TELLO)
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("my_tello", "my_tello:MyTello", kind.ENTRY_POINTS)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])
    with pytest.warns(UserWarning, match="my_tello"):
        _, failures = kind._loaded.__wrapped__()
    assert failures["my_tello"].endswith(": its name is 'tello' and must be that of its entry point, 'my_tello'")


def test_a_protocol_in_a_folder_is_refused_outside_of_this_package(monkeypatch, tmp_path):
    (tmp_path / "kestrel_bridge.py").write_text(FOLDER)
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("kestrel", "kestrel_bridge:KIND", kind.ENTRY_POINTS)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])
    with pytest.warns(UserWarning, match="kestrel"):
        found, failures = kind._loaded.__wrapped__()
    assert list(found) == [*kind.OWN, *kind.ROBOTS]
    assert "a protocol in a folder must be in drone_bridge" in failures["kestrel"]


FOLDER = """
from dataclasses import replace
from drone_bridge.telemetry import KIND as telemetry

KIND = replace(telemetry, name="kestrel")
"""
MY_TELLO = """
from drone_bridge.robot_class import Robot, Udp

class MyTello(Robot):
    name, control = "tello", Udp(1)
    def encode_command(self, velocity): return b""
"""


def test_an_entry_point_replaces_our_robot_of_its_name_also_if_it_fails(monkeypatch, tmp_path, capsys):
    (tmp_path / "my_tello.py").write_text(MY_TELLO)
    monkeypatch.syspath_prepend(tmp_path)
    moved = EntryPoint("pioneer", "none", "")._for(SimpleNamespace(name="moved_robot"))
    entries = [EntryPoint("tello", "my_tello:MyTello", kind.ENTRY_POINTS), moved]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: entries)
    with pytest.warns(UserWarning, match=r"pioneer.*'pip uninstall moved_robot'"):
        loaded = kind._loaded.__wrapped__()
    assert [*loaded[0]] == [*kind.OWN, *(name for name in kind.ROBOTS if name != "pioneer")]
    monkeypatch.setattr(kind, "_loaded", lambda: loaded)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tello").mkdir()  # as `drone-bridge new` makes it
    assert info.main(["tello"]) == info.main(["create2"]) == 0
    told = {each.found.partition(": ")[0]: each.found for each in doctor.others()}
    for text in (capsys.readouterr().out, " ".join(told.values())):
        assert "described by my_tello" in text
        assert "described by drone_bridge.robots.create2" in text
    assert "pioneer can't be loaded" in told
    assert info.main(["pioneer"]) == 1
    assert not capsys.readouterr().err, "it is no bag that does not exist"


@pytest.mark.parametrize("text", ["\nx = SPEED\n", "\nclass Broken(:\n"])
def test_a_mistake_in_a_class_is_placed_and_is_not_installed_again(monkeypatch, tmp_path, text):
    (tmp_path / "my_rover.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("my_rover", "my_rover:MyRover", kind.ENTRY_POINTS)._for(SimpleNamespace(name="my_rover_robot"))
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])
    with pytest.warns(UserWarning, match="my_rover"):
        _, failures = kind._loaded.__wrapped__()
    assert failures["my_rover"].endswith(" (my_rover.py, line 2)")


@pytest.mark.parametrize(("pause_s", "is_named"), [(0.0, False), (0.5, True)])
def test_a_module_whose_import_does_not_end_is_named(monkeypatch, tmp_path, capfd, pause_s, is_named):
    (tmp_path / "slow_robot.py").write_text(f"import time\ntime.sleep({pause_s})\nraise ImportError\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(kind, "SLOW_IMPORT_S", 0.2)
    entry = EntryPoint("slow", "slow_robot:Slow", "drone_bridge.protocols")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])
    with pytest.warns(UserWarning, match="slow_robot"):
        kind._loaded.__wrapped__()
    assert ("slow_robot" in capfd.readouterr().err) == is_named


@pytest.mark.parametrize(
    "program",
    [
        "drone-bridge emulate",
        "robot_class_bridge",
        *(pytest.param(name, marks=pytest.mark.exhaustive) for name in [*PROGRAMS][1:] if name != "robot_class_bridge"),
    ],
)
@pytest.mark.parametrize("reason", CLASSES)
def test_a_class_that_cannot_be_loaded_ends_with_the_reason(reason, program, tmp_path):
    (tmp_path / "broken.py").write_text(CLASSES[reason])
    metadata = tmp_path / "broken-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[drone_bridge.protocols]\nbroken = broken\n")
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    name, *words = PROGRAMS[program]
    done = subprocess.run(
        [executable(name), *words],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert "can't be loaded: broken: " in last
    assert reason in last
    assert "Traceback" not in done.stderr
