# SPDX-License-Identifier: Apache-2.0
"""Shared memory of Fast DDS: space that a process needs, and removal of files of killed processes. No ROS.

A participant has a segment, and a queue for each of its receiving ports. Beside each is an empty file that the owner
keeps locked (flock) while it runs, in any container that shares the folder: `_el`, and `_sl` for writers to a queue. A
killed process leaves its files, but not its locks.
"""

import contextlib
import fcntl
import os
import sys
import time
from pathlib import Path

from drone_bridge.ros.process.environment import profile_number

SHARED_MEMORY = Path("/dev/shm")
#: Prefixes of its file names: in Fast DDS 3, and in Fast DDS 2 (Humble, Jazzy).
SEGMENT_PREFIXES = ("fastdds_", "fastrtps_")
_MEGABYTE = 1_000_000
_DEFAULT_SEGMENT_BYTES = 512 * 1024
_BOOKKEEPING = 1.05  # factor of a segment's size
_QUEUES_BYTES = 150_000  # of one participant
_YOUNG_S = 2.0  # the owner of a younger file may be about to lock or finish it
_LOOK_PERIOD_S = 0.02
_UNFINISHED = (0, 1)  # states: not begun, begun


def make_room(folder: Path = SHARED_MEMORY) -> str | None:
    """Remove files of killed processes that would block a process at its start of DDS.

    These are unfinished ports, and all abandoned files if memory is short. Returns a sentence if memory is short
    nevertheless. Waits for ports that may be in progress, for _YOUNG_S at most.
    """
    with contextlib.suppress(OSError):  # a file was removed meanwhile, or belongs to another user
        until_s = time.monotonic() + _YOUNG_S
        unfinished = half_made(folder)
        while unfinished and time.monotonic() < until_s:
            time.sleep(_LOOK_PERIOD_S)
            unfinished = [file for file in unfinished if _is_half_made(file)]  # later ones have a living owner
        for file in unfinished:
            file.unlink()
            file.with_name(f"sem.{file.name}_mutex").unlink(missing_ok=True)
        if shortage(folder):
            for file in abandoned(folder):
                file.unlink()
    return shortage(folder)


def half_made(folder: Path = SHARED_MEMORY) -> list[Path]:
    """Return the unfinished ports: in progress, or abandoned by a killed process.

    A process that opens such a port waits for it, up to five minutes, at the creation of its first node. Ports are
    chosen from a small set that all domains of a machine share.
    """
    ports = (file for prefix in SEGMENT_PREFIXES for file in folder.glob(f"{prefix}port*"))
    return [file for file in ports if not file.name.endswith(("_el", "_sl")) and _is_half_made(file)]


def _is_half_made(port: Path) -> bool:
    with contextlib.suppress(OSError), port.open("rb") as file:
        state = int.from_bytes(file.read(4), sys.byteorder)  # of Boost's managed shared memory
        return state in _UNFINISHED
    return False


def shortage(folder: Path = SHARED_MEMORY) -> str | None:
    """Return a sentence if a process at its start of DDS will lack shared memory, or None."""
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
    """Return the files of ended processes."""
    files: list[Path] = []
    for lock in sorted(lock for prefix in SEGMENT_PREFIXES for lock in folder.glob(f"{prefix}*_el")):
        name = lock.name.removesuffix("_el")
        writers = lock.with_name(f"{name}_sl")
        if _is_free(lock) and _is_free(writers):
            candidates = (lock, writers, lock.with_name(name), lock.with_name(f"sem.{name}_mutex"))
            files += [file for file in candidates if file.exists()]
    return files


def _is_free(lock: Path) -> bool:
    """Return whether a file is unlocked, or missing."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:  # of another user
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
