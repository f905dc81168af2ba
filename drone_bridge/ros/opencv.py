# SPDX-License-Identifier: Apache-2.0
"""Imports OpenCV lazily, as its import takes longer and more memory than a bridge."""

import importlib
from typing import Any


def opencv() -> Any:
    """Return OpenCV. Raises ValueError with half a sentence if it is not installed."""
    try:
        return importlib.import_module("cv2")
    except ImportError as error:
        raise ValueError(
            f"needs OpenCV, which can't be imported ({error}): install python3-opencv, or opencv-python-headless by pip"
        ) from error
