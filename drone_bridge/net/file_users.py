# SPDX-License-Identifier: Apache-2.0
"""users_of: the processes that have a file, a socket or a port open, as far as the system shows them."""

import contextlib
import os
from collections.abc import Collection
from pathlib import Path

#: Limit of the length of a command line.
MAX_CHARACTERS = 80
PROC = Path("/proc")


def users_of(path: str) -> list[str]:
    """Return the processes that have a file open, each with its command line and id.

    Empty where there is no /proc. Processes of other users are only shown to root.
    """
    return _users([os.path.realpath(path)], PROC)


def users_of_socket(inode: int, proc: Path = PROC) -> list[str]:
    """Return the processes that have a socket open, by its number in /proc/net. See users_of."""
    return _users([f"socket:[{inode}]"], proc)


def users_of_port(protocol: str, port: int, proc: Path = PROC) -> list[str]:
    """Return the processes that have a port of this machine open, for the protocol tcp or udp. See users_of."""
    sockets = set()
    for table in (protocol, f"{protocol}6"):
        with contextlib.suppress(OSError):
            rows = [line.split() for line in (proc / "net" / table).read_text().splitlines()[1:]]
            sockets |= {f"socket:[{row[9]}]" for row in rows if int(row[1].rpartition(":")[2], 16) == port}
    return _users(sockets, proc)


def _users(wanted: Collection[str], proc: Path) -> list[str]:
    found = []
    for process in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if any(os.readlink(opened) in wanted for opened in (process / "fd").iterdir()):
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                found.append(f"{' '.join(words).strip():.{MAX_CHARACTERS}} (process {process.name})")
    return found
