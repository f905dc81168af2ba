# SPDX-License-Identifier: Apache-2.0
"""Ranges in texts: drone[1-3] is drone1, drone2, drone3; [08-10] keeps its zeros."""

import re
from collections.abc import Sequence

#: Texts that a range may stand for; more are taken for a typo.
MAX_RANGE = 1000
_RANGE = re.compile(r"\[(\d+)-(\d+)\]")


def has_range(text: str) -> bool:
    """Return whether there is a range in the text."""
    return bool(_RANGE.search(text))


def expand(text: str) -> Sequence[str]:
    """Return the texts that a text with one range or none stands for. Raises ValueError with a sentence."""
    ranges = list(_RANGE.finditer(text))
    if not ranges:
        return (text,)
    if len(ranges) > 1:
        raise ValueError(f"'{text}' has {len(ranges)} ranges; at most one is allowed.")
    first, last = ranges[0].groups()
    count = int(last) - int(first) + 1
    if count < 1:
        raise ValueError(f"The range [{first}-{last}] in '{text}' counts down; ranges count up.")
    if count > MAX_RANGE:
        raise ValueError(
            f"The range [{first}-{last}] in '{text}' has {count} members; at most {MAX_RANGE} are allowed."
        )
    width = len(first) if first.startswith("0") else 0
    before, after = text[: ranges[0].start()], text[ranges[0].end() :]
    return tuple(f"{before}{number:0{width}}{after}" for number in range(int(first), int(last) + 1))
