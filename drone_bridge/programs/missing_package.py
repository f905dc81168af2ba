# SPDX-License-Identifier: Apache-2.0
"""Error message for a missing optional Python package, with its install command, in place of a traceback."""

import sys
import sysconfig
from pathlib import Path

#: PyPI requirement of a module, where it differs from the module name, with further packages that it needs.
DISTRIBUTIONS = {
    "cv2": "opencv-python-headless",
    "cv_bridge": "cv-bridge",
    **dict.fromkeys(("foxglove", "websockets"), "foxglove-sdk 'websockets>=15' segno"),
    "yaml": "PyYAML",
}


def explain_missing(program: str, error: ModuleNotFoundError) -> str:
    """Return the message for `program`. Raises `error` if the module is one of our own, which is a bug."""
    if (error.name or "").startswith(tuple(f"drone_bridge.{kind}" for kind in ("msg", "srv", "action"))):
        return f"{program}: this needs the messages of drone_bridge: pip install 'drone_bridge[ros]', or colcon build."
    module = (error.name or "").partition(".")[0]
    if module in ("", "drone_bridge"):
        raise error
    return f"{program}: this needs the Python package '{module}'. To install it: {pip_install(module)}"


def pip_install(module: str) -> str:
    """Return the pip command for a module. The system Python of Debian and Ubuntu needs extra options."""
    is_managed = Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").exists() and sys.prefix == sys.base_prefix
    options = "--user --break-system-packages " if is_managed else ""
    return f"python3 -m pip install {options}{DISTRIBUTIONS.get(module, module)}"
