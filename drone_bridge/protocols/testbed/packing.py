# SPDX-License-Identifier: Apache-2.0
"""What both ends of the testbed protocol pack and unpack."""

import operator
import struct
from collections.abc import Iterable
from typing import Final

from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.protocols.testbed.messages import MotionParameters, non_finite

CONSTANTS: Final = struct.Struct(">ffiiffffffff")
REPLY: Final = struct.Struct(">ffff")
reply_values: Final = operator.attrgetter(*MotionParameters.__slots__)  # astuple is slow, and this is done per frame


def pack(layout: struct.Struct, names: Iterable[str], values: tuple[float, ...]) -> bytes:
    """Pack values that have to survive as finite float32. Raises LocalProtocolError."""
    if complaint := non_finite(zip(names, values, strict=True)):
        raise LocalProtocolError(complaint)
    try:
        return layout.pack(*values)
    except (struct.error, OverflowError) as error:
        raise LocalProtocolError(f"{dict(zip(names, values, strict=True))} does not fit the wire: {error}.") from error
