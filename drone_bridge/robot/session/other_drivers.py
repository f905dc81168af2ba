# SPDX-License-Identifier: Apache-2.0
"""OtherDrivers: drivers that hold subsystems that this driver desires, and whether they are still connected."""

import re
from typing import NamedTuple

from drone_bridge.robot import codec
from drone_bridge.wire.printable import printable

ROBOTD = "robotd"  # as in its firmware packet
#: robotd's log lines, which it also sends to drivers: time, driver or subsystem, and event.
_TIME = r"^(?:\[[^\]]*\] )?"
_GONE = re.compile(_TIME + r"\[(.*)\] (?:lost connection|#<IOError: closed stream>)$", re.DOTALL)
_SAFE_MODE = re.compile(_TIME + r"\{(.*)\} safe mode$", re.DOTALL)
_MAX_NAMES = 64  # of disconnected drivers


class Obstruction(NamedTuple):
    """Reason why a desired subsystem is not available."""

    sentence: str
    is_error: bool  # permanent without help


class OtherDrivers:
    """Disconnected drivers, as known on one connection.

    robotd 1.2 never removes a driver. Once one has disconnected, the next bind fails after its ownership was recorded:
    the new driver's connection ends, and it owns the subsystem until robotd is restarted.
    """

    def __init__(self, driver_name: str) -> None:
        self.driver_name = driver_name
        self.is_robotd = False
        self._gone: dict[str, None] = {}  # in order of disconnection

    def note_firmware(self, kind: str) -> None:
        self.is_robotd = kind == ROBOTD

    def note_log(self, text: str) -> str | None:
        """Record disconnected drivers from the robot's log. Return the subsystem in safe mode, if any."""
        if found := _GONE.search(text):
            while len(self._gone) >= _MAX_NAMES:
                del self._gone[next(iter(self._gone))]
            self._gone[found[1]] = None
        found = _SAFE_MODE.search(text)
        return found[1] if found else None

    def note_driver(self, name: str) -> None:
        """Record that a driver was granted a subsystem, and is therefore connected."""
        self._gone.pop(name, None)

    @property
    def closing_explanation(self) -> str:
        """Reason for the robot to close a connection on which a subsystem is being bound."""
        if self.is_robotd:
            return "a driver had disconnected, after which robotd accepts no driver until it is restarted"
        return "as robotd does after a driver has disconnected"

    def obstruction(self, label: str, kind: int, holder: str) -> Obstruction:
        """Return why the robot refused a subsystem. `holder` is empty if it is free."""
        label = label[:1].upper() + label[1:]
        state = f"held by '{printable(holder)}'" if holder else "refused, although no driver holds it"
        sentence, is_error = f"{label} is {state}.", False
        if self.is_robotd:
            is_error = kind == codec.SubsystemType.SKID_STEER
            if holder in self._gone:
                sentence = f"{label} is {state}, which has disconnected: restart robotd."
            elif holder == self.driver_name:
                sentence = (
                    f"{label} is {state}, which is this driver's own name. Unless another driver uses it, restart "
                    "robotd: an earlier connection left it bound."
                )
            elif holder:
                sentence += " If that driver has disconnected, restart robotd, which does not detect it."
            else:
                sentence = f"{label} is {state}: restart robotd."
        if is_error:  # robotd keeps the motors as their driver left them, up to full speed
            sentence += " Its motors may be running."
        return Obstruction(sentence, is_error)
