# SPDX-License-Identifier: Apache-2.0
"""Let rosbags pass over topics of other encodings than those of ROS 2, which Foxglove's tools write beside them.

It refuses the whole file for a schema that it does not know, and has no public way to pass over one: two functions are
replaced here, once, for the whole process.
"""

import struct
from typing import Any, BinaryIO

from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat
from rosbags.rosbag2 import storage_mcap

_get_definition = storage_mcap.get_msgdef
#: Of schemas, those that rosbags knows.
_KNOWN_SCHEMAS = ("ros2msg", "ros2idl", "omgidl", "")


def _definition(schema: Any) -> MessageDefinition:
    if schema is not None and schema.encoding not in _KNOWN_SCHEMAS:
        return MessageDefinition(MessageDefinitionFormat.NONE, "")
    return _get_definition(schema)


def _read_string(bio: BinaryIO) -> str:
    """Return the next text, also where it is none, as the schemas of protobuf."""
    (size,) = struct.unpack("<I", storage_mcap.read_exact(bio, 4))
    return storage_mcap.read_exact(bio, size).decode(errors="replace")


def pass_over_other_encodings() -> None:
    """Replace both functions."""
    storage_mcap.get_msgdef = _definition
    storage_mcap.read_string = _read_string
