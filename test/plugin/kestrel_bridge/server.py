# SPDX-License-Identifier: Apache-2.0
"""kestrel_server: lets a client of the kestrel steer a ROS drone."""

from functools import partial

from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.net.datagram_link import DatagramPort
from drone_bridge.ros.node.common_parameters import (
    ALLOWED_PEERS,
    NEUTRAL_TIME,
    SOURCE_TIMEOUT,
    common_parameters,
    read_allowed_peers,
)
from drone_bridge.ros.node.parameters import ParameterDeclaration
from drone_bridge.ros.node.program import run
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.servers.service_caller import ServiceCaller
from drone_bridge.ros.servers.topic_subscriptions import TopicSubscriptions
from drone_bridge.ros.servers.velocity_publisher import VelocityPublisher
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.ros.topics.table import MissingTopicError
from drone_bridge.session.node_parameters import NodeParameters
from kestrel_bridge.codec import DEFAULT_PORT
from kestrel_bridge.session import DroneSession
from kestrel_bridge.topics import AXES, FULL_SCALE, TOPICS, Translation, assemble
from kestrel_bridge.units import velocity_from_steer

FLIGHTS = ("takeoff", "land")
ANSWER_TIMEOUT_S = 15.0
PARAMETERS = (
    *common_parameters(DEFAULT_PORT, "The port for clients; 0 picks a free one.", roles=("listen",)),
    SOURCE_TIMEOUT,
    NEUTRAL_TIME,
    ALLOWED_PEERS,
    *FULL_SCALE,
    *(ParameterDeclaration(f"target.{name}", f"kestrel_bridge/{name}", f"The service for {name}.") for name in FLIGHTS),
)


class KestrelServer(ProtocolNode):
    """Node that acts as a kestrel for its clients."""

    is_server = True
    open_state = "serving"

    def __init__(self, **options) -> None:
        super().__init__("kestrel_server", PARAMETERS, **options)

    def set_up(self):
        get = self.parameters.__getitem__
        self._allowed_peers = read_allowed_peers(self.parameters)
        self._translation = Translation(FrameNames(get("frame_prefix")))
        self._sources = TopicSubscriptions(self, TOPICS, self._translation)
        self._velocities = VelocityPublisher(self)
        self._caller = ServiceCaller(self, {name: get(f"target.{name}") for name in FLIGHTS}, ANSWER_TIMEOUT_S)

    def make_transport(self):
        return DatagramPort(self.parameters["host"], self.parameters["port"], self.wire_log)

    def make_session(self):
        self._session = DroneSession(self.parameters.live(NodeParameters), self._allowed_peers, self._state)
        return self._session

    def link_ended(self):
        super().link_ended()
        self._velocities.wait_for_delivery()

    def publish_event(self, message):
        full_scale = {axis: self.parameters[f"full_scale.{axis}"] for axis in AXES}
        self._velocities.publish(velocity_from_steer(message, full_scale), Shares(), self.decided_s)

    def call_service(self, name, tag):
        def finish(answer):
            self.post(partial(self._session.answered, tag, answer.is_success, answer.sentence), is_kept=True)

        self._caller.call(name, finish)

    def _state(self):
        try:
            state = assemble(self._translation, self._sources.value, self.now())
        except MissingTopicError as error:
            state, missing = None, f"no topic gives {error}, so no state is sent"
        else:
            missing = None
        self.report.update_condition("sources", missing, "outdated values are not sent")
        return state


def main() -> int:
    """Run the node."""
    return run(KestrelServer)
