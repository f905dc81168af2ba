# SPDX-License-Identifier: Apache-2.0
"""Conversion between full-range Y, Cb and Cr (BT.601) and RGB. Four pixels share a chroma sample."""

import numpy as np
import numpy.typing as npt

GREY = 128


def rgb_of(y: npt.NDArray[np.int16], cb: npt.NDArray[np.int16], cr: npt.NDArray[np.int16]) -> npt.NDArray[np.uint8]:
    """Return height x width x 3, like the maker's decoder: from unclipped samples, with 8-bit fractions.

    Args:
        y: height x width, within +-8192, so that sums fit into 16 bits.
        cb: height/2 x width/2, within +-8192.
        cr: height/2 x width/2, within +-8192.
    """
    height, width = y.shape
    blue, red = cb.astype(np.int32) - GREY, cr.astype(np.int32) - GREY
    rgb = np.empty((height // 2, 2, width, 3), np.uint8)
    luma = y.reshape(height // 2, 2, width)
    for channel, offset in enumerate((359 * red >> 8, (-88 * blue - 183 * red) >> 8, 454 * blue >> 8)):
        value = luma + offset.astype(np.int16).repeat(2, axis=1)[:, None]
        rgb[..., channel] = np.clip(value, 0, 255, out=value)
    return rgb.reshape(height, width, 3)


def planes_of(
    rgb: npt.NDArray[np.uint8],
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return y (height x width), cb and cr (height/2 x width/2) for height x width x 3. Chroma is the mean of four."""
    height, width, _ = rgb.shape
    y = _luma(rgb.astype(np.float32))
    mean = rgb.reshape(height // 2, 2, width // 2, 2, 3).sum(axis=(1, 3), dtype=np.float32) / 4
    mean_y = _luma(mean)
    return y, (mean[..., 2] - mean_y) / 1.772 + GREY, (mean[..., 0] - mean_y) / 1.402 + GREY


def _luma(rgb: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    luma: npt.NDArray[np.float32] = 0.299 * rgb[..., 0] + 0.587 * rgb[..., 1] + 0.114 * rgb[..., 2]
    return luma
