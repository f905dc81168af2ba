# SPDX-License-Identifier: Apache-2.0
"""The shared memory of Fast DDS: what a process needs there, and what killed processes have left. No ROS.

A participant has a segment, and a queue for each port that it receives on. Beside each lies an empty file that its
owner keeps locked (flock) for as long as it lives, in any container that shares the folder: `_el`, and for those who
write into a queue `_sl`. A process that is killed removes nothing, but its locks are gone.
"""

import contextlib
import fcntl
import os
import sys
import time
from pathlib import Path

from drone_bridge.ros.environment import profile_number

SHARED_MEMORY = Path("/dev/shm")
#: How the names of its files begin: in Fast DDS 3, and in 2 of Humble and Jazzy.
SEGMENT_PREFIXES = ("fastdds_", "fastrtps_")
_MEGABYTE = 1_000_000
_DEFAULT_SEGMENT_BYTES = 512 * 1024
_BOOKKEEPING = 1.05  # of a segment's size
_QUEUES_BYTES = 150_000  # of one participant
_YOUNG_S = 2.0  # its owner may be about to lock it, or to finish it
_LOOK_PERIOD_S = 0.02
_UNFINISHED = (0, 1)  # not yet begun, and begun


def make_room(folder: Path = SHARED_MEMORY) -> str | None:
    """Remove what killed processes have left and would stop a process that is about to start DDS.

    Those are ports that are half made, and everything where it would lack room. Returns a sentence where it lacks room
    nevertheless. Waits for a port that may be in the making, at most _YOUNG_S.
    """
    with contextlib.suppress(OSError):  # of a file that another process has removed meanwhile, or another user's
        until_s = time.monotonic() + _YOUNG_S
        unfinished = half_made(folder)
        while unfinished and time.monotonic() < until_s:
            time.sleep(_LOOK_PERIOD_S)
            unfinished = [file for file in unfinished if _is_half_made(file)]  # what is begun meanwhile has its maker
        for file in unfinished:
            file.unlink()
            file.with_name(f"sem.{file.name}_mutex").unlink(missing_ok=True)
        if shortage(folder):
            for file in abandoned(folder):
                file.unlink()
    return shortage(folder)


def half_made(folder: Path = SHARED_MEMORY) -> list[Path]:
    """Return the ports that are in the making, or were when their process was killed.

    Each process that would open such a port waits for it, up to five minutes, when its first node is made. Ports are
    chosen out of a few that all domains of a machine share.
    """
    ports = (file for prefix in SEGMENT_PREFIXES for file in folder.glob(f"{prefix}port*"))
    return [file for file in ports if not file.name.endswith(("_el", "_sl")) and _is_half_made(file)]


def _is_half_made(port: Path) -> bool:
    with contextlib.suppress(OSError), port.open("rb") as file:
        state = int.from_bytes(file.read(4), sys.byteorder)  # of Boost's managed memory
        return state in _UNFINISHED
    return False


def shortage(folder: Path = SHARED_MEMORY) -> str | None:
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
        f"needs {needed / _MEGABYTE:.0f} MB there. Without them it may lose large images, or not start. A container "
        "gets more by 'docker run --shm-size=256m'."
    )


def abandoned(folder: Path = SHARED_MEMORY) -> list[Path]:
    """Return the files that no living process owns."""
    files: list[Path] = []
    for lock in sorted(lock for prefix in SEGMENT_PREFIXES for lock in folder.glob(f"{prefix}*_el")):
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
