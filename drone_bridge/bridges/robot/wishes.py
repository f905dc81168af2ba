# SPDX-License-Identifier: Apache-2.0
"""Which of a robot's subsystems a driver wants: by parameters at first, then by what the operator says."""

from collections.abc import Iterable, Sequence

from drone_bridge.protocols.robot import Subsystem, SubsystemType
from drone_bridge.protocols.text import printable

FIRST, ALL, NONE = "first", "all", "none"


class Wishes:
    """Remembers across connections what is wanted. For the link's thread."""

    def __init__(self, skid_steer: Sequence[str], lights: Sequence[str]) -> None:
        """Each is what there should be of its kind: FIRST, ALL, NONE, names, or numbers in the list of subsystems."""
        self._asked = {SubsystemType.SKID_STEER: skid_steer, SubsystemType.LIGHTS: lights}
        # By number and name: another robot, or a robot with another list, is a new start.
        self._operator: dict[tuple[int, str], bool] = {}

    def note(self, number: int, subsystem: Subsystem, is_wanted: bool) -> None:
        """Note what the operator says."""
        self._operator[number, subsystem.name] = is_wanted

    def wanted(self, subsystems: Sequence[Subsystem]) -> tuple[set[int], list[str]]:
        """Return which are wanted, and sentences about what is asked for and not there."""
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
                    missing.append(f"The robot has no {what} {choice!r}; of this kind it has {names}.")
        for number, subsystem in enumerate(subsystems):
            if (wish := self._operator.get((number, subsystem.name))) is not None:
                (wanted.add if wish else wanted.discard)(number)
        return wanted, missing


def _chosen(choice: str, numbers: list[int], subsystems: Sequence[Subsystem]) -> Iterable[int]:
    if choice == NONE:
        return []
    if choice == ALL:
        return numbers
    if choice == FIRST:
        return numbers[:1]
    named = [number for number in numbers if subsystems[number].name == choice]
    return named or [number for number in numbers if choice == str(number)]
