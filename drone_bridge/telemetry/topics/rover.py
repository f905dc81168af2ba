# SPDX-License-Identifier: Apache-2.0
"""A rover's state as a document of the telemetry protocol."""

import math

from std_msgs.msg import String

from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.telemetry.codec import RoverConnection, RoverTelemetry, Vector
from drone_bridge.translate.planar import Pose


def rover_document(pose: Pose, forward: float, pattern: str, z: float, timestamp: float) -> String:
    """Return the document, as the text of a topic.

    Args:
        pose: in the world's frame, looking where it drives.
        forward: its speed, m/s.
        pattern: the name of what it drives.
        z: height of what counts as its position, m.
        timestamp: s.

    Raises:
        ValueError: with a sentence, for what the protocol does not allow, such as a rover two million metres away.
    """
    velocity = Vector(forward * math.cos(pose.yaw), forward * math.sin(pose.yaw), 0.0)
    telemetry = RoverTelemetry(Vector(pose.x, pose.y, z), velocity, pattern, timestamp)
    try:
        return String(data=RoverConnection().send(telemetry).decode())
    except LocalProtocolError as error:
        raise ValueError(str(error)) from error
