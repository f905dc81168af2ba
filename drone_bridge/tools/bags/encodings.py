# SPDX-License-Identifier: Apache-2.0
"""Patch of rosbags that skips topics with encodings other than those of ROS 2, such as those of Foxglove's tools.

rosbags rejects a whole file for one unknown schema, and has no public option to skip it. This module therefore replaces
two of its functions, for the whole process.
"""

import struct
from typing import Any, BinaryIO

from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat
from rosbags.rosbag2 import storage_mcap

_get_definition = storage_mcap.get_msgdef
#: Schema encodings that rosbags supports.
_KNOWN_SCHEMAS = ("ros2msg", "ros2idl", "omgidl", "")


def _definition(schema: Any) -> MessageDefinition:
    if schema is not None and schema.encoding not in _KNOWN_SCHEMAS:
        return MessageDefinition(MessageDefinitionFormat.NONE, "")
    return _get_definition(schema)


def _read_string(bio: BinaryIO) -> str:
    """Read a string, also if it is no valid text, as in protobuf schemas."""
    (size,) = struct.unpack("<I", storage_mcap.read_exact(bio, 4))
    return storage_mcap.read_exact(bio, size).decode(errors="replace")


def pass_over_other_encodings() -> None:
    """Install the patch."""
    storage_mcap.get_msgdef = _definition
    storage_mcap.read_string = _read_string
