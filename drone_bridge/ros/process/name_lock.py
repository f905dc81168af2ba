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
        """Lock a node's full name. Raises NameTakenError while another process has it, which sees this one wait."""
        if self._folder is None:
            return
        path, waits = self._path(domain, node), self._path(domain, node, ".waits")
        if path in self._files:
            return
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._files[path] = _locked(path, fcntl.LOCK_EX)
            except BlockingIOError:
                if waits not in self._files:
                    with contextlib.suppress(BlockingIOError):  # while `waiting` looks
                        self._files[waits] = _locked(waits, fcntl.LOCK_SH)
                raise NameTakenError(
                    f"{node} runs already (process {_owner(path)}). This one opens no link and sends nothing until "
                    "that has ended. Give it a namespace or a name of its own, such as namespace:=second.",
                    partial(self.take, domain, node),
                ) from None
            if waits in self._files:
                os.close(self._files.pop(waits))

    def waiting(self, domain: int, node: str) -> str:
        """Return the id of a process that waits for a name of this one; empty if none does."""
        waits = self._path(domain, node, ".waits")
        try:
            os.close(_locked(waits, fcntl.LOCK_EX, os.O_RDONLY))
        except BlockingIOError:
            return _owner(waits)
        except OSError:  # none has waited yet
            pass
        return ""

    def _path(self, domain: int, node: str, suffix: str = "") -> Path:
        """Return the path of a name's file. ROS names contain no dots."""
        return (self._folder or Path()) / f"{platform.node()}.{domain}{node.replace('/', '.')}{suffix}"


def _locked(path: Path, kind: int, mode: int = os.O_RDWR | os.O_CREAT) -> int:
    """Lock a file, and write this process's id to it if it may be created. Raises BlockingIOError if it is locked."""
    file = os.open(path, mode | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
        if mode & os.O_CREAT:
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
