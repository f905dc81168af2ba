# SPDX-License-Identifier: Apache-2.0
"""Message definitions, as a bag carries them, of the interfaces that are installed on this machine."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from ament_index_python.resources import get_resource
from rosbags.typesys import Stores, TypesysError, get_types_from_idl, get_types_from_msg, get_typestore

TYPE_NAME = re.compile(r"([a-z][a-z0-9_]*)/msg/([A-Z][A-Za-z0-9]*)")
IDL_INCLUDE = re.compile(r"^\s*#include\s+[\"<]([a-z][a-z0-9_]*)/msg/([A-Z][A-Za-z0-9]*)\.idl[\">]", re.MULTILINE)
CHAR_FIELD = re.compile(r"^\s*char\b", re.MULTILINE)
SEPARATOR = "=" * 80
FLOATS_AND_TEXT = ("float32", "float64", "string", "wstring")
INTEGERS = ("bool", "byte", "char", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
PRIMITIVE_TYPES = frozenset((*FLOATS_AND_TEXT, *INTEGERS))


class UnknownTypeError(Exception):
    """The type is not installed here, or not completely."""


@dataclass(frozen=True, slots=True)
class MessageDefinition:
    """All that a reader without the interface package needs to decode a type."""

    type_name: str
    """package/msg/Name"""
    text: str
    """The .msg file followed by those it depends on, or the same with .idl files."""
    type_hash: str
    """REP 2016 type description hash, RIHS01_..."""


def split_type_name(type_name: str) -> tuple[str, str]:
    """Return package and name of an installed message type.

    Only what a package registered as an interface counts: the name may come from any peer on the network.

    Raises:
        UnknownTypeError: no installed package registers the type.
    """
    match = TYPE_NAME.fullmatch(type_name)
    if match is None:
        raise UnknownTypeError(f"'{type_name}' is not a message type; package/msg/Name is expected.")
    package, name = match.groups()
    try:
        interfaces, _ = get_resource("rosidl_interfaces", package)
    except (LookupError, OSError):
        raise UnknownTypeError(f"The package '{package}' of '{type_name}' is not installed.") from None
    if f"msg/{name}.idl" not in interfaces.split():
        raise UnknownTypeError(f"The installed package '{package}' has no message '{name}'.")
    return package, name


def find_definition(type_name: str) -> MessageDefinition:
    """Return the definition of an installed message type.

    Raises:
        UnknownTypeError: the type, or one that it contains, is not installed, or its files can't be understood.
    """
    split_type_name(type_name)
    try:
        try:
            text = _concatenate(type_name, ".msg", _msg_dependencies)
        except FileNotFoundError:
            heading = f"{SEPARATOR}\nIDL: {type_name}\n"
            text = heading + _concatenate(type_name, ".idl", _idl_dependencies)
        return MessageDefinition(type_name, text, _installed_hash(type_name) or _computed_hash(type_name, text))
    except (OSError, UnicodeDecodeError, TypesysError) as error:
        raise UnknownTypeError(f"The installed definition of '{type_name}' can't be used: {error}") from None


def _interface_file(type_name: str, suffix: str) -> Path:
    package, name = split_type_name(type_name)
    return Path(get_package_share_directory(package), "msg", name + suffix)


def _concatenate(root: str, suffix: str, dependencies: Callable[[str, str], Iterator[str]]) -> str:
    """Return the text of a type followed by each type it contains, once, under a heading."""
    parts: list[str] = []
    seen = {root}

    def append(type_name: str) -> None:
        text = _interface_file(type_name, suffix).read_text(encoding="utf-8")
        parts.append(text)
        for dependency in dependencies(text, type_name):
            if dependency not in seen:
                seen.add(dependency)
                kind, name = ("MSG", dependency.replace("/msg/", "/")) if suffix == ".msg" else ("IDL", dependency)
                parts.append(f"\n{SEPARATOR}\n{kind}: {name}\n")
                append(dependency)

    append(root)
    return "".join(parts)


def _msg_dependencies(text: str, type_name: str) -> Iterator[str]:
    package = type_name.partition("/")[0]
    for line in text.splitlines():
        declaration = line.partition("#")[0].split()
        if not declaration:
            continue
        field_type = re.split(r"[\[<]", declaration[0], maxsplit=1)[0]
        if field_type not in PRIMITIVE_TYPES:
            yield f"{package}/msg/{field_type}" if "/" not in field_type else field_type.replace("/", "/msg/")


def _idl_dependencies(text: str, _type_name: str) -> Iterator[str]:
    for package, name in IDL_INCLUDE.findall(text):
        yield f"{package}/msg/{name}"


def _installed_hash(type_name: str) -> str:
    """Return the hash that was computed when the interface was built, '' on distributions before Iron."""
    try:
        description = json.loads(_interface_file(type_name, ".json").read_bytes())
        hashes = {entry["type_name"]: entry["hash_string"] for entry in description["type_hashes"]}
        return str(hashes[type_name])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _computed_hash(type_name: str, text: str) -> str:
    store = get_typestore(Stores.EMPTY)
    if text.startswith(SEPARATOR):
        for part in text.split(f"{SEPARATOR}\nIDL: ")[1:]:
            # The parser knows #include <...> only; what is included follows anyway.
            body = [line for line in part.splitlines()[1:] if not line.startswith("#include")]
            store.register(get_types_from_idl("\n".join(body)))
    else:
        # In a .msg file, char is another word for uint8; to the parser it is the type of IDL.
        store.register(get_types_from_msg(CHAR_FIELD.sub("uint8", text), type_name))
    return store.hash_rihs01(type_name)
