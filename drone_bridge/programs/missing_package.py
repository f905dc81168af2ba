# SPDX-License-Identifier: Apache-2.0
"""One sentence, instead of a traceback, where an optional Python package is not installed."""

#: What pip calls the package of a module, where that is another name.
DISTRIBUTIONS = {
    "cv2": "opencv-python-headless",
    "foxglove": "foxglove-sdk",
    "yaml": "PyYAML",
}


def explain_missing(program: str, error: ModuleNotFoundError) -> str:
    """Return what `program` lacks. Raises the error again if the module is one of our own, which is a fault here."""
    module = (error.name or "").partition(".")[0]
    if module in ("", "drone_bridge"):
        raise error
    return f"{program}: this needs the Python package '{DISTRIBUTIONS.get(module, module)}'."
