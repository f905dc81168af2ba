# SPDX-License-Identifier: Apache-2.0
"""OpenCV, for whoever gets to need it: it takes longer to import than a bridge to start, and as much memory."""

import importlib
from typing import Any


def opencv() -> Any:
    """Return OpenCV. Raises ValueError with half a sentence where there is none."""
    try:
        return importlib.import_module("cv2")
    except ImportError as error:
        raise ValueError(
            f"needs OpenCV, which can't be imported ({error}): install python3-opencv, or opencv-python-headless by pip"
        ) from error
