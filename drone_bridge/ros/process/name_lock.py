# SPDX-License-Identifier: Apache-2.0
"""NameLock: lets one node per full name run on this machine, for one user, ROS_HOME and domain. No ROS.

Two bridges of one name would drive two robots by the same commands, and share one hold. So the later one waits.
The kernel releases the lock with the process, even after SIGKILL: a killed node keeps no successor waiting. No child
inherits the descriptor. Where no file can be locked, no node waits.
"""

import contextlib
import fcntl
import os
import platform
from collections.abc import Callable
from functools import partial
from pathlib import Path


class NameTakenError(Exception):
    """Error of a node whose name another one has, with a sentence as its text. `retry` takes the name, or raises it."""

    def __init__(self, sentence: str, retry: Callable[[], None]) -> None:
        super().__init__(sentence)
        self.retry = retry


class NameLock:
    """Lock of the names of this process's nodes. `take` does nothing before `enable`, as in a test or a library."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._files: dict[Path, int] = {}

    def enable(self, folder: Path) -> None:
        """Lock names from now on, by files in a folder, which several machines may share."""
        self._folder = folder

    def take(self, domain: int, node: str) -> None:
        """Lock a node's full name. Raises NameTakenError while another process has it."""
        if self._folder is None:
            return
        path = self._folder / f"{platform.node()}.{domain}{node.replace('/', '.')}"  # ROS names contain no dots
        if path in self._files:
            return
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._files[path] = _locked(path)
            except BlockingIOError:
                raise NameTakenError(
                    f"{node} runs already (process {_owner(path)}). This one opens no link and sends nothing until "
                    "that has ended. Give it a namespace or a name of its own, such as namespace:=second.",
                    partial(self.take, domain, node),
                ) from None


def _locked(path: Path) -> int:
    """Lock a file, and write this process's id to it. Raises BlockingIOError if it is locked."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
    except OSError:
        os.close(file)
        raise
    return file


def _owner(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_bytes()[:20].decode("ascii", "replace").strip() or "unknown"
    return "unknown"


#: Lock of this process.
NAMES = NameLock()
