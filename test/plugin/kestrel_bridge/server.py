# SPDX-License-Identifier: Apache-2.0
"""kestrel_server: a client of the kestrel steers a ROS drone."""

import sys

from drone_bridge.ros.common_parameters import common_parameters
from drone_bridge.ros.datagram_server import DATAGRAM_SERVER_PARAMETERS, DatagramServer, RosDrone
from drone_bridge.ros.frames import FrameNames
from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.ros.program import run
from drone_bridge.ros.topics import TopicSubscriptions
from kestrel_bridge.codec import DEFAULT_PORT, DEFAULT_STATE_PORT
from kestrel_bridge.device import DroneSide
from kestrel_bridge.topics import AXES, FULL_SCALE, TOPICS, Translation, assemble, twist_from_steer

FLIGHTS = ("takeoff", "land")
PARAMETERS = (
    *common_parameters(DEFAULT_PORT, "The port for clients; 0 picks a free one.", roles=("listen",)),
    *DATAGRAM_SERVER_PARAMETERS,
    ParameterDeclaration("state_port", DEFAULT_STATE_PORT, "The clients' port for state.", range=(1, 65535)),
    *FULL_SCALE,
    *(ParameterDeclaration(f"target.{name}", f"kestrel_bridge/{name}", f"The service for {name}.") for name in FLIGHTS),
)


class KestrelServer(DatagramServer):
    """The kestrel that clients see."""

    def __init__(self, **options) -> None:
        super().__init__("kestrel_server", PARAMETERS, **options)

    def make_sources(self) -> None:
        get = self.parameters.__getitem__
        self.drone = RosDrone(self, {name: get(f"target.{name}") for name in FLIGHTS})
        self._translation = Translation(FrameNames(get("frame_prefix")))
        self.sources = TopicSubscriptions(self, TOPICS, self._translation)
        self._side = DroneSide(self, self.send, get("state_port"))

    def receive(self, datagram) -> None:
        self._side.receive(datagram.data, datagram.source)

    def state(self):
        if self._side.client is None:
            return None
        return self._side.state(assemble(self._translation, self.sources.value, self.now())), self._side.client

    # The Drone of the conversation.

    def ask(self, name, finish) -> None:
        self.drone.ask(name, finish)

    def follow(self, steer) -> None:
        full_scale = {axis: self.parameters[f"full_scale.{axis}"] for axis in AXES}
        self.drone.steer(twist_from_steer(steer, full_scale))


def main() -> int:
    """Run the node."""
    return run(KestrelServer)


if __name__ == "__main__":
    sys.exit(main())
