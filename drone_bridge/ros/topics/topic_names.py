# SPDX-License-Identifier: Apache-2.0
"""Topic names from arbitrary names of people or machines."""

import re
import unicodedata
from collections.abc import Iterable

LONGEST = 64  # characters: a whole topic name has less than 256


def topic_token(name: str, fallback: str) -> str:
    """Convert a name to one token of a topic name: lower-case letters, digits and single underscores.

    Accents are dropped. A name that starts with a digit is prefixed with the fallback. One without ASCII letters or
    digits is replaced by the fallback. `fallback` must be a token itself.
    """
    plain = unicodedata.normalize("NFKD", name[: 4 * LONGEST]).encode("ascii", "ignore").decode()
    token = re.sub("[^a-z0-9]+", "_", plain.lower()).strip("_")
    if not token:
        return fallback
    if token[0].isdigit():
        token = f"{fallback}_{token}"
    return token[:LONGEST].strip("_")


def unique_names(names: Iterable[str]) -> list[str]:
    """Make names unique by the suffixes _2, _3, ..., in order."""
    taken: set[str] = set()
    unique = []
    for name in names:
        candidate, number = name, 2
        while candidate in taken:
            candidate, number = f"{name}_{number}", number + 1
        taken.add(candidate)
        unique.append(candidate)
    return unique
