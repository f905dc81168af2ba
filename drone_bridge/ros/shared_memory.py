# SPDX-License-Identifier: Apache-2.0
"""The shared memory of Fast DDS in /dev/shm: what it lacks, and what this process has there. No ROS."""

import contextlib
import os
import re
from pathlib import Path

from drone_bridge.ros.environment import profile_number

FOLDER = Path("/dev/shm")
#: How the names of its files begin: in Fast DDS 3, and in 2 of Humble and Jazzy.
PREFIXES = ("fastdds_", "fastrtps_")
_MEGABYTE = 1_000_000
_DEFAULT_SEGMENT_BYTES = 512 * 1024
_BOOKKEEPING = 1.05  # of a segment's size
_QUEUES_BYTES = 150_000  # of one participant


def own_segments() -> list[Path]:
    """Return the files of this process's segments."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            lock = Path(os.readlink(descriptor))
            if lock.parent == FOLDER and re.fullmatch(r"fast(dds|rtps)_[0-9a-f]+_el", lock.name):
                found += [lock, lock.with_name(lock.name.removesuffix("_el"))]
    return found


def shortage(folder: Path = FOLDER) -> str | None:
    """Return what a process that is about to start DDS will lack, or None."""
    try:
        has = os.statvfs(folder)
    except OSError:
        return None
    segment_bytes = profile_number("segment_size") or _DEFAULT_SEGMENT_BYTES
    needed = int(segment_bytes * _BOOKKEEPING) + _QUEUES_BYTES
    free, size = has.f_bavail * has.f_frsize, has.f_blocks * has.f_frsize
    if free >= needed:
        return None
    return (
        f"{folder} is full: of its {size / _MEGABYTE:.0f} MB {free / _MEGABYTE:.0f} MB are free, and a process of ROS "
        f"needs {needed / _MEGABYTE:.0f} MB there. Without them it may lose large images, or not start. "
        "'drone-bridge clean' frees what killed processes have left there, and a container gets more by "
        "'docker run --shm-size=256m'."
    )
