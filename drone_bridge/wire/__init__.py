# SPDX-License-Identifier: Apache-2.0
"""Common base of all codecs: declared layouts, connections, events and errors. No I/O, no clock, no ROS.

A codec converts bytes to events and back. Each of its connections is one role of a conversation. `receive_data` accepts
bytes, cut anywhere. `next_event` returns their events, then NEED_DATA. `send` returns the bytes of a message. No input
raises other errors: received bytes give events or RemoteProtocolError, and `send` raises LocalProtocolError only.
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
