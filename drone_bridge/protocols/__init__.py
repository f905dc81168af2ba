# SPDX-License-Identifier: Apache-2.0
"""Codecs of five legacy robot protocols, without sockets, threads, clocks or ROS: bytes in, events out, and back.

Each protocol is a module of its own with a connection class per role:

    from drone_bridge.protocols import ProtocolError, testbed

    connection = testbed.AutopilotConnection()
    connection.receive_data(data)
    for event in connection.events():
        ...

docs/protocols.md has an example of each. This is the door for users of the library: it opens a protocol's codec, in
that protocol's folder, only when somebody asks for it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from drone_bridge.wire.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from drone_bridge.wire.events import NEED_DATA, ConnectionClosed, EventSource, NeedData

if TYPE_CHECKING:
    from drone_bridge.telemetry import codec as telemetry

_CODECS = ("telemetry",)

__all__ = [
    "NEED_DATA",
    "ConnectionClosed",
    "EventSource",
    "LocalProtocolError",
    "NeedData",
    "ProtocolError",
    "RemoteProtocolError",
    "telemetry",
]


def __getattr__(name: str) -> Any:
    if name in _CODECS:
        return importlib.import_module(f"drone_bridge.{name}.codec")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
