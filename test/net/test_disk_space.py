# SPDX-License-Identifier: Apache-2.0
"""Free space that recordings leave."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from drone_bridge.net import disk_space
from drone_bridge.net.disk_space import DEFAULT_MB, growth_error, shortage

KEPT = {  # size of the disk and min_free_space, MB: free space that is kept, MB
    (80, DEFAULT_MB): 4,
    (20_000, DEFAULT_MB): 1000,
    (1_000_000, DEFAULT_MB): 1000,
    (80, 30.0): 30,
    (80, 0.0): 0,
    (0, 30.0): 0,  # a file system that reports no size
}


@pytest.mark.parametrize(("whole_mb", "min_free_mb"), KEPT)
def test_a_recording_leaves_its_share_of_the_disk(monkeypatch, whole_mb, min_free_mb):
    kept_mb, disk = KEPT[whole_mb, min_free_mb], SimpleNamespace(f_frsize=1000, f_blocks=whole_mb * 1000, f_bavail=0)
    monkeypatch.setattr(disk_space.os, "statvfs", lambda _: disk)
    assert bool(shortage(Path(), min_free_mb)) == bool(kept_mb)
    disk.f_bavail = kept_mb * 1000
    assert not shortage(Path(), min_free_mb)
    disk.f_bavail -= 1
    sentence = shortage(Path("/media/card"), min_free_mb)
    assert bool(sentence) == bool(kept_mb)
    if sentence:
        assert "/media/card" in sentence
        assert f"keeps {kept_mb} MB" in sentence
    disk.f_bavail = kept_mb * 1000 + 50
    assert bool(shortage(Path(), min_free_mb, 51_000)) == bool(kept_mb)


@pytest.mark.parametrize("number", [0, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EOPNOTSUPP])
def test_a_file_is_left_as_it_is_and_only_a_lack_of_room_is_an_error(monkeypatch, tmp_path, number):
    allocate = os.posix_fallocate

    def fails(*arguments):
        allocate(*arguments)
        if number:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(disk_space.os, "posix_fallocate", fails)
    path = tmp_path / "file"
    with path.open("xb") as file:
        file.write(b"pending")
        error = growth_error(file, 4096)
        assert path.read_bytes() == b"pending"
        file.write(b", more")
    assert path.read_bytes() == b"pending, more"
    assert (error.errno if error else 0) == (0 if number == errno.EOPNOTSUPP else number)
