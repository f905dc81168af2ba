# SPDX-License-Identifier: Apache-2.0
"""Cosine transforms of blocks, scaled as in JPEG: a DC of 8 is a sample of 1.

Both are products of matrices, one per row of macroblocks. For a product of the whole picture, BLAS would start threads,
which then spin.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

_Float = TypeVar("_Float", np.float32, np.float64)

#: [sample, frequency], in units of 2**-13. Rows 0 to 3; the others mirror them. It is the result of the 13-bit
#: algorithm of Loeffler, Ligtenberg and Moschytz, which rounds some entries separately.
_UPPER_HALF = np.array(
    [
        [8192, 11363, 10703, 9633, 8192, 6437, 4433, 2260],
        [8192, 9633, 4433, -2259, -8192, -11362, -10704, -6436],
        [8192, 6437, -4433, -11362, -8192, 2261, 10704, 9633],
        [8192, 2260, -10703, -6436, 8192, 9633, -4433, -11363],
    ],
    float,
)
_INVERSE = np.concatenate((_UPPER_HALF, (_UPPER_HALF * [1, -1, 1, -1, 1, -1, 1, -1])[::-1]))

_FREQUENCIES = np.arange(8)[:, None]
_FORWARD = np.cos((2 * np.arange(8) + 1) * _FREQUENCIES * np.pi / 16) / np.where(_FREQUENCIES, 2, np.sqrt(8))


def samples_of(coefficients: npt.NDArray[np.float64], rows: int) -> npt.NDArray[np.float64]:
    """Return the samples of blocks, as unclipped whole numbers.

    Both passes are sums of integers far below 2**53, and therefore exact.

    Args:
        coefficients: blocks x 64 whole numbers, each block by column.
        rows: number of macroblock rows in the picture.

    Returns:
        blocks x 8 x 8, each block by row.
    """
    columns_done = _times(coefficients, _INVERSE, rows)
    columns_done = np.floor((columns_done + 2**11) * 2.0**-12)
    samples = _times(columns_done.transpose(0, 2, 1), _INVERSE, rows)
    whole: npt.NDArray[np.float64] = np.floor(samples * 2.0**-17)
    return whole


def coefficients_of(samples: npt.NDArray[np.float32], rows: int) -> npt.NDArray[np.float32]:
    """Return the coefficients of blocks: blocks x 64, each by column.

    Args:
        samples: blocks x 8 x 8.
        rows: number of macroblock rows in the picture.
    """
    forward = _FORWARD.astype(np.float32)
    rows_done = _times(samples, forward, rows)
    return _times(rows_done.transpose(0, 2, 1), forward, rows).reshape(-1, 64)


def _times(blocks: npt.NDArray[_Float], matrix: npt.NDArray[_Float], rows: int) -> npt.NDArray[_Float]:
    """Return blocks x 8 x 8: each row of eight of each block times the transposed matrix."""
    products: npt.NDArray[_Float] = np.ascontiguousarray(blocks).reshape(rows, -1, 8) @ matrix.T
    return products.reshape(-1, 8, 8)
