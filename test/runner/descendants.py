# SPDX-License-Identifier: Apache-2.0
"""Descendants of this process, for programs that leave none behind: the entries of the tests, and measurements."""

import contextlib
import os
import signal
import time
from pathlib import Path

#: Maximum number of characters of a command line.
MAX_COMMAND = 160


def parent_of(pid: int) -> int:
    """Return the parent of a process, and 0 if there is no such process."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def descendants() -> list[int]:
    """Return the descendants of this process."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        pid = int(stat.parent.name)
        children.setdefault(parent_of(pid), []).append(pid)
    found, unseen = [], [os.getpid()]
    while unseen:
        more = children.get(unseen.pop(), [])
        found += more
        unseen += more
    return found


def end_descendants(grace_s: float = 0.0) -> list[str]:
    """End all descendants by SIGTERM for `grace_s`, and then SIGKILL. Return the commands of the running ones."""
    commands, kill_s = [], time.monotonic() + grace_s
    while pids := descendants():
        number = signal.SIGTERM if time.monotonic() < kill_s else signal.SIGKILL
        for pid in pids:
            with contextlib.suppress(OSError):
                if command := Path(f"/proc/{pid}/cmdline").read_bytes():
                    commands.append(command.replace(b"\0", b" ").decode(errors="replace").strip()[:MAX_COMMAND])
                os.kill(pid, number)
                os.kill(pid, signal.SIGCONT)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)
    return list(dict.fromkeys(commands))
