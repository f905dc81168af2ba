# SPDX-License-Identifier: Apache-2.0
"""The drone autopilot and virtual testbed protocol: TCP, big-endian, no lengths, no magic numbers.

The testbed opens with `Constants`. Then the two take turns: the testbed sends a `SensorFrame`, the autopilot
answers with `MotionParameters`, and simulated time stands still meanwhile. Closing the connection instead of
sending a frame is the regular end.

One wrong byte shifts all that follow, and implausible values are the only sign of it. Hence the checks, of incoming and
outgoing messages: finite numbers, usable angles of view, pitch within half a turn, time not running backwards. Time 0
is the exception: it says that a new simulation has started on the same connection.
"""

from drone_bridge.testbed.codec.autopilot_connection import AutopilotConnection
from drone_bridge.testbed.codec.messages import (
    BYTES_PER_PIXEL,
    DEFAULT_PORT,
    AngleUnit,
    AttitudeLayout,
    Constants,
    ImageBytes,
    Limits,
    MotionParameters,
    SensorFrame,
    SimulationRestarted,
)
from drone_bridge.testbed.codec.testbed_connection import TestbedConnection
from drone_bridge.wire.events import NEED_DATA, ConnectionClosed

__all__ = [
    "BYTES_PER_PIXEL",
    "DEFAULT_PORT",
    "NEED_DATA",
    "AngleUnit",
    "AttitudeLayout",
    "AutopilotConnection",
    "ConnectionClosed",
    "Constants",
    "ImageBytes",
    "Limits",
    "MotionParameters",
    "SensorFrame",
    "SimulationRestarted",
    "TestbedConnection",
]
