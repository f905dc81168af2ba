# SPDX-License-Identifier: Apache-2.0
"""printable: sanitizes untrusted text for terminals and logs."""

LONGEST = 1000  # characters


def printable(text: str, longest: int = LONGEST) -> str:
    r"""Return text that can't move a cursor, change colours or fill a screen.

    Unprintable characters become escapes such as \x1b. Text beyond `longest` characters is truncated.
    """
    shown = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "backslashreplace").decode("ascii")
        for letter in text[:longest]
    )
    return f"{shown}..." if len(text) > longest else shown
