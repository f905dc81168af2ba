# SPDX-License-Identifier: Apache-2.0
"""Sample conversation with each message of the protocol, and a reader that finds neutral commands."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from drone_bridge.dronegui.codec import (
    MAJOR_STATE_SHIFT,
    ControlPacket,
    Controls,
    Demo,
    Feature,
    FlightState,
    OtherNavdata,
    ReceiverConnection,
    VisionDetect,
)
from drone_bridge.kind import ProtocolKind, Recorded, Sent, Side


def conversation() -> tuple[Sent, ...]:
    """Return packets of a controller, and the navdata of a flying drone."""
    controls = (Controls(), Controls(take_off=True), Controls(hover=False, roll=0.25, pitch=-0.5, yaw=1.0, gas=-1.0))
    state = FlightState.FLYING << MAJOR_STATE_SHIFT
    navdata = (
        Demo(state, 87.0, -1500.0, 2500.0, 90_000.0, 1200.0, 250.0, -125.0, 0.0, 7),
        VisionDetect((Feature(500.0, 250.0, 120.0, 80.0, 150.0), Feature(0.0, 1000.0, 10.0, 10.0, 75.0))),
        VisionDetect(),
        OtherNavdata("checksum", {"value": 12345}),
    )
    return (
        *(Sent(Side.OPERATOR, each, ControlPacket(seq, each)) for seq, each in enumerate(controls, 1)),
        *(Sent(Side.VEHICLE, block) for block in navdata),
    )


def commands() -> Callable[[bytes], Iterator[bool]]:
    """Read packets of a controller. Hover is neutral, and so is a button without tilt."""

    def read(data: bytes) -> Iterator[bool]:
        # A new one, because a new bridge starts again from 1.
        connection = ReceiverConnection(complete_states_only=True)
        connection.receive_data(data)
        if isinstance(packet := connection.next_event(), ControlPacket):
            controls = packet.controls
            yield controls.hover or not any((controls.roll, controls.pitch, controls.yaw, controls.gas))

    return read


class RecordedGui(Recorded):
    """Recorded datagrams, which are independent of each other."""

    def __init__(self, kind: ProtocolKind, parameters: Mapping[str, Any]) -> None:
        super().__init__(kind, parameters)
        self.readers[Side.OPERATOR] = ReceiverConnection()
