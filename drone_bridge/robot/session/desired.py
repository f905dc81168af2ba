# SPDX-License-Identifier: Apache-2.0
"""DesiredSubsystems: subsystems to bind, set by parameters and changed by services."""

from collections.abc import Iterable, Sequence

from drone_bridge.robot import codec
from drone_bridge.wire.printable import printable

FIRST, ALL, NONE = "first", "all", "none"


class DesiredSubsystems:
    """Desired subsystems, kept across connections."""

    def __init__(self, skid_steer: Sequence[str], lights: Sequence[str]) -> None:
        """Each parameter is FIRST, ALL, NONE, names, or indices in the list of subsystems."""
        self._asked = {codec.SubsystemType.SKID_STEER: skid_steer, codec.SubsystemType.LIGHTS: lights}
        # By number and name, so that another robot, or another list, starts anew.
        self._operator: dict[tuple[int, str], bool] = {}

    def note(self, number: int, subsystem: codec.Subsystem, is_wanted: bool) -> None:
        """Note that a service has requested or released a subsystem."""
        self._operator[number, subsystem.name] = is_wanted

    def choose(self, subsystems: Sequence[codec.Subsystem]) -> tuple[set[int], list[str]]:
        """Return the numbers of the subsystems to bind, and a sentence for each choice that the robot lacks."""
        wanted: set[int] = set()
        missing = []
        for kind, asked in self._asked.items():
            numbers = [number for number, subsystem in enumerate(subsystems) if subsystem.type == kind]
            for choice in asked:
                chosen = list(_chosen(choice, numbers, subsystems))
                wanted.update(chosen)
                if not chosen and choice not in (FIRST, ALL, NONE):
                    what = kind.name.lower().replace("_", " ")
                    names = ", ".join(repr(printable(subsystems[number].name)) for number in numbers) or "none"
                    missing.append(f"The robot has no {what} {choice!r}. Available: {names}.")
        for number, subsystem in enumerate(subsystems):
            if (is_wanted := self._operator.get((number, subsystem.name))) is not None:
                (wanted.add if is_wanted else wanted.discard)(number)
        return wanted, missing


def _chosen(choice: str, numbers: list[int], subsystems: Sequence[codec.Subsystem]) -> Iterable[int]:
    if choice == NONE:
        return []
    if choice == ALL:
        return numbers
    if choice == FIRST:
        return numbers[:1]
    named = [number for number in numbers if subsystems[number].name == choice]
    return named or [number for number in numbers if choice == str(number)]
