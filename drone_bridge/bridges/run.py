# SPDX-License-Identifier: Apache-2.0
"""Run a bridge as a program, from its parameters to an orderly end."""

import os
import signal
import sys
from collections.abc import Callable

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor

from drone_bridge.bridges.node import BridgeNode


def run(make_node: Callable[[], BridgeNode]) -> int:
    """Run until SIGINT, SIGTERM or the end of the context, and return the exit status.

    However it ends, the vehicle is left with a neutral command and ROS is shut down properly: a process that just
    exits leaves its shared memory behind.
    """
    _name_profile_for_humble()
    rclpy.init()
    node = None
    try:
        node = make_node()
        if node.parameters["autostart"] and not node.start():
            return 1
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except (ParameterException, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        # Impatience must not come between the vehicle and its neutral command.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        if node:
            node.leave()
            node.destroy_node()
        rclpy.try_shutdown()
    return 0


def _name_profile_for_humble() -> None:
    """Humble's Fast DDS reads its profile from a variable of another name; later ones complain about both."""
    profile = os.environ.get("FASTDDS_DEFAULT_PROFILES_FILE")
    if profile and os.environ.get("ROS_DISTRO") == "humble":
        os.environ.setdefault("FASTRTPS_DEFAULT_PROFILES_FILE", profile)
