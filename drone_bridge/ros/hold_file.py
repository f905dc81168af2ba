# SPDX-License-Identifier: Apache-2.0
"""HoldFile: keeps in ROS_HOME why a node's vehicle is held, for the node that is started in its place.

It lasts for as long as the machine runs. Homes are shared between hosts, so the boot's id is in the file's name, and
the host's name in the file: its writer removes those of this host's earlier boots, and no others.
"""

import contextlib
import os
import platform
from pathlib import Path

#: Where this is set, only nodes for which it has the same value find a file again. Launch files set it for an emulated
#: vehicle, which ends with its launch.
SCOPE_VARIABLE = "DRONE_BRIDGE_HOLD_SCOPE"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MAX_REASON = 200  # characters


class HoldFile:
    """The file of one node. Each method may wait for a disk."""

    def __init__(self, domain: int, node: str) -> None:
        """`node` is its full name: no other one of this user has it in this ROS domain."""
        self._boot = boot_id()
        scope = os.environ.get(SCOPE_VARIABLE, "").replace("/", "_")
        # Names of ROS have no dots.
        name = f"{self._boot}.{domain}{node.replace('/', '.')}" + (f".{scope}" if scope else "")
        self.path = ros_home() / "held" / name

    def read(self) -> str:
        """Return why the vehicle was held, or an empty string if it was not. Raises OSError."""
        try:
            reason, *_ = self.path.read_text("utf-8", errors="replace").splitlines() or [""]
        except FileNotFoundError:
            return ""
        return reason.strip()[:_MAX_REASON] or "the reason is unknown"

    def write(self, reason: str) -> None:
        """Keep the reason, whole or not at all. Raises OSError."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._remove_outdated()
        new = self.path.with_name(f"{self.path.name}.new")
        new.write_text(f"{reason}\n{platform.node()}\n", "utf-8")
        new.replace(self.path)

    def remove(self) -> None:
        """Keep nothing. Raises OSError."""
        self.path.unlink(missing_ok=True)

    def _remove_outdated(self) -> None:
        for path in self.path.parent.iterdir():
            with contextlib.suppress(OSError):
                _, *host = path.read_text("utf-8", errors="replace").splitlines()[:2] or [""]
                if not path.name.startswith(f"{self._boot}.") and host == [platform.node()]:
                    path.unlink()


def ros_home() -> Path:
    """Return the folder in which ROS keeps what outlives a process: $ROS_HOME, by default ~/.ros."""
    return Path(os.environ.get("ROS_HOME") or Path.home() / ".ros")


def boot_id() -> str:
    """Return what another boot and another host do not have; without Linux another boot of this host has it too."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return platform.node()
