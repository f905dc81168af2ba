# SPDX-License-Identifier: Apache-2.0
"""users_of: the processes that have a file open, as far as the system shows them."""

import contextlib
import os
from pathlib import Path

#: Limit of the length of a command line.
MAX_CHARACTERS = 80


def users_of(path: str) -> list[str]:
    """Return the processes that have a file open, each as a clause with its command line and id.

    Empty where there is no /proc. Processes of other users are only shown to root.
    """
    wanted, found = os.path.realpath(path), []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if any(os.readlink(opened) == wanted for opened in (process / "fd").iterdir()):
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                found.append(f"{' '.join(words).strip():.{MAX_CHARACTERS}} (process {process.name})")
    return found
