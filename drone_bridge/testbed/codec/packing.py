# SPDX-License-Identifier: Apache-2.0
"""What both ends of the testbed protocol pack and unpack."""

import operator
import struct
from collections.abc import Iterable
from typing import Final

from drone_bridge.testbed.codec.messages import Constants, MotionParameters, non_finite
from drone_bridge.wire.events import LocalProtocolError

CONSTANTS: Final = struct.Struct(">ffiiffffffff")
REPLY: Final = struct.Struct(">ffff")
_PARAMETERS: Final = MotionParameters.__slots__
constant_values: Final = operator.attrgetter(*Constants.__slots__)
_reply_values: Final = operator.attrgetter(*_PARAMETERS)  # astuple is slow, and this is done per frame


def pack(layout: struct.Struct, names: Iterable[str], values: tuple[float, ...]) -> bytes:
    """Pack values that have to survive as finite float32. Raises LocalProtocolError."""
    try:
        problem = non_finite(zip(names, values, strict=True))
        packed = layout.pack(*values)
    except (struct.error, OverflowError, TypeError, ValueError) as error:
        named = dict(zip(names, values, strict=True))
        raise LocalProtocolError(f"{named!r:.500} does not fit the wire: {error}.") from error
    if problem:
        raise LocalProtocolError(problem)
    return packed


def pack_reply(parameters: MotionParameters) -> bytes:
    """Pack an answer. Raises LocalProtocolError."""
    if not isinstance(parameters, MotionParameters):
        raise LocalProtocolError(f"An autopilot does not send {type(parameters).__name__}.")
    return pack(REPLY, _PARAMETERS, _reply_values(parameters))
