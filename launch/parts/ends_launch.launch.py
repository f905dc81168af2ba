# SPDX-License-Identifier: Apache-2.0
"""Ends the launch with any process that has --ends-launch on its command line, however that ends.

What on_exit="shutdown" says in XML, which humble does not know.
"""

from launch.actions import RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited

from drone_bridge.programs.options import ENDS_LAUNCH
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity


def _end(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
    if ENDS_LAUNCH not in event.cmd or context.is_shutdown:
        return []
    return [Shutdown(reason=f"{event.process_name} has ended")]


def generate_launch_description() -> LaunchDescription:
    """Return the description; called by launch."""
    return LaunchDescription([RegisterEventHandler(OnProcessExit(on_exit=_end))])
