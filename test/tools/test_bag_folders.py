# SPDX-License-Identifier: Apache-2.0
"""Folders of recordings: new ones outside of a clone at ~/drone_bridge, and former ones are still found."""

import pytest
from std_msgs.msg import Bool
from written_bags import write_bag

from drone_bridge.tools.bags.bag import run_on_bag
from drone_bridge.tools.info.command import print_info
from drone_bridge.tools.record.settings import new_bag
from drone_bridge.tools.web.bag_list import Recordings


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_recordings_of_both_folders_are_listed_and_found_by_name(home, capsys):
    folders = [home / "drone_bridge_bags", home / "drone_bridge" / "bags"]
    assert Recordings("127.0.0.1").document() == {"folder": str(folders[0]), "recordings": []}
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        write_bag(folder / f"bag_{number}", [("/landed", 1, Bool())])
    found = Recordings("127.0.0.1").document()
    assert {each["name"] for each in found["recordings"]} == {"bag_0", "bag_1"}
    assert found["folder"] == " and ".join(map(str, folders))
    for name, status in {"bag_0": 0, "bag_1": 0, "bag_2": 1}.items():
        assert run_on_bag("info", home.relative_to(home) / name, print_info) == status
    assert "'bag_2' does not exist" in capsys.readouterr().err


def test_a_new_recording_is_in_no_clone_in_the_home_folder(home):
    assert not new_bag().is_relative_to(home / "drone_bridge")
    assert new_bag().parent.is_dir()
