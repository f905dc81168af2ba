# SPDX-License-Identifier: Apache-2.0
"""For one release: the names that arguments had in 0.1, where they were typed after the launch file's name."""

import sys
from pathlib import Path

from launch.actions import OpaqueFunction
from launch.logging import get_logger

from drone_bridge.tools.launch.renamed import OWNER, rename, typed_after
from launch import LaunchContext, LaunchDescription


def _rename(context: LaunchContext) -> None:
    owner = context.launch_configurations[OWNER]
    typed = typed_after(Path(__file__).parent.parent / f"{owner}.launch.xml", sys.argv)
    rename(context.launch_configurations, owner, typed, get_logger("drone_bridge").warning)


def generate_launch_description() -> LaunchDescription:
    """Return the description; called by launch."""
    return LaunchDescription([OpaqueFunction(function=_rename)])
