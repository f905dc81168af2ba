# SPDX-License-Identifier: Apache-2.0
"""Message definitions, as a bag carries them, of the interfaces that are installed on this machine."""

import json
from dataclasses import dataclass

from drone_bridge.tools.interfaces import interface_file, message_text


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
    """REP 2016 type description hash, RIHS01_..., or empty before Iron."""


def find_definition(type_name: str) -> MessageDefinition:
    """Return the definition of an installed message type.

    Raises:
        UnknownTypeError: the type, or one that it contains, is not installed, or its files can't be read.
    """
    found = message_text(type_name)
    return MessageDefinition(type_name, found.text, found.encoding, _hash_of(type_name))


def _hash_of(type_name: str) -> str:
    """Return the hash that was computed when the interface was built; empty on distributions before Iron."""
    try:
        description = json.loads(interface_file(type_name, ".json").read_bytes())
        hashes = {entry["type_name"]: entry["hash_string"] for entry in description["type_hashes"]}
        return str(hashes[type_name])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
