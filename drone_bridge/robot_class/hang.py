# SPDX-License-Identifier: Apache-2.0
"""end_if_stuck: ends a node whose Robot has a method that does not return, as the watchdog ends one that hangs."""

from typing import Any

from drone_bridge.robot_class import returned
from drone_bridge.ros.process import watchdog


def end_if_stuck(logger: Any) -> None:
    """End this process if a method of its robot has not returned within the watchdog's limit. Name the method."""
    if stuck := returned.stuck(watchdog.limit_s()):
        logger.fatal(f"{stuck}() has not returned for {watchdog.limit_s():g} s: this node ends.")
        watchdog.end()
