# SPDX-License-Identifier: Apache-2.0
"""What killed processes leave in shared memory, and when it is removed."""

import os
import sys

from drone_bridge.ros import shared_memory


def test_a_program_removes_what_killed_ones_have_left_only_where_it_lacks_room(tmp_path, monkeypatch):
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


def test_a_program_removes_ports_that_are_half_made_as_all_would_wait_at_them(tmp_path, monkeypatch):
    whole, half, lock = (tmp_path / f"fastdds_port{name}" for name in ("7000", "7015", "7015_el"))
    whole.write_bytes((2).to_bytes(4, sys.byteorder) + bytes(60))
    half.write_bytes(bytes(64))
    lock.touch()
    shared_memory.make_room(tmp_path)
    assert half.exists()  # it may be in the making
    monkeypatch.setattr(shared_memory, "_YOUNG_S", -1.0)
    shared_memory.make_room(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([whole, lock])
