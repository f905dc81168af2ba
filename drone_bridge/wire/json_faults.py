# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a text that is not JSON, in a sentence: parsers say where they stopped, not what stands there."""

import re

#: What parsers skip at both ends; some programs send the NUL after their text, and some a mark before it.
_BLANK = " \t\r\n"
_MARK = "\ufeff"
# A string, closed or not; and where it is a key, what C, Python and JavaScript write for no number.
_STRING = re.compile(
    r'"(?P<key>(?:[^"\\]|\\.)*)"?(?:\s*:\s*(?P<number>[-+]?(?:nan|inf(?:inity)?))(?!\w))?', re.DOTALL | re.IGNORECASE
)


def fault_in(text: str, reason: str, position: int) -> str:
    """Return what is wrong with a text that a parser has refused at a position, for this reason.

    It goes on where its subject, as in "The packet", is missing.
    """
    end = len(text.rstrip(_BLANK + "\0"))
    if "\0" in text[end:]:
        return f" is not JSON: it ends in NUL at character {text.index(chr(0), end)}. Leave that out."
    if text.startswith(_MARK):
        return " is not JSON: it begins with a byte order mark. Leave that out."
    for found in _STRING.finditer(text):
        if found["number"]:
            what = f"{found['key']:.100} is {found['number']}"
            return f" is not JSON: {what}, and JSON has finite numbers only. What is unknown is null, or left out."
    return f" is not JSON: {reason} at character {position}."
