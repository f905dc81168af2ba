# SPDX-License-Identifier: Apache-2.0
"""Free space of a disk that recordings and wire logs leave to the rest of the machine."""

import os
from pathlib import Path

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
