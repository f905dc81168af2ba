# SPDX-License-Identifier: Apache-2.0
"""Error sentences for invalid JSON. They name the cause, while parsers report only the position of the error."""

import re

#: Whitespace that parsers skip at both ends. Some programs append a NUL, and some prepend a byte order mark.
_BLANK = " \t\r\n"
_MARK = "\ufeff"
# A string, terminated or not. After a key, also NaN or infinity as C, Python and JavaScript write them.
_STRING = re.compile(
    r'"(?P<key>(?:[^"\\]|\\.)*)"?(?:\s*:\s*(?P<number>[-+]?(?:nan|inf(?:inity)?))(?!\w))?', re.DOTALL | re.IGNORECASE
)


def fault_in(text: str, reason: str, position: int) -> str:
    """Return an error about a text that a parser has rejected at `position`, for `reason`.

    The sentence lacks its subject, such as "The packet".
    """
    end = len(text.rstrip(_BLANK + "\0"))
    if "\0" in text[end:]:
        return f" is not JSON: it ends in NUL at character {text.index(chr(0), end)}. Remove it."
    if text.startswith(_MARK):
        return " is not JSON: it begins with a byte order mark. Remove it."
    for found in _STRING.finditer(text):
        if found["number"]:
            what = f"{found['key']:.100} is {found['number']}"
            return f" is not JSON: {what}, and JSON has only finite numbers. Send null if it is unknown."
    return f" is not JSON: {reason} at character {position}."
