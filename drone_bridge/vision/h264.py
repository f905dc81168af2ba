# SPDX-License-Identifier: Apache-2.0
"""H264Decoder: decodes H.264 by PyAV, an optional package that is imported with the first picture."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import numpy.typing as npt

from drone_bridge.vision.image_error import ImageError

#: How to install PyAV.
INSTALL_PYAV = "pip install 'av>=10'"
#: Largest picture, pixels.
MAX_WIDTH, MAX_HEIGHT = 1280, 720


class H264Decoder:
    """Decoder of one stream after another. A lost picture gives wrong ones until the next IDR, without an error."""

    def __init__(self) -> None:
        self._stream: int | None = None
        self._context: Any = None

    def decode(self, data: bytes, stream: int, *, is_shown: bool = True) -> npt.NDArray[np.uint8] | None:
        """Decode a picture; return height x width x 3 in red, green, blue, or None if it is not shown.

        Args:
            data: one picture, in Annex B.
            stream: identifies the stream; another one begins with an IDR.
            is_shown: whether the pixels are needed.

        Raises ImageError.
        """
        try:
            av = importlib.import_module("av")
        except ImportError as error:
            raise ImageError(f"is H.264, which needs PyAV ({error}): {INSTALL_PYAV}") from error
        if self._context is None or stream != self._stream:
            self._context, self._stream = av.CodecContext.create("h264", "r"), stream
            self._context.thread_type = "SLICE"  # threads for whole pictures are late by as many pictures
        try:
            frames = self._context.decode(av.Packet(data))
        except Exception as error:  # FFmpegError, which older versions do not export
            self._context = None
            raise ImageError(f"can't be decoded: {error}") from error
        if not frames:
            raise ImageError("is incomplete")
        frame = frames[-1]
        if frame.is_corrupt:
            raise ImageError("lacks a part of its data")
        if frame.width > MAX_WIDTH or frame.height > MAX_HEIGHT:
            raise ImageError(f"has {frame.width} x {frame.height} pixels (limit {MAX_WIDTH} x {MAX_HEIGHT})")
        if not is_shown:
            return None
        pixels: npt.NDArray[np.uint8] = frame.to_ndarray(format="rgb24")
        return pixels
