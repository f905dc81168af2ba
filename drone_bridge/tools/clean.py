# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge clean`: remove the shared memory that killed processes have left behind.

A participant has a segment, and a queue for each port that it receives on. Beside each lies an empty file that its
owner keeps locked (flock) for as long as it lives, in any container that shares the folder: `_el`, and for those who
write into a queue `_sl`. A process that is killed removes nothing, but its locks are gone.
"""

import argparse
import fcntl
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from drone_bridge.ros.environment import SEGMENT_PREFIXES, SHARED_MEMORY

_YOUNG_S = 2.0  # its owner may be about to lock it


def main(argv: Sequence[str] | None = None) -> int:
    """Remove or list the files; returns the exit status, which is 1 when one could not be removed."""
    parser = argparse.ArgumentParser(
        prog="drone-bridge clean",
        description=f"Remove the shared memory of Fast DDS in {SHARED_MEMORY} that no living process owns, those of "
        "other containers included. A process that is killed (SIGKILL) can't do that itself.",
    )
    parser.add_argument("-p", "--dry-run", action="store_true", help="list the files without removing them")
    if parser.parse_args(argv).dry_run:
        print(*abandoned(), sep="\n")
        return 0
    files = total_bytes = 0
    try:
        for _, size_bytes in remove_abandoned():
            files, total_bytes = files + 1, total_bytes + size_bytes
    except OSError as error:
        print(f"drone-bridge clean: {error.filename} can't be removed: {error.strerror}.", file=sys.stderr)
        return 1
    finally:
        print(f"{files} files removed from {SHARED_MEMORY}, {total_bytes / 1e6:.1f} MB.")
    return 0


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


def remove_abandoned(folder: Path = SHARED_MEMORY) -> Iterator[tuple[Path, int]]:
    """Remove what no living process owns, and yield each file with the bytes that it had. Raises OSError."""
    for file in abandoned(folder):
        size_bytes = file.stat().st_blocks * 512
        file.unlink()
        yield file, size_bytes
