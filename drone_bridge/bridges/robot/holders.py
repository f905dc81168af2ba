# SPDX-License-Identifier: Apache-2.0
"""Which drivers hold subsystems that this driver wants, and whether they are still connected."""

import re
from typing import Final, NamedTuple

from drone_bridge.protocols.robot import SubsystemType
from drone_bridge.protocols.text import printable

ROBOTD: Final = "robotd"  # as 0x09 tells it
#: What robotd logs, to its drivers as well: the time, who it is about, and what.
_TIME: Final = r"^(?:\[[^\]]*\] )?"
_GONE: Final = re.compile(_TIME + r"\[(.*)\] (?:lost connection|#<IOError: closed stream>)$", re.DOTALL)
_SAFE_MODE: Final = re.compile(_TIME + r"\{(.*)\} safe mode$", re.DOTALL)
_MAX_NAMES: Final = 64  # of drivers who have gone, and of subsystems


class Obstruction(NamedTuple):
    """Why a desired subsystem is not available."""

    sentence: str
    is_error: bool  # it can't change by itself


class Holders:
    """What is known of drivers that are gone, across connections. For the link's thread.

    robotd 1.2 never forgets a driver. Once one has disconnected, the next bind fails after ownership was recorded: the
    new driver's connection ends, and it owns the subsystem until robotd is restarted.
    """

    def __init__(self, driver_name: str) -> None:
        self.driver_name = driver_name
        self.is_robotd = False
        self._gone: dict[str, None] = {}  # in order of their going
        self._left_behind: dict[
            str, None
        ] = {}  # names of subsystems that earlier connections were binding at their end

    def begin(self) -> None:
        """Start over for a new connection, as the robot may have been restarted."""
        self._gone.clear()

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
        """Note what was being bound when the robot closed the connection."""
        for name in subsystem_names:
            _remember(self._left_behind, name)

    def note_granted(self, subsystem_name: str) -> None:
        """Note that this driver was granted a subsystem after all."""
        self._left_behind.pop(subsystem_name, None)
        self._gone.pop(self.driver_name, None)

    @property
    def closing_explanation(self) -> str:
        """Why a robot closes a connection on which a subsystem is being bound."""
        if self.is_robotd:
            return "another driver had disconnected, after which robotd lets nobody drive until it is restarted"
        return "as robotd does after another driver has disconnected"

    def obstruction(self, label: str, subsystem_name: str, kind: int, holder: str) -> Obstruction:
        """Return why the robot refused a subsystem; `holder` is empty if nobody holds it."""
        label = label[:1].upper() + label[1:]
        is_error = self.is_robotd and kind == SubsystemType.SKID_STEER
        if not holder:
            advice = ": restart robotd." if self.is_robotd else "."
            return Obstruction(f"{label} was refused, although nobody holds it{advice}", is_error)
        who = f"{label} is held by '{printable(holder)}'"
        if not self.is_robotd:
            return Obstruction(f"{who}.", is_error)
        is_ours = holder == self.driver_name
        if holder in self._gone or (is_ours and subsystem_name in self._left_behind):
            return Obstruction(f"{who}, which is gone: restart robotd.", is_error)
        if is_ours:
            return Obstruction(
                f"{who}, which is this driver's own name. Unless another driver uses it, restart robotd: it was left "
                "behind by an earlier connection.",
                is_error,
            )
        return Obstruction(f"{who}. If that driver is gone, restart robotd, which does not notice by itself.", is_error)


def _remember(names: dict[str, None], name: str) -> None:
    while len(names) >= _MAX_NAMES:
        del names[next(iter(names))]
    names[name] = None
