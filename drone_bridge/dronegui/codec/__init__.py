# SPDX-License-Identifier: Apache-2.0
"""The dronegui protocol: one JSON document per UDP datagram, between a controller and an AR.Drone's GUI.

A control packet carries a sequence number and the state of some controls; the receiver keeps the state of the others.
Nothing answers it. Once the GUI talks to its drone, it sends the drone's navdata, block by block, to another port of
its controllers. Signs and units are those of the wire: roll + goes right, pitch + goes backward, yaw + turns right,
gas + climbs; see docs/dronegui.md.
"""

from drone_bridge.dronegui.codec.connections import (
    DEFAULT_NAVDATA_PORT,
    DEFAULT_NAVDATA_SOURCE_PORT,
    DEFAULT_PORT,
    FIRST_SEQ,
    MAX_SEQ,
    ControllerConnection,
    ReceiverConnection,
)
from drone_bridge.dronegui.codec.documents import MAX_DATAGRAM_BYTES, MAX_NESTING
from drone_bridge.dronegui.codec.messages import (
    AXES,
    BUTTONS,
    MAJOR_STATE_SHIFT,
    PICTURE_UNITS,
    ControlPacket,
    Controls,
    Demo,
    Feature,
    FlightState,
    LatePacket,
    Navdata,
    OtherNavdata,
    VisionDetect,
)
from drone_bridge.dronegui.codec.navdata import MAX_FEATURES, MAX_MAGNITUDE
from drone_bridge.wire.events import NEED_DATA

__all__ = [
    "AXES",
    "BUTTONS",
    "DEFAULT_NAVDATA_PORT",
    "DEFAULT_NAVDATA_SOURCE_PORT",
    "DEFAULT_PORT",
    "FIRST_SEQ",
    "MAJOR_STATE_SHIFT",
    "MAX_DATAGRAM_BYTES",
    "MAX_FEATURES",
    "MAX_MAGNITUDE",
    "MAX_NESTING",
    "MAX_SEQ",
    "NEED_DATA",
    "PICTURE_UNITS",
    "ControlPacket",
    "ControllerConnection",
    "Controls",
    "Demo",
    "Feature",
    "FlightState",
    "LatePacket",
    "Navdata",
    "OtherNavdata",
    "ReceiverConnection",
    "VisionDetect",
]
