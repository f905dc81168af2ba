# SPDX-License-Identifier: Apache-2.0
"""Variable-length codes of runs of zeros and of levels.

Each code starts with zeros, whose number determines its length. From two zeros on, a run's code is the run itself as a
number, and a level's code is its magnitude followed by its sign. So codes need only tables of their lengths.
"""

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.uint8]

#: Number of zeros at the start of the longest code of a run, and of a level.
MAX_RUN_ZEROS = 6
MAX_LEVEL_ZEROS = 10
#: Number of bits that determine the length of any code.
PREFIX_BITS = MAX_LEVEL_ZEROS + 1
#: Largest level with a documented code.
MAX_WRITTEN_LEVEL = 127
END_OF_BLOCK, END_OF_BLOCK_BITS = 0b1_01, 3  # run 0, and the end instead of a level


def _bit_lengths(count: int) -> Integers:
    """Return the bit lengths of the numbers below a count."""
    return np.array([number.bit_length() for number in range(count)])


_PREFIX_ZEROS = PREFIX_BITS - _bit_lengths(1 << PREFIX_BITS)
#: Length in bits of the run code that starts with this prefix; 0 if there is none.
RUN_BITS = np.where(_PREFIX_ZEROS < 2, _PREFIX_ZEROS + 1, 2 * _PREFIX_ZEROS).astype(np.uint8)
RUN_BITS[_PREFIX_ZEROS > MAX_RUN_ZEROS] = 0
#: Length in bits of the level code that starts with this prefix; 0 if there is none.
LEVEL_BITS = np.where(_PREFIX_ZEROS < 2, 2, 2 * _PREFIX_ZEROS + 1).astype(np.uint8)
LEVEL_BITS[_PREFIX_ZEROS > MAX_LEVEL_ZEROS] = 0
#: Whether this prefix is the end of a block, at the position of a level.
IS_END = _PREFIX_ZEROS == 1

_NUMBER_BITS = _bit_lengths(MAX_WRITTEN_LEVEL + 1)


def run_of(code: Integers, bits: Lengths) -> Integers:
    """Return the runs of codes, each a number with this many bits."""
    return np.where(bits > 2, code, bits - np.uint8(1))


def level_of(code: Integers) -> Integers:
    """Return the levels of codes, each a number; 0 for the end of a block."""
    magnitude = code >> 1
    return np.where(code & 1, -magnitude, magnitude)


def codes_of_runs(runs: Integers) -> tuple[Integers, Integers]:
    """Return codes, and their lengths in bits, of runs from 0 to 62."""
    return np.maximum(runs, 1), np.where(runs < 2, runs + 1, 2 * _NUMBER_BITS.take(runs))


def codes_of_levels(levels: Integers) -> tuple[Integers, Integers]:
    """Return codes, and their lengths in bits, of levels up to MAX_WRITTEN_LEVEL, none of them 0."""
    magnitudes = np.abs(levels)
    lengths = np.where(magnitudes == 1, 2, 2 * _NUMBER_BITS.take(magnitudes) + 1)
    return magnitudes << 1 | (levels < 0), lengths
