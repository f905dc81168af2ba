# SPDX-License-Identifier: Apache-2.0
"""ROS 2 bridges for legacy robot protocols."""

import importlib
import signal
import threading
from pkgutil import extend_path
from typing import Any

# The generated drone_bridge.msg exists only in the installed package. A Python that was started in the source tree
# imports the sources first, and finds it through this path.
__path__ = extend_path(__path__, __name__)


def __getattr__(name: str) -> Any:
    """Import Vehicle or VehicleError on first access. Only these two require ROS."""
    if name not in ("Vehicle", "VehicleError"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    in_main = threading.current_thread() is threading.main_thread()
    interrupt = signal.getsignal(signal.SIGINT)
    if is_usual := in_main and interrupt is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # imports take a moment, and Ctrl-C meanwhile needs no traceback
    try:
        environment = importlib.import_module("drone_bridge.ros.process.environment")
        environment.complete_environment(may_start_again=False)  # before rclpy
        return getattr(importlib.import_module("drone_bridge.vehicle"), name)
    finally:
        if is_usual:
            signal.signal(signal.SIGINT, interrupt)
