# SPDX-License-Identifier: Apache-2.0
"""Shutdown of the launch with any process that has --ends-launch on its command line, or if one it needs can't start.

Equivalent of on_exit="shutdown" in XML, which humble does not support.
"""

from launch.actions import RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited

from drone_bridge.programs.options import ENDS_LAUNCH, NEEDED_BY_LAUNCH
from drone_bridge.tools.cli import REFUSED
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity


def _end(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the shutdown, if any. Raises RuntimeError for one with an error, which launch has no action for."""
    if context.is_shutdown:
        return []
    if event.returncode == REFUSED and event.cmd[0].endswith(NEEDED_BY_LAUNCH):
        raise RuntimeError(f"{event.process_name} can't start")  # launch stops everything, and ends with status 1
    if ENDS_LAUNCH not in event.cmd:
        return []
    if event.returncode:
        raise RuntimeError(f"{event.process_name} failed with exit status {event.returncode}")
    return [Shutdown(reason=f"{event.process_name} exited")]


def generate_launch_description() -> LaunchDescription:
    """Return the launch description."""
    return LaunchDescription([RegisterEventHandler(OnProcessExit(on_exit=_end))])
