# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a text that is not JSON, in a sentence: parsers say where they stopped, not what stands there."""

import re

#: What parsers skip at both ends; some programs send the NUL after their text, and some a mark before it.
_BLANK = " \t\r\n"
_MARK = "\ufeff"
# A string, closed or not, and whether it is a key; a bracket; what C, Python and JavaScript write for no number.
_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\]|\\.)*"?)(?P<is_key>\s*:)?|(?P<bracket>[][{}])'
    r"|(?<![\w.])(?P<number>[-+]?(?:nan|inf(?:inity)?))(?![\w.])",
    re.DOTALL | re.IGNORECASE,
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
    if found := _no_number(text):
        return f" is not JSON: {found}, and JSON has finite numbers only. What is unknown is null, or left out."
    return f" is not JSON: {reason} at character {position}."


def _no_number(text: str) -> str:
    """Return the path and value of the first NaN or infinity, empty if there is none."""
    keys = [""]
    for token in _TOKEN.finditer(text):
        if token["is_key"]:
            keys[-1] = token["string"].strip('"')
        elif token["bracket"] in ("{", "["):
            keys.append("")
        elif token["bracket"]:
            keys = keys[:-1] or [""]
        elif token["number"]:
            path = ".".join(filter(None, keys))
            return f"{path:.100} is {token['number']}" if path else f"it holds {token['number']}"
    return ""
