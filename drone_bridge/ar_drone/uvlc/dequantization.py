# SPDX-License-Identifier: Apache-2.0
"""Order of a block's coefficients, and the factor of each one."""

import numpy as np

from drone_bridge.ar_drone.uvlc.layout import MAX_QUANTIZER, TABLE_MODE, TABLE_MODE_QUANTIZER

#: Position along the zigzag -> 8 * row + column, as in JPEG. The row is the vertical frequency.
ZIGZAG = np.array(
    (
        *(0, 1, 8, 16, 9, 2, 3, 10),
        *(17, 24, 32, 25, 18, 11, 4, 5),
        *(12, 19, 26, 33, 40, 48, 41, 34),
        *(27, 20, 13, 6, 7, 14, 21, 28),
        *(35, 42, 49, 56, 57, 50, 43, 36),
        *(29, 22, 15, 23, 30, 37, 44, 51),
        *(58, 59, 52, 45, 38, 31, 39, 46),
        *(53, 60, 61, 54, 47, 55, 62, 63),
    )
)
_ROWS, _COLUMNS = np.divmod(ZIGZAG, 8)
#: Position along the zigzag -> 8 * column + row: transforms process blocks by column.
TRANSPOSED_ZIGZAG = 8 * _COLUMNS + _ROWS


def _factors(quantizer: int) -> list[int]:
    return (1 + (1 + _ROWS + _COLUMNS) * quantizer).tolist()  # type: ignore[no-any-return]


#: [quantizer, position along the zigzag] -> coefficient of level 1. Quantizer 0 does not exist.
FACTORS = np.array([_factors(quantizer) for quantizer in range(MAX_QUANTIZER + 1)] + [_factors(TABLE_MODE_QUANTIZER)])
assert len(FACTORS) == TABLE_MODE + 1
