# SPDX-License-Identifier: Apache-2.0
"""watch_methods: ends a node whose Robot has a method that does not return, and reports a slow one."""

import threading
from functools import partial
from typing import Any

from drone_bridge.robot_class import returned
from drone_bridge.ros.process import watchdog
from drone_bridge.session.obstacles import Obstacle


def watch_methods(node: Any) -> None:
    """End this process once a method of its robot has not returned within the watchdog's limit, and name the method.

    `node` is being set up, which calls methods before its reports begin.
    """
    end = partial(end_if_stuck, node.get_logger())
    node.each_second(end)
    key, remedy = Obstacle.SLOW_METHOD.key, Obstacle.SLOW_METHOD.remedy()
    node.each_second(lambda: node.report.update_condition(key, returned.slow_method(), remedy))
    timer = threading.Timer(min(watchdog.limit_s() + 1.0, threading.TIMEOUT_MAX), end)
    timer.daemon = True
    timer.start()


def end_if_stuck(logger: Any) -> None:
    """End this process if a method of its robot has not returned within the watchdog's limit. Name the method."""
    if stuck := returned.stuck(watchdog.limit_s()):
        logger.fatal(f"{stuck}() has not returned for {watchdog.limit_s():g} s: this node ends.")
        watchdog.end()
