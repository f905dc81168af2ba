# SPDX-License-Identifier: Apache-2.0
"""What all codecs share: declared layouts, connections, events and errors. No I/O, no clock, no ROS.

A codec turns bytes into events and back. Each of its connections is one role of a conversation: `receive_data` takes
what arrived in whatever pieces, `next_event` gives what it means until it returns NEED_DATA, `send` gives the bytes of
a message. Any bytes give events or RemoteProtocolError; `send` raises LocalProtocolError, whatever it is given.
"""

from drone_bridge.wire.events import (
    NEED_DATA,
    ConnectionClosed,
    EventSource,
    LocalProtocolError,
    NeedData,
    ProtocolError,
    RemoteProtocolError,
)
from drone_bridge.wire.outgoing import Range

__all__ = [
    "NEED_DATA",
    "ConnectionClosed",
    "EventSource",
    "LocalProtocolError",
    "NeedData",
    "ProtocolError",
    "Range",
    "RemoteProtocolError",
]
