# SPDX-License-Identifier: Apache-2.0
"""Error message for a missing package, with the command that installs it on this machine, in place of a traceback."""

import os
import sys
import sysconfig
from pathlib import Path

#: PyPI requirement of a module, where it differs from the module name, with further packages that it needs.
DISTRIBUTIONS = {
    "cv2": "opencv-python-headless",
    "cv_bridge": "cv-bridge",
    **dict.fromkeys(("hypothesis", "pytest"), "'drone_bridge[check]'"),
    **dict.fromkeys(("foxglove", "websockets"), "foxglove-sdk 'websockets>=15' segno"),
    "yaml": "PyYAML",
}
#: Package of apt for a Python module or a package of ROS, of what package.xml names; {} is the distribution of ROS.
APT = {
    "cv2": "python3-opencv",
    "cv_bridge": "ros-{}-cv-bridge",
    "numpy": "python3-numpy",
    "rviz2": "ros-{}-rviz2",
    "segno": "python3-segno",
    "yaml": "python3-yaml",
}
#: Where apt installs the distributions of ROS.
_DISTRIBUTIONS_OF_APT = Path("/opt/ros")


def explain_missing(program: str, error: ModuleNotFoundError) -> str:
    """Return the message for `program`. Raises `error` if the module is one of our own, which is a bug."""
    if (error.name or "").startswith(tuple(f"drone_bridge.{kind}" for kind in ("msg", "srv", "action"))):
        return f"{program}: this needs the messages of drone_bridge: pip install 'drone_bridge[ros]', or colcon build."
    module = (error.name or "").partition(".")[0]
    if module in ("", "drone_bridge"):
        raise error
    return f"{program}: this needs the Python package '{module}'. To install it: {install_command(module)}"


def apt_install(name: str) -> str | None:
    """Return the apt command for a module or a package of ROS. None if ROS is not apt's, or apt has no such package."""
    distribution = os.environ.get("ROS_DISTRO", "")
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    if name not in APT or not distribution or str(_DISTRIBUTIONS_OF_APT / distribution) not in prefixes:
        return None
    return f"sudo apt install {APT[name].format(distribution)}"


def install_command(module: str) -> str:
    """Return the command that installs a module: by apt beside apt's ROS, else by pip."""
    return (sys.prefix == sys.base_prefix and apt_install(module)) or pip_install(module)


def pip_install(module: str) -> str:
    """Return the pip command for a module. The system Python of Debian and Ubuntu needs extra options."""
    is_managed = Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").exists() and sys.prefix == sys.base_prefix
    options = "--user --break-system-packages " if is_managed else ""
    return f"python3 -m pip install {options}{DISTRIBUTIONS.get(module, module)}"
