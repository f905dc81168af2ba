# SPDX-License-Identifier: Apache-2.0
"""Sample conversation with each message of the protocol, and a function that recognizes neutral commands."""

from drone_bridge.kind import Sent, Side
from kestrel_bridge.codec import Answer, DroneConnection, Hello, Land, State, Steer, TakeOff


def conversation() -> tuple[Sent, ...]:
    """Return a short flight."""
    return (
        Sent(Side.OPERATOR, Hello()),
        Sent(Side.VEHICLE, Answer("hello")),
        Sent(Side.VEHICLE, State(0, 0, 0, 0, 0, 0, 0, 87)),
        Sent(Side.OPERATOR, TakeOff()),
        Sent(Side.VEHICLE, Answer("takeoff")),
        Sent(Side.OPERATOR, Steer(-20, 100, 5, -7)),
        Sent(Side.VEHICLE, State(-3, 4, 90, 120, -30, -10, 105, 86)),
        Sent(Side.OPERATOR, TakeOff()),
        Sent(Side.VEHICLE, Answer("takeoff", False, "it flies already")),
        Sent(Side.OPERATOR, Land()),
    )


def commands():
    """Return a function that decodes a client's bytes, and returns for each command whether it is neutral."""
    connection = DroneConnection()

    def read(data):
        connection.receive_data(data)
        return [event == Steer() for event in connection.events() if isinstance(event, Steer)]

    return read
