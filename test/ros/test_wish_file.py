# SPDX-License-Identifier: Apache-2.0
"""Wish files without ROS: what a program wants, read by others while it runs."""

import os
import platform
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from drone_bridge.ros.hold import wish_file
from drone_bridge.ros.hold.wish_file import EVERY_NODE, EVERY_VEHICLE, FiledWish, WishFile, WishFiles
from drone_bridge.ros.process.environment import ros_home

DRONE = FiledWish("/d1/cmd_vel_stamped", "7", "Ἄννα pressed STOP\n, twice")
ALL = FiledWish(EVERY_VEHICLE, "8", "Anne pressed STOP", ("/d2/cmd_vel_stamped",))
#: A program that wants a vehicle held, and ends without removing its file.
ENDED = """
import sys
from drone_bridge.ros.hold.wish_file import FiledWish, WishFile
WishFile(7).write([FiledWish("/d1/cmd_vel_stamped", "7", "STOP")])
"""


@pytest.fixture(autouse=True)
def held(tmp_path, monkeypatch):
    """Folder of the files of one test."""
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    return tmp_path / "held"


@pytest.fixture
def file(closing):
    written = WishFile(7)
    closing(type("Closing", (), {"close": written.remove}))
    return written


def test_wishes_are_read_while_they_are_wanted(file):
    file.write([DRONE, ALL])
    assert WishFiles(7).read() == [DRONE, ALL]
    file.write([ALL])
    assert WishFiles(7).read() == [ALL]
    assert file.keep([]) == ""
    assert WishFiles(7).read() == []


def test_several_programs_have_a_file_each(file, held):
    other = WishFile(7)
    file.write([DRONE])
    other.write([ALL])
    assert sorted(WishFiles(7).read()) == sorted([DRONE, ALL])
    other.remove()
    assert WishFiles(7).read() == [DRONE]
    assert len(list(held.iterdir())) == 1


def test_wishes_of_another_domain_or_boot_are_not_read(file, monkeypatch):
    file.write([DRONE])
    assert WishFiles(8).read() == []
    assert WishFiles(70).read() == []
    monkeypatch.setattr(wish_file, "boot_id", lambda: "0ff1ce")
    assert WishFiles(7).read() == []


def test_a_file_of_an_ended_program_is_ignored_and_removed(held):
    subprocess.run([sys.executable, "-c", ENDED], check=True)
    assert len(list(held.iterdir())) == 1
    assert WishFiles(7).read() == []
    assert list(held.iterdir()) == []


def test_no_reader_removes_a_file_that_is_replaced_meanwhile(file, monkeypatch):
    file.write([DRONE])
    removed, has_ended = [], threading.Event()
    unlink = Path.unlink

    def note(path, **options):
        removed.append(path)
        unlink(path, **options)

    def read():
        with monkeypatch.context() as on:
            on.setattr(Path, "unlink", note)
            while not has_ended.is_set():
                WishFiles(7).read()

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(500):
        file.write([DRONE])
    has_ended.set()
    reader.join()
    assert not removed
    assert WishFiles(7).read() == [DRONE]


def test_unwritable_wish_file_keeps_its_last_wishes_and_is_reported(file, held, monkeypatch):
    file.write([DRONE])
    with monkeypatch.context() as on:
        on.setattr(wish_file.json, "dumps", Mock(side_effect=OSError(28, "No space left on device")))
        problem = file.keep([ALL])
    assert str(file.path) in problem
    assert "No space left" in problem
    assert WishFiles(7).read() == [DRONE]
    assert list(held.iterdir()) == [file.path]
    assert file.keep([ALL]) == ""
    assert WishFiles(7).read() == [ALL]


@pytest.mark.parametrize(
    "lines", [b"", b"\xff\n", b"one\ntwo\n[", b'a\nb\n["n", 1, "r", []]\n', b'a\nb\n["n", "", "r", []]']
)
def test_malformed_wishes_are_ignored(file, lines):
    file.write([DRONE])
    with file.path.open("r+b") as content:
        content.truncate()
        content.write(lines)
    assert WishFiles(7).read() == []


def test_a_missing_folder_has_no_wishes(held):
    assert WishFiles(7).read() == []
    held.parent.joinpath("held").write_text("no folder")
    assert WishFiles(7).read() == []


def test_the_first_write_removes_files_of_earlier_boots(file, held):
    held.mkdir()
    earlier, others = held / "c0ffee.7-1.wishes", held / "c0ffee.7-2.wishes"
    earlier.write_text(f"web_bridge\n{platform.node()}\n")
    others.write_text("web_bridge\nother host\n")
    file.write([DRONE])
    assert sorted(held.iterdir()) == sorted([others, file.path])


def test_a_name_is_that_of_a_node_a_namespace_a_topic_or_all():
    names = {EVERY_NODE, EVERY_VEHICLE, "/d1", "/d1/bridge", "/d1/cmd_vel_stamped"}
    assert DRONE.is_for(names)
    assert ALL.is_for(names)
    assert not ALL._replace(excepted=("/d1/cmd_vel_stamped",)).is_for(names)
    assert not FiledWish("/d2", "9", "").is_for(names)


def test_its_folder_is_for_this_user_alone(file, held):
    file.write([DRONE])
    assert os.stat(held).st_mode & 0o077 == 0
    assert ros_home() == held.parent
