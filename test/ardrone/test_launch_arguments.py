# SPDX-License-Identifier: Apache-2.0
"""Arguments of ardrone.launch.xml: which programs it starts for JSON programs and emulation, and how."""

from pathlib import Path

import pytest
from repository import ROOT
from shipped import parameters_in

from drone_bridge.tools.launch.evaluate import evaluate

FILE = ROOT / "launch" / "ardrone.launch.xml"


def started(folder, **given):
    """Return the commands of the launched processes by the name of their executable, and the nodes' parameters."""
    commands, parameters = {}, {}
    for process in evaluate(FILE, given, folder):
        name = Path(process.command[0]).name
        commands[name] = process.command
        for text in process.files.values():
            for found in parameters_in(text).values():
                parameters.setdefault(name, {}).update(found)
    return commands, parameters


def test_a_real_drone_has_its_bridge_and_a_server_for_programs_of_this_machine(tmp_path):
    commands, parameters = started(tmp_path)
    assert commands.keys() == {"ardrone_bridge", "dronegui_server"}
    assert parameters["ardrone_bridge"]["host"] == "192.168.1.1"
    server = parameters["dronegui_server"]
    assert (server["host"], server["command_output"], server["video_port"]) == ("127.0.0.1", "cmd_vel", 0)


def test_programs_may_be_left_out_or_raw_or_get_video(tmp_path):
    assert "dronegui_server" not in started(tmp_path, programs="false")[0]
    _, parameters = started(tmp_path, programs_raw="true", programs_video_port="5562")
    server = parameters["dronegui_server"]
    assert (server["command_output"], server["video_port"]) == ("auto", 5562)


@pytest.mark.parametrize("version", ["1", "2"])
def test_an_emulated_drone_has_its_version_and_is_on_this_machine(tmp_path, version):
    commands, parameters = started(tmp_path, emulate="true", drone=version)
    (emulator,) = [command for command in commands.values() if "--drone" in command]
    assert emulator[emulator.index("--drone") + 1] == version
    assert parameters["ardrone_bridge"]["host"] == emulator[emulator.index("--host") + 1] == "127.0.0.1"
