# SPDX-License-Identifier: Apache-2.0
"""Conversion between the planes of a picture and the blocks of its macroblocks.

Blocks are in the packet's order: rows of macroblocks, macroblocks in a row, and Y0, Y1, Y2, Y3, Cb, Cr in each.
"""

import numpy as np
import numpy.typing as npt

from drone_bridge.ar_drone.uvlc.layout import BLOCKS

CB, CR = 4, 5


def joined(
    blocks: npt.NDArray[np.int16], rows: int, columns: int
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int16], npt.NDArray[np.int16]]:
    """Join blocks x 8 x 8 samples to the planes y, cb and cr, for this number of macroblock rows and columns."""
    each = blocks.reshape(rows, columns, BLOCKS, 8, 8)
    y = each[:, :, :CB].reshape(rows, columns, 2, 2, 8, 8).transpose(0, 2, 4, 1, 3, 5)
    cb, cr = (each[:, :, n].transpose(0, 2, 1, 3).reshape(8 * rows, 8 * columns) for n in (CB, CR))
    return y.reshape(16 * rows, 16 * columns), cb, cr


def cut(
    y: npt.NDArray[np.float32], cb: npt.NDArray[np.float32], cr: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Cut planes into blocks x 8 x 8 samples."""
    rows, columns = y.shape[0] // 16, y.shape[1] // 16
    blocks = np.empty((rows, columns, BLOCKS, 8, 8), np.float32)
    luma = y.reshape(rows, 2, 8, columns, 2, 8).transpose(0, 3, 1, 4, 2, 5)
    blocks[:, :, :CB] = luma.reshape(rows, columns, 4, 8, 8)
    for n, plane in ((CB, cb), (CR, cr)):
        blocks[:, :, n] = plane.reshape(rows, 8, columns, 8).transpose(0, 2, 1, 3)
    return blocks.reshape(-1, 8, 8)
