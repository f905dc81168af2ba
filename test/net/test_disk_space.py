# SPDX-License-Identifier: Apache-2.0
"""Free space that recordings leave."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from drone_bridge.net import disk_space
from drone_bridge.net.disk_space import DEFAULT_MB, shortage

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
