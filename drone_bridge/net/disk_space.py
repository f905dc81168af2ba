# SPDX-License-Identifier: Apache-2.0
"""Free space of a disk that recordings and wire logs leave to the rest of the machine."""

import errno
import os
from pathlib import Path
from typing import IO

#: Errors of a full disk, for all or for this user.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)

#: Value of `min_free_space` for the smaller of 1 GB and 5 % of the disk.
DEFAULT_MB = -1.0
_DEFAULT_BYTES, _DEFAULT_SHARE = 1e9, 0.05


def shortage(folder: Path, min_free_mb: float, size: int = 0) -> str:
    """Return a sentence if too little space would be free on a disk, else an empty string. Raises OSError.

    Args:
        folder: a folder on the disk.
        min_free_mb: least free space, MB, or DEFAULT_MB; 0: unlimited.
        size: bytes to write now.
    """
    disk = os.statvfs(folder)
    free, whole = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    least = min(_DEFAULT_BYTES, _DEFAULT_SHARE * whole) if min_free_mb < 0.0 else min_free_mb * 1e6
    if not whole or not least or free - size >= least:  # some file systems report no size
        return ""
    return f"The disk of {folder} has {free / 1e6:.0f} MB free, of which min_free_space keeps {least / 1e6:.0f} MB."


def growth_error(file: IO[bytes], size: int) -> OSError | None:
    """Return the error if a file can't grow by `size` bytes now. No figure shows quotas and limits of a file's size.

    EFBIG is a limit of the file, and the others, DISK_FULL, are those of the disk.
    """
    if not hasattr(os, "posix_fallocate"):  # macOS
        return None
    try:
        file.flush()
        end = file.tell()
        try:
            os.posix_fallocate(file.fileno(), end, size)
        finally:
            file.truncate(end)
    except OSError as error:
        return error if error.errno in (*DISK_FULL, errno.EFBIG) else None
    return None
