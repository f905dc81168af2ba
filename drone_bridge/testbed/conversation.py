# SPDX-License-Identifier: Apache-2.0
"""One conversation with each message of the protocol."""

from drone_bridge.kind import Sent, Side
from drone_bridge.testbed.codec import Constants, MotionParameters, SensorFrame


def conversation() -> tuple[Sent, ...]:
    """Return the constants and two frames with their answers, of 2 x 1 pixels; numbers are exact on the wire."""
    constants = Constants(90.0, 60.0, 2, 1, 0.25, 1.5, 9.75, 0.25, 25.0, 720.0, 360.0, 180.0)
    frames = (
        SensorFrame(bytes(range(6)), bytes(range(6, 12)), time, pitch, yaw=yaw)
        for time, pitch, yaw in ((0.25, 1.5, -2.5), (0.5, -12.0, 90.0))
    )
    answer = MotionParameters(1.5, -2.5, 90.0, 12.25)
    return (
        Sent(Side.VEHICLE, constants),
        *(sent for frame in frames for sent in (Sent(Side.VEHICLE, frame), Sent(Side.OPERATOR, answer))),
    )
