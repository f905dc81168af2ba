# SPDX-License-Identifier: Apache-2.0
"""HoldFile: file in ROS_HOME with the reason of a node's hold, for the node's restart.

The file is valid until the machine reboots. Homes may be shared between hosts. Its name therefore contains the boot id,
and its content the host name: a writer removes the files of this host's earlier boots only.
"""

import contextlib
import errno
import os
import platform
import shlex
from pathlib import Path

from drone_bridge.net.disk_space import DISK_FULL
from drone_bridge.ros.process.environment import ros_home

#: Environment variable that separates files: nodes with another value ignore them. Launch files set it for an emulated
#: vehicle, which ends with its launch.
SCOPE_VARIABLE = "DRONE_BRIDGE_HOLD_SCOPE"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MAX_REASON = 200  # characters
_RESERVE_BYTES = 64 * 1024  # for the holds of all vehicles of this user
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)  # errors of a file that was never written


class HoldFile:
    """Hold file of one node. Each method may block on a disk."""

    def __init__(self, domain: int, node: str) -> None:
        """`node` is the full name, unique among this user's nodes in this ROS domain."""
        scope = os.environ.get(SCOPE_VARIABLE, "").replace("/", "_")
        # ROS names contain no dots.
        name = f"{boot_id()}.{domain}{node.replace('/', '.')}" + (f".{scope}" if scope else "")
        self.path = ros_home() / "held" / name
        self._new, self._reserve = self.path.with_name(f"{name}.new"), self.path.with_name("reserve")

    def read(self) -> str:
        """Return the reason of the hold, or an empty string. Raises OSError if it is unknown whether there is one."""
        try:
            reason, *_ = self.path.read_text("utf-8", errors="replace").splitlines() or [""]
        except OSError as error:
            if error.errno in _ABSENT:
                return ""
            raise
        return reason.strip()[:_MAX_REASON] or "the reason is unknown"

    def reserve(self) -> None:
        """Create the file that `write` uses on a full disk, shared by all nodes, unless it exists."""
        with contextlib.suppress(OSError):
            if self._reserve.exists():
                return
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._new.write_bytes(bytes(_RESERVE_BYTES))
                self._new.replace(self._reserve)
            finally:
                self._new.unlink(missing_ok=True)

    def keep(self, reason: str) -> str:
        """Write the reason, or remove the file if it is empty. Return a sentence about an error, or an empty string."""
        try:
            if reason:
                self.write(reason)
            else:
                self.remove()
        except OSError as error:
            if reason:
                return f"If this node is killed, it will not hold again: {self.path} can't be written ({error})."
            return f"If this node is killed, it will hold again: {self.path} can't be removed ({error})."
        self.reserve()
        return ""

    def unread(self, error: OSError) -> str:
        """Return the reason of a hold because `read` failed, with the command that mends it."""
        folder = shlex.quote(str(self.path.parent))
        command = f"rm -r {shlex.quote(str(self.path))}"
        if isinstance(error, PermissionError):
            command = f'sudo chown -R "$USER" {folder} && chmod -R u+rwX {folder}'
        return f"it may have been held: {self.path} can't be read ({error.strerror}); to mend that: {command}"

    def write(self, reason: str) -> None:
        """Write the reason atomically, on a full disk in the place of the reserve. Raises OSError."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        remove_outdated(self.path.parent)
        data = f"{reason}\n{platform.node()}\n".encode()
        try:
            self._new.write_bytes(data)
        except OSError as error:
            if error.errno not in DISK_FULL or not self._reserve.exists():
                raise
            self._reserve.replace(self._new)
            with self._new.open("r+b") as file:  # its space is used before another program can take it
                file.write(data)
                file.truncate()
        self._new.replace(self.path)

    def remove(self) -> None:
        """Remove the file. Raises OSError."""
        self.path.unlink(missing_ok=True)


def remove_outdated(folder: Path) -> None:
    """Remove the files of this host's earlier boots. Raises OSError."""
    boot = f"{boot_id()}."
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            _, *host = path.read_text("utf-8", errors="replace").splitlines()[:2] or [""]
            if not path.name.startswith(boot) and host == [platform.node()]:
                path.unlink()


def boot_id() -> str:
    """Return an id of this boot. Other systems than Linux have no such id: there it is the host name."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return platform.node()
