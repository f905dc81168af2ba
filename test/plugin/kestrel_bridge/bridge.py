# SPDX-License-Identifier: Apache-2.0
"""kestrel_bridge: ROS steers a kestrel."""

import sys

from drone_bridge.ros.common_parameters import common_parameters, frame_names, frame_parameters
from drone_bridge.ros.datagram_bridge import DATAGRAM_PARAMETERS, DatagramBridge
from drone_bridge.ros.frames import FrameNames
from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.ros.program import run
from drone_bridge.ros.topics import TopicPublishers
from kestrel_bridge.codec import (
    DEFAULT_PORT,
    DEFAULT_STATE_PORT,
    Answer,
    ClientConnection,
    Hello,
    Land,
    Steer,
    TakeOff,
)
from kestrel_bridge.topics import AXES, FULL_SCALE, TOPICS, Translation, steer_from_twist

PARAMETERS = (
    *common_parameters(DEFAULT_PORT, "The drone's port for commands.", roles=("connect",)),
    *DATAGRAM_PARAMETERS,
    ParameterDeclaration("state_port", DEFAULT_STATE_PORT, "Our port for the drone's state.", range=(1, 65535)),
    *FULL_SCALE,
    *frame_parameters("publish_tf", "publish_map_to_odom", "map_frame"),
)


class KestrelBridge(DatagramBridge):
    """Everything but what the messages mean is in the base."""

    connection = ClientConnection
    neutral = Steer()
    greeting = Hello()
    flights = {"takeoff": TakeOff(), "land": Land()}  # noqa: RUF012
    state_port_parameter = "state_port"

    def __init__(self, **options) -> None:
        super().__init__("kestrel_bridge", PARAMETERS, **options)

    def make_topics(self):
        return TopicPublishers(self, TOPICS, Translation(frame_names(self.parameters, FrameNames)))

    def command_from_twist(self, twist):
        return steer_from_twist(twist, {axis: self.parameters[f"full_scale.{axis}"] for axis in AXES})

    def take(self, event) -> None:
        if isinstance(event, Answer):
            self.answer(event.is_ok, event.reason or "ok")
        else:
            self.show(event)


def main() -> int:
    """Run the node."""
    return run(KestrelBridge)


if __name__ == "__main__":
    sys.exit(main())
