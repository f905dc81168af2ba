# SPDX-License-Identifier: Apache-2.0
"""WishFile: file in ROS_HOME with the holds that a running program wants, for nodes of this machine.

A program has to import ROS and to discover a node before it can call it, and DDS needs up to 3 s to deliver a wish to a
node that has just started. A node therefore also reads these files, before its first command and then periodically.
Each program has its own file, `<boot>.<domain>-<random id>.wishes`, and keeps it locked (flock). A
file that is not locked is of an ended program: it is ignored and removed.

After two lines for people and for the removal of outdated files (see `hold_file`), each line is a wish, in JSON.
"""

import contextlib
import fcntl
import json
import os
import platform
import sys
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from drone_bridge.ros.hold.hold_file import boot_id, remove_outdated
from drone_bridge.ros.process.environment import ros_home

#: Names in wishes: of every node, and of every vehicle that follows velocities, which excludes servers.
EVERY_NODE, EVERY_VEHICLE = "*", "*/cmd_vel_stamped"
#: How long a program waits for its file at its end, and before it confirms a wish, s.
FILE_TIMEOUT_S = 0.1
_ENDING = ".wishes"
_HEADER_LINES = 2
_MAX_BYTES = 1 << 20
_ATTEMPTS = 3  # to read a file that is replaced meanwhile


class FiledWish(NamedTuple):
    """Wanted hold of one or more nodes."""

    name: str
    """Full name of a node, its namespace, the topic of its velocity commands, EVERY_NODE or EVERY_VEHICLE."""
    id: str
    reason: str
    excepted: tuple[str, ...] = ()
    """Names that are excepted."""

    def is_for(self, names: Iterable[str]) -> bool:
        """Return whether it is for a node with these names."""
        return self.name in names and not any(name in self.excepted for name in names)


class WishFile:
    """Wish file of this process. Written by one thread, which may block on a disk."""

    def __init__(self, domain: int) -> None:
        self._folder, self._prefix = _place(domain)
        self.path = self._folder / f"{self._prefix}{uuid.uuid4().hex}{_ENDING}"
        self._locked: IO[str] | None = None

    def keep(self, wishes: Sequence[FiledWish]) -> str:
        """Write the wishes, or remove the file without any. Return a sentence about an error, or an empty string."""
        try:
            if wishes:
                self.write(wishes)
            else:
                self.remove()
        except OSError as error:
            return f"STOP reaches a bridge that restarts up to 3 s late: {self.path} can't be written ({error})."
        return ""

    def write(self, wishes: Sequence[FiledWish]) -> None:
        """Write the wishes atomically. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._locked is None:
            remove_outdated(self._folder)
        new = self.path.with_name(f"{self.path.name}.new")
        with contextlib.ExitStack() as undo:
            undo.callback(new.unlink, missing_ok=True)
            file = undo.enter_context(new.open("w", encoding="utf-8"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # before it has the name that others read
            print(f"{Path(sys.argv[0]).name}, process {os.getpid()}", platform.node(), sep="\n", file=file)
            file.writelines(f"{json.dumps(wish)}\n" for wish in wishes)
            file.flush()
            new.replace(self.path)
            undo.pop_all()
        self._unlock()  # the former file
        self._locked = file

    def remove(self) -> None:
        """Remove the file. Raises OSError."""
        self.path.unlink(missing_ok=True)
        self._unlock()

    def _unlock(self) -> None:
        if self._locked:
            self._locked.close()
            self._locked = None


class WishFiles:
    """Wish files of all running programs of this user, boot and ROS domain."""

    def __init__(self, domain: int) -> None:
        self._folder, self._prefix = _place(domain)
        self._changed_ns = -1

    def have_changed(self) -> bool:
        """Return whether a file was added, replaced or removed since the last call, by the folder's time."""
        before_ns, self._changed_ns = self._changed_ns, 0
        with contextlib.suppress(OSError):
            self._changed_ns = self._folder.stat().st_mtime_ns
        return self._changed_ns != before_ns

    def read(self) -> list[FiledWish]:
        """Return all wishes. Files that can't be read are ignored. May block on a disk."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []
        paths = (self._folder / name for name in names if name.startswith(self._prefix) and name.endswith(_ENDING))
        return [wish for path in paths for wish in _read(path)]


def _place(domain: int) -> tuple[Path, str]:
    """Return the folder of wish files, and the beginning of their names in a domain."""
    return ros_home() / "held", f"{boot_id()}.{domain}-"


def _read(path: Path) -> list[FiledWish]:
    for _ in range(_ATTEMPTS):
        try:
            with path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return [
                        wish for line in file.read(_MAX_BYTES).splitlines()[_HEADER_LINES:] for wish in _parse(line)
                    ]
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):  # else its program has just replaced it
                    path.unlink()
                    return []
        except OSError:
            return []
    return []


def _parse(line: bytes) -> list[FiledWish]:
    """Return the wish of a line; none if it is malformed."""
    try:
        name, id_, reason, excepted = json.loads(line)
        wish = FiledWish(name, id_, reason, tuple(excepted))
    except (ValueError, TypeError, RecursionError):
        return []
    is_valid = all(isinstance(each, str) for each in (name, id_, reason, *wish.excepted))
    return [wish] if is_valid and id_ else []
