# SPDX-License-Identifier: Apache-2.0
"""Shutdown of the launch with any process that has --ends-launch on its command line, for any exit status.

Equivalent of on_exit="shutdown" in XML, which humble does not support.
"""

from launch.actions import RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited

from drone_bridge.programs.options import ENDS_LAUNCH
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity


def _end(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
    if ENDS_LAUNCH not in event.cmd or context.is_shutdown:
        return []
    return [Shutdown(reason=f"{event.process_name} exited")]


def generate_launch_description() -> LaunchDescription:
    """Return the launch description."""
    return LaunchDescription([RegisterEventHandler(OnProcessExit(on_exit=_end))])
