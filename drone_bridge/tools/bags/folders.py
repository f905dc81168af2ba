# SPDX-License-Identifier: Apache-2.0
"""Folders of recordings in the user's home: BAGS for new ones, and a former one."""

from pathlib import Path

#: Folder of new recordings. It is in no clone of the sources, which may be ~/drone_bridge.
BAGS = Path("~/drone_bridge_bags")
#: Former folder, whose recordings are still found.
FORMER_BAGS = Path("~/drone_bridge/bags")


def bag_folders() -> tuple[Path, ...]:
    """Return the folders of recordings, that of new ones first."""
    return BAGS.expanduser(), FORMER_BAGS.expanduser()


def found(bag: Path) -> Path:
    """Return a bag's path, also if it is given by its name in one of the folders."""
    return next((each for each in (bag, *(folder / bag for folder in bag_folders())) if each.exists()), bag)
