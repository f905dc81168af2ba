# SPDX-License-Identifier: Apache-2.0
"""OtherDrivers: which drivers hold subsystems that this driver wants, and whether they are still connected."""

import re
from typing import NamedTuple

from drone_bridge.robot import codec
from drone_bridge.wire.printable import printable

ROBOTD = "robotd"  # as 0x09 tells it
#: What robotd logs, to its drivers as well: the time, who it is about, and what.
_TIME = r"^(?:\[[^\]]*\] )?"
_GONE = re.compile(_TIME + r"\[(.*)\] (?:lost connection|#<IOError: closed stream>)$", re.DOTALL)
_SAFE_MODE = re.compile(_TIME + r"\{(.*)\} safe mode$", re.DOTALL)
_MAX_NAMES = 64  # of drivers who have gone, and of subsystems


class Obstruction(NamedTuple):
    """Why a desired subsystem is not available."""

    sentence: str
    is_error: bool  # it can't change by itself


class OtherDrivers:
    """What is known of drivers that are gone, across connections.

    robotd 1.2 never forgets a driver. Once one has disconnected, the next bind fails after ownership was recorded: the
    new driver's connection ends, and it owns the subsystem until robotd is restarted.
    """

    def __init__(self, driver_name: str) -> None:
        self.driver_name = driver_name
        self.is_robotd = False
        self._gone: dict[str, None] = {}  # in order of their going
        self._left_behind: dict[
            str, None
        ] = {}  # names of subsystems that earlier connections had, or were binding, at their end
        self._connections = 0

    def begin(self) -> None:
        """Start over for a new connection, as the robot may have been restarted."""
        self._gone.clear()
        self._connections += 1

    def note_firmware(self, kind: str) -> None:
        self.is_robotd = kind == ROBOTD

    def note_log(self, text: str) -> str | None:
        """Note drivers that are gone according to the robot's log; return the subsystem in safe mode, if any."""
        if found := _GONE.search(text):
            _remember(self._gone, found[1])
        found = _SAFE_MODE.search(text)
        return found[1] if found else None

    def note_driver(self, name: str) -> None:
        """Note that a driver was granted a subsystem, and so is connected."""
        self._gone.pop(name, None)

    def note_end(self, subsystem_names: list[str]) -> None:
        """Note what was bound or being bound when the connection ended."""
        for name in subsystem_names:
            _remember(self._left_behind, name)

    def note_granted(self, subsystem_name: str) -> None:
        """Note that this driver was granted a subsystem after all."""
        self._left_behind.pop(subsystem_name, None)
        self._gone.pop(self.driver_name, None)

    @property
    def closing_explanation(self) -> str:
        """Why a robot closes a connection on which a subsystem is being bound."""
        who = "another driver" if self._connections <= 1 else "a driver, perhaps this bridge's earlier connection,"
        if self.is_robotd:
            return f"{who} had disconnected, after which robotd lets nobody drive until it is restarted"
        return f"as robotd does after {who} has disconnected"

    def obstruction(self, label: str, subsystem_name: str, kind: int, holder: str) -> Obstruction:
        """Return why the robot refused a subsystem; `holder` is empty if nobody holds it."""
        label = label[:1].upper() + label[1:]
        is_error = self.is_robotd and kind == codec.SubsystemType.SKID_STEER
        # robotd leaves them as they were when their driver vanished, up to full speed.
        running = " Its motors may be running." if is_error else ""
        if not holder:
            advice = ": restart robotd." if self.is_robotd else "."
            return Obstruction(f"{label} was refused, although nobody holds it{advice}{running}", is_error)
        who = f"{label} is held by '{printable(holder)}'"
        if not self.is_robotd:
            return Obstruction(f"{who}.", is_error)
        is_own_name = holder == self.driver_name
        is_ours = is_own_name and subsystem_name in self._left_behind
        if is_ours or holder in self._gone:
            earlier = " That was an earlier connection of this bridge." if is_ours else ""
            return Obstruction(f"{who}, which is gone: restart robotd.{earlier}{running}", is_error)
        if is_own_name:
            return Obstruction(
                f"{who}, which is this driver's own name. Unless another driver uses it, restart robotd: it was left "
                f"behind by an earlier connection.{running}",
                is_error,
            )
        advice = "If that driver is gone, restart robotd, which does not notice by itself."
        return Obstruction(f"{who}. {advice}{running}", is_error)


def _remember(names: dict[str, None], name: str) -> None:
    while len(names) >= _MAX_NAMES:
        del names[next(iter(names))]
    names[name] = None
