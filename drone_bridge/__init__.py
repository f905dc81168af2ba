# SPDX-License-Identifier: Apache-2.0
"""ROS 2 bridges for legacy robot protocols."""

import importlib
from pkgutil import extend_path
from typing import Any

# The generated drone_bridge.msg exists only in the installed package; with this it is found as well by a
# Python that was started in the source tree and therefore imports the sources first.
__path__ = extend_path(__path__, __name__)


def __getattr__(name: str) -> Any:
    """Return the vehicle for scripts, which needs ROS, when somebody asks for it: nothing else here does."""
    if name not in ("Vehicle", "VehicleError"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    environment = importlib.import_module("drone_bridge.ros.environment")
    environment.complete_environment(may_start_again=False)  # before rclpy
    return getattr(importlib.import_module("drone_bridge.vehicle"), name)
