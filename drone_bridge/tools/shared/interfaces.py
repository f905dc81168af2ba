# SPDX-License-Identifier: Apache-2.0
"""message_text: definitions of the interface types that are installed on this machine, and their Python classes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ament_index_python.resources import get_resource
from rclpy.type_support import check_for_type_support

from drone_bridge.kind import load

TYPE_NAME = re.compile(r"([a-z][a-z0-9_]*)/(msg|srv|action)/([A-Z][A-Za-z0-9]*)")
_KINDS = {"msg": "message", "srv": "service", "action": "ROS action"}
PARTS_OF_SERVICE = re.compile(r"^---[^\S\n]*$", re.MULTILINE)
SEPARATOR = "=" * 80
#: Name of the format of definitions in MCAP and Foxglove.
ENCODING = "ros2msg"
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
PRIMITIVE_TYPES = frozenset(("bool", "byte", "char", "float32", "float64", "string", "wstring", *INTEGERS))
#: Types with large messages.
BULKY_TYPES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage", "sensor_msgs/msg/PointCloud2")


class UnknownTypeError(Exception):
    """Failure to find a type: it is not installed, or not completely."""


def split_type_name(type_name: str, kind: str = "msg") -> tuple[str, str]:
    """Return package and name of an installed type of this kind: msg, srv or action.

    Only types that a package has registered as interfaces are accepted, since the name may come from any peer.

    Raises:
        UnknownTypeError: no installed package registers the type.
    """
    match, what = TYPE_NAME.fullmatch(type_name), _KINDS[kind]
    if match is None or match[2] != kind:
        raise UnknownTypeError(f"'{type_name}' is not a {what} type; package/{kind}/Name is expected.")
    package, _, name = match.groups()
    try:
        interfaces, _ = get_resource("rosidl_interfaces", package)
    except (LookupError, OSError):
        raise UnknownTypeError(f"The package '{package}' of '{type_name}' is not installed.") from None
    if f"{kind}/{name}.idl" not in interfaces.split():
        raise UnknownTypeError(f"The installed package '{package}' has no {what} '{name}'.")
    return package, name


def interface_file(type_name: str, suffix: str) -> Path:
    """Return the path of the file of an installed message type with a suffix. The file may not exist."""
    package, name = split_type_name(type_name)
    return _share(package) / "msg" / (name + suffix)


def _share(package: str) -> Path:
    """Return the share folder of a package with interfaces, in the prefix where they are registered."""
    _, prefix = get_resource("rosidl_interfaces", package)
    return Path(prefix, "share", package)


def message_text(type_name: str) -> str:
    """Return the definition of an installed message type, followed by those of the types that it contains.

    Raises:
        UnknownTypeError: the type, or one that it contains, is not installed, or has no readable .msg file.
    """
    split_type_name(type_name)
    try:
        return _with_dependencies(_definition(type_name), type_name)
    except (OSError, UnicodeDecodeError) as error:
        raise UnknownTypeError(f"The installed definition of '{type_name}' can't be used: {error}") from None


def service_texts(type_name: str) -> tuple[str, str]:
    """Return the definitions of the request and of the response of an installed service type.

    Raises:
        UnknownTypeError: the type, or one that it contains, is not installed, or a file can't be read.
    """
    package, name = split_type_name(type_name, "srv")
    try:
        text = (_share(package) / "srv" / f"{name}.srv").read_text(encoding="utf-8")
        request, response = PARTS_OF_SERVICE.split(text)
        return _with_dependencies(request, type_name), _with_dependencies(response, type_name)
    except (OSError, ValueError) as error:
        raise UnknownTypeError(f"The installed definition of '{type_name}' can't be used: {error}") from None


def import_interface(type_name: str, kind: str = "msg") -> Any:
    """Return the class of an installed message, service or action type.

    Raises:
        UnknownTypeError: it is not installed, or has no type support for Python.
    """
    package, name = split_type_name(type_name, kind)
    try:
        interface = load(f"{package}.{kind}:{name}")
        if kind == "msg":
            check_for_type_support(interface)
    except Exception as error:  # any exception of a broken installation
        raise UnknownTypeError(f"The installed Python module of '{type_name}' can't be used: {error}") from None
    return interface


def type_hash(type_name: str) -> str:
    """Return the type hash of an installed message type (REP 2016), RIHS01_...; empty if there is none.

    Distributions before Iron have no hashes. Raises UnknownTypeError as `message_text` does.
    """
    try:
        description = json.loads(interface_file(type_name, ".json").read_bytes())
        hashes = {entry["type_name"]: entry["hash_string"] for entry in description["type_hashes"]}
        return str(hashes[type_name])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _definition(type_name: str) -> str:
    return interface_file(type_name, ".msg").read_text(encoding="utf-8")


def _with_dependencies(text: str, type_name: str) -> str:
    """Return the text of a type, followed by that of each contained type, once, under a heading."""
    parts: list[str] = []
    seen = {type_name}

    def append(text: str, type_name: str) -> None:
        parts.append(text)
        for dependency in _dependencies(text, type_name):
            if dependency not in seen:
                seen.add(dependency)
                parts.append(f"\n{SEPARATOR}\nMSG: {dependency.replace('/msg/', '/')}\n")
                append(_definition(dependency), dependency)

    append(text, type_name)
    return "".join(parts)


def _dependencies(text: str, type_name: str) -> Iterator[str]:
    package = type_name.partition("/")[0]
    for line in text.splitlines():
        declaration = line.partition("#")[0].split()
        if not declaration:
            continue
        field_type = re.split(r"[\[<]", declaration[0], maxsplit=1)[0]
        if field_type not in PRIMITIVE_TYPES:
            yield f"{package}/msg/{field_type}" if "/" not in field_type else field_type.replace("/", "/msg/")
