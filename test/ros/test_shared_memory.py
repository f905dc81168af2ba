# SPDX-License-Identifier: Apache-2.0
"""Shared memory of killed processes, and its removal."""

import os
import sys

import pytest

from drone_bridge.ros.process import shared_memory

#: Boost's managed memory starts with its state: 2 after its creation.
FINISHED = (2).to_bytes(4, sys.byteorder) + bytes(60)


def test_files_of_killed_programs_are_removed_only_for_lack_of_room(tmp_path, monkeypatch):
    left = [tmp_path / "fastdds_0123456789abcdef", tmp_path / "fastdds_0123456789abcdef_el"]
    for file in left:
        file.touch()
    monkeypatch.setattr(shared_memory, "_YOUNG_S", 0.0)
    free = [2**40, 2**40, 0, 0]
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((1, 1, 2**40, 2**40, free.pop(0), 0, 0, 0, 0, 255)))
    assert shared_memory.make_room(tmp_path) is None
    assert all(file.exists() for file in left)
    assert "is full" in shared_memory.make_room(tmp_path)
    assert not any(file.exists() for file in left)


@pytest.fixture
def half(tmp_path):
    """Port that is being created, between other files."""
    (tmp_path / "fastdds_port7000").write_bytes(FINISHED)
    (tmp_path / "fastdds_port7015_el").touch()
    half = tmp_path / "fastdds_port7015"
    half.write_bytes(bytes(64))
    return half


def test_a_program_waits_for_a_port_that_is_in_the_making(tmp_path, half, monkeypatch):
    monkeypatch.setattr(shared_memory.time, "sleep", lambda _: half.write_bytes(FINISHED))
    shared_memory.make_room(tmp_path)
    assert half.exists()


def test_unfinished_ports_that_would_block_everyone_are_removed(tmp_path, half, monkeypatch):
    monkeypatch.setattr(shared_memory, "_YOUNG_S", 0.1)
    others = set(tmp_path.iterdir()) - {half}
    shared_memory.make_room(tmp_path)
    assert set(tmp_path.iterdir()) == others


def test_a_port_that_is_begun_meanwhile_is_left_to_who_makes_it(tmp_path, half, monkeypatch):
    young = tmp_path / "fastdds_port7020"
    monkeypatch.setattr(shared_memory, "_YOUNG_S", 0.1)
    monkeypatch.setattr(shared_memory.time, "sleep", lambda _: young.write_bytes(bytes(64)))
    shared_memory.make_room(tmp_path)
    assert (half.exists(), young.exists()) == (False, True)
