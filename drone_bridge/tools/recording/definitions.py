# SPDX-License-Identifier: Apache-2.0
"""Message definitions, as a bag carries them, of the interfaces that are installed on this machine."""

import json
import re
from dataclasses import dataclass

from rosbags.typesys import Stores, TypesysError, get_types_from_idl, get_types_from_msg, get_typestore

from drone_bridge.tools.interfaces import SEPARATOR, InterfaceText, UnknownTypeError, interface_file, message_text

CHAR_FIELD = re.compile(r"^\s*char\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MessageDefinition:
    """All that a reader without the interface package needs to decode a type."""

    type_name: str
    """package/msg/Name"""
    text: str
    """The .msg file followed by those it depends on, or the same with .idl files."""
    encoding: str
    """What MCAP calls the one and the other: ros2msg or ros2idl."""
    type_hash: str
    """REP 2016 type description hash, RIHS01_..."""


def find_definition(type_name: str) -> MessageDefinition:
    """Return the definition of an installed message type.

    Raises:
        UnknownTypeError: the type, or one that it contains, is not installed, or its files can't be understood.
    """
    found = message_text(type_name)
    try:
        type_hash = _installed_hash(type_name) or _computed_hash(type_name, found)
        return MessageDefinition(type_name, found.text, found.encoding, type_hash)
    except TypesysError as error:
        raise UnknownTypeError(f"The installed definition of '{type_name}' can't be used: {error}") from None


def _installed_hash(type_name: str) -> str:
    """Return the hash that was computed when the interface was built, '' on distributions before Iron."""
    try:
        description = json.loads(interface_file(type_name, ".json").read_bytes())
        hashes = {entry["type_name"]: entry["hash_string"] for entry in description["type_hashes"]}
        return str(hashes[type_name])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _computed_hash(type_name: str, found: InterfaceText) -> str:
    store = get_typestore(Stores.EMPTY)
    if found.is_idl:
        for part in found.text.split(f"{SEPARATOR}\nIDL: ")[1:]:
            # The parser knows #include <...> only; what is included follows anyway.
            body = [line for line in part.splitlines()[1:] if not line.startswith("#include")]
            store.register(get_types_from_idl("\n".join(body)))
    else:
        # In a .msg file, char is another word for uint8; to the parser it is the type of IDL.
        store.register(get_types_from_msg(CHAR_FIELD.sub("uint8", found.text), type_name))
    return store.hash_rihs01(type_name)
