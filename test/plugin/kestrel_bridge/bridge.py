# SPDX-License-Identifier: Apache-2.0
"""kestrel_bridge: steers a kestrel from ROS."""

from drone_bridge.net.datagram_link import DatagramPeer
from drone_bridge.ros.commands.command_topics import CommandTopics
from drone_bridge.ros.node.common_parameters import common_parameters, frame_parameters
from drone_bridge.ros.node.limit_reports import limit_parameters
from drone_bridge.ros.node.parameters import declarations, read
from drone_bridge.ros.node.program import run
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.node.request_services import RequestServices
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.ros.topics.topic_publishers import TopicPublishers
from drone_bridge.wire.addresses import address_name
from kestrel_bridge.codec import DEFAULT_PORT
from kestrel_bridge.session import REQUESTS, ClientParameters, ClientSession
from kestrel_bridge.topics import AXES, FULL_SCALE, TOPICS, Translation
from kestrel_bridge.units import steer_from_velocity, within_full_scale

PARAMETERS = (
    *common_parameters(DEFAULT_PORT, "The drone's port for commands.", roles=("connect",)),
    *declarations(ClientParameters),
    *limit_parameters(is_drone=True),
    *FULL_SCALE,
    *frame_parameters(without=("publish_tf", "publish_map_to_odom", "map_frame")),
)


class KestrelBridge(ProtocolNode):
    """Node with the topics, the parameters, the link, and the session of a client."""

    open_state = "sending"

    def __init__(self, **options) -> None:
        super().__init__("kestrel_bridge", PARAMETERS, **options)

    def set_up(self):
        self._topics = TopicPublishers(self, TOPICS, Translation(read(FrameNames, self.parameters)))
        self._commands = CommandTopics(self, within_maxima=self._within_maxima, has_landing_button=True)
        self._commands.take_velocities(AXES.values())
        RequestServices(self, REQUESTS, self._ask)

    def make_transport(self):
        host, port = self.parameters["host"], self.parameters["port"]
        return DatagramPeer(host, port, self._connecting_failed, self.wire_log)

    def make_session(self):
        self._topics.restart()
        name = address_name(self.parameters["host"], self.parameters["port"])
        parameters = self.parameters.live(ClientParameters)
        self._session = ClientSession(name, self._commands.arbiter, self._steer, parameters)
        return self._session

    def publish_event(self, message):
        self._topics.publish(message, self.now())

    def _ask(self, request, now_s):
        return self._session.ask(request, now_s)

    def _within_maxima(self, velocity):
        return within_full_scale(velocity, self._full_scale())

    def _steer(self, velocity):
        return steer_from_velocity(velocity, self._full_scale())

    def _full_scale(self):
        return {axis: self.parameters[f"full_scale.{axis}"] for axis in AXES}


def main() -> int:
    """Run the node."""
    return run(KestrelBridge)
