# SPDX-License-Identifier: Apache-2.0
"""Untrusted text, made safe to print: `printable`."""

LONGEST = 1000  # characters


def printable(text: str, longest: int = LONGEST) -> str:
    r"""Return text that can't move a cursor, change colours or fill a screen.

    Characters that can't be printed become escapes such as \x1b, and what is beyond `longest` characters is cut off.
    """
    shown = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "backslashreplace").decode("ascii")
        for letter in text[:longest]
    )
    return f"{shown}..." if len(text) > longest else shown
