# SPDX-License-Identifier: Apache-2.0
"""One sentence with what installs it, instead of a traceback, where an optional Python package is missing."""

import sys
import sysconfig
from pathlib import Path

#: What pip calls the package of a module, where that is another name, and what is needed with it.
DISTRIBUTIONS = {
    "cv2": "opencv-python-headless",
    "cv_bridge": "cv-bridge",
    **dict.fromkeys(("foxglove", "websockets"), "foxglove-sdk 'websockets>=15' segno"),
    "yaml": "PyYAML",
}


def explain_missing(program: str, error: ModuleNotFoundError) -> str:
    """Return what `program` lacks. Raises the error again if the module is one of our own, which is a fault here."""
    if (error.name or "").startswith(tuple(f"drone_bridge.{kind}" for kind in ("msg", "srv", "action"))):
        return f"{program}: this needs the messages of drone_bridge: pip install 'drone_bridge[ros]', or colcon build."
    module = (error.name or "").partition(".")[0]
    if module in ("", "drone_bridge"):
        raise error
    return f"{program}: this needs the Python package '{module}'. To install it: {pip_install(module)}"


def pip_install(module: str) -> str:
    """Return the line that installs a module here. Debian and Ubuntu keep pip off their Python unless forced."""
    is_managed = Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").exists() and sys.prefix == sys.base_prefix
    options = "--user --break-system-packages " if is_managed else ""
    return f"python3 -m pip install {options}{DISTRIBUTIONS.get(module, module)}"
