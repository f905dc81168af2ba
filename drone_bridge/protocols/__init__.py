# SPDX-License-Identifier: Apache-2.0
"""Codecs of legacy robot protocols, without sockets, threads, clocks or ROS: bytes in, events out, and back.

Each protocol is a module of its own with a connection class per role:

    from drone_bridge.protocols import ProtocolError, testbed

    connection = testbed.AutopilotConnection()
    connection.receive_data(data)
    for event in connection.events():
        ...

docs/protocols.md and examples/codecs.py have an example of each. This is the public interface of the library: nothing
in this package imports it, and it imports the codec of a protocol, from that protocol's folder, on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from drone_bridge.wire import (
    NEED_DATA,
    ConnectionClosed,
    EventSource,
    LocalProtocolError,
    NeedData,
    ProtocolError,
    RemoteProtocolError,
)

if TYPE_CHECKING:
    from drone_bridge.ardrone import codec as ardrone
    from drone_bridge.dronegui import codec as dronegui
    from drone_bridge.robot import codec as robot
    from drone_bridge.simulator import codec as simulator
    from drone_bridge.telemetry import codec as telemetry
    from drone_bridge.testbed import codec as testbed

__all__ = [
    "NEED_DATA", "ConnectionClosed", "EventSource", "LocalProtocolError", "NeedData", "ProtocolError",
    "RemoteProtocolError", "ardrone", "dronegui", "robot", "simulator", "telemetry", "testbed",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"drone_bridge.{name}.codec")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
