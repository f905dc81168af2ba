# SPDX-License-Identifier: Apache-2.0
"""Codecs of five legacy robot protocols, without sockets, threads, clocks or ROS: bytes in, events out, and back.

Each protocol is a module of its own with a connection class per role:

    from drone_bridge.protocols import ProtocolError, testbed

    connection = testbed.AutopilotConnection()
    connection.receive_data(data)
    for event in connection.events():
        ...

docs/protocols.md has an example of each. What all of them share is here.
"""

from drone_bridge.protocols.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from drone_bridge.protocols.events import NEED_DATA, ConnectionClosed, EventSource, NeedData

__all__ = [
    "NEED_DATA",
    "ConnectionClosed",
    "EventSource",
    "LocalProtocolError",
    "NeedData",
    "ProtocolError",
    "RemoteProtocolError",
]
