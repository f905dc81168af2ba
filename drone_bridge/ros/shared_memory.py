# SPDX-License-Identifier: Apache-2.0
"""The shared memory of Fast DDS in /dev/shm: what it lacks, and what killed processes have left there. No ROS.

A participant has a segment, and a queue for each port that it receives on. Beside each lies an empty file that its
owner keeps locked (flock) for as long as it lives, in any container that shares the folder: `_el`, and for those who
write into a queue `_sl`. A process that is killed removes nothing, but its locks are gone.
"""

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from drone_bridge.ros.environment import profile_number

FOLDER = Path("/dev/shm")
_MEGABYTE = 1_000_000
_DEFAULT_SEGMENT_BYTES = 512 * 1024
_BOOKKEEPING = 1.05  # of a segment's size
_QUEUES_BYTES = 150_000  # of one participant
_YOUNG_S = 2.0  # its owner may be about to lock it


def own_segments() -> list[Path]:
    """Return the files of this process's segments."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            lock = Path(os.readlink(descriptor))
            if lock.parent == FOLDER and re.fullmatch(r"fastdds_[0-9a-f]+_el", lock.name):
                found += [lock, lock.with_name(lock.name.removesuffix("_el"))]
    return found


def abandoned(folder: Path = FOLDER) -> list[Path]:
    """Return the files that no living process owns."""
    files: list[Path] = []
    for lock in sorted(folder.glob("fastdds_*_el")):
        name = lock.name.removesuffix("_el")
        writers = lock.with_name(f"{name}_sl")
        if _is_free(lock) and _is_free(writers):
            candidates = (lock, writers, lock.with_name(name), lock.with_name(f"sem.{name}_mutex"))
            files += [file for file in candidates if file.exists()]
    return files


def _is_free(lock: Path) -> bool:
    """Return whether nobody has locked a file. One that is not there is locked by nobody."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:  # another user's
        return False
    try:
        if time.time() - os.fstat(descriptor).st_ctime < _YOUNG_S:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def remove_abandoned(folder: Path = FOLDER) -> Iterator[tuple[Path, int]]:
    """Remove what no living process owns, and yield each file with the bytes that it had. Raises OSError."""
    for file in abandoned(folder):
        size_bytes = file.stat().st_blocks * 512
        file.unlink()
        yield file, size_bytes


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
    left = sum(file.stat().st_blocks * 512 for file in abandoned(folder))
    remedy = "A container gets more by 'docker run --shm-size=256m'."
    if left:
        remedy = f"'drone-bridge clean' frees {left / _MEGABYTE:.0f} MB that killed processes left there. {remedy}"
    return (
        f"{folder} is full: of its {size / _MEGABYTE:.0f} MB {free / _MEGABYTE:.0f} MB are free, and a process of ROS "
        f"needs {needed / _MEGABYTE:.0f} MB there. Without them it may lose large images, or not start. {remedy}"
    )
