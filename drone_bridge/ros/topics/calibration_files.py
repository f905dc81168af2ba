# SPDX-License-Identifier: Apache-2.0
"""Camera calibration files, in the YAML of camera_calibration and camera_info_manager: read and written."""

import math
from pathlib import Path
from typing import Any

from sensor_msgs.msg import CameraInfo

_MATRICES = {"camera_matrix": ("k", 9), "rectification_matrix": ("r", 9), "projection_matrix": ("p", 12)}
MAX_FILE_BYTES = 64 * 1024
MAX_COEFFICIENTS = 14


def read_camera_info(path: str) -> CameraInfo:
    """Parse a calibration file, a path or a file:// URL, without frame and stamp. Raises ValueError with a sentence."""
    import yaml  # slow to import; only for nodes with a calibration file

    try:
        with Path(path.removeprefix("file://")).expanduser().open("rb") as file:
            content: Any = yaml.safe_load(file.read(MAX_FILE_BYTES))
        info = CameraInfo(width=_side(content["image_width"]), height=_side(content["image_height"]))
        info.distortion_model = model = content["distortion_model"]
        if not isinstance(model, str):
            raise ValueError(f"distortion_model is {model!r} but must be a text")
        info.d = _numbers(content["distortion_coefficients"]["data"])
        for name, (field, size) in _MATRICES.items():
            values = _numbers(content[name]["data"])
            if len(values) != size:
                raise ValueError(f"{name} has {len(values)} numbers instead of {size}")
            setattr(info, field, values)
    except OSError as error:
        raise ValueError(f"The calibration file {path} can't be read: {error.strerror}.") from error
    except KeyError as error:
        raise ValueError(f"The calibration file {path} lacks {error.args[0]}.") from error
    except (AssertionError, TypeError, ValueError, yaml.YAMLError) as error:  # Humble's messages assert types
        raise ValueError(f"{path} is not a calibration file: {' '.join(str(error).split())}.") from error
    return info


def write_camera_info(path: str, name: str, info: CameraInfo) -> CameraInfo:
    """Write a camera's calibration, and return it as read. Raises ValueError with a sentence, and writes nothing."""
    import yaml

    numbers = {field: [float(value) for value in getattr(info, field)] for field in ("d", "k", "r", "p")}
    if not info.k[0] or not all(map(math.isfinite, (value for each in numbers.values() for value in each))):
        raise ValueError("The calibration is empty, or has a number that is not finite.")
    file = Path(path.removeprefix("file://")).expanduser()
    written = file.with_name(f".{file.name}.new")
    content: dict[str, Any] = {"image_width": info.width, "image_height": info.height, "camera_name": name}
    content |= {"distortion_model": info.distortion_model}
    content |= {"distortion_coefficients": {"rows": 1, "cols": len(info.d), "data": numbers["d"]}}
    content |= {
        name: {"rows": 3, "cols": size // 3, "data": numbers[field]} for name, (field, size) in _MATRICES.items()
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(yaml.safe_dump(content, sort_keys=False))
        read = read_camera_info(str(written))
        written.replace(file)
    except OSError as error:
        raise ValueError(f"The calibration file {path} can't be written: {error.strerror}.") from error
    return read


def _side(pixels: Any) -> int:
    if not isinstance(pixels, int) or not 0 <= pixels < 2**32:
        raise ValueError(f"the image's width or height is {pixels!r} but must be a number of pixels")
    return pixels


def _numbers(values: Any) -> list[float]:
    if not isinstance(values, list) or len(values) > MAX_COEFFICIENTS:
        raise ValueError(f"data must be a list of at most {MAX_COEFFICIENTS} numbers")
    return [float(value) for value in values]
