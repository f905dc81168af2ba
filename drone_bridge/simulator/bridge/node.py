# SPDX-License-Identifier: Apache-2.0
"""simulator_bridge: a client of the underwater simulator, as a ROS 2 node. See docs/simulator.md.

`session.client` decides what to send. This node provides its topics, services, parameters and connections.
"""

from random import Random
from typing import Any, NoReturn

from drone_bridge.motion.body_to_model import BodyToModel
from drone_bridge.net.link_loop import Link
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.ros.commands.command_streams import PROMPT_PERIOD_S
from drone_bridge.ros.commands.command_topics import CommandTopics
from drone_bridge.ros.node.parameters import read
from drone_bridge.ros.node.program import run
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.ros.topics.topic_names import topic_token
from drone_bridge.session.feedback import Feedback
from drone_bridge.simulator.bridge.parameters import PARAMETERS
from drone_bridge.simulator.bridge.services import SimulatorServices
from drone_bridge.simulator.bridge.simulator_topics import SimulatorTopics
from drone_bridge.simulator.codec import Attribute
from drone_bridge.simulator.session import events
from drone_bridge.simulator.session.client import CONNECTIONS, SimulatorClientSession
from drone_bridge.simulator.session.client_parameters import SimulatorClientParameters
from drone_bridge.simulator.session.desired_items import (
    DesiredCamera,
    DesiredCameraStream,
    DesiredEntityStream,
    DesiredItem,
    DesiredTrigger,
)
from drone_bridge.simulator.session.entities import Entities
from drone_bridge.simulator.session.simulated_time import SimulatedTime
from drone_bridge.simulator.session.simulation import Simulation
from drone_bridge.simulator.session.steering import Steering
from drone_bridge.simulator.topics import within_maxima
from drone_bridge.simulator.topics.parameter_lines import read_cameras, read_entities, read_triggers
from drone_bridge.simulator.topics.services import wire_add_camera, wire_trigger

#: Small chunks, so that a continuous stream does not delay a velocity. A quick acknowledgement, since a server that
#: sends header and body in two packets waits for that of the first one. A suspended server's connection is kept while
#: its system acknowledges: the real one dies of SIGPIPE when it continues. It has a minute to continue and to close.
OPTIONS = StreamOptions(
    chunk_bytes=16 * 1024, acknowledges_at_once=True, expects_acknowledgements=True, linger_s=60.0, max_lingering=8
)
HEADING = "heading"  # name of a condition


class SimulatorBridge(ProtocolNode):
    """Node that publishes the simulator's world, steers its vehicle, and forwards service calls."""

    def __init__(self, **options: Any) -> None:
        super().__init__("simulator_bridge", PARAMETERS, **options)
        #: The session; None before the first activation.
        self.session: SimulatorClientSession | None = None
        self._simulator_services = SimulatorServices(self, lambda: self.session)

    def set_up(self) -> None:
        """Read the parameters and create publishers and subscriptions."""
        get = self.parameters.__getitem__
        self._vehicle: int = get("vehicle")
        if any(get("body_to_model")):
            if len(get("body_to_model")) != 4:
                raise ValueError("body_to_model must have 4 numbers.")
            BodyToModel(get("body_to_model"))
        named = read_entities(get("entities"))
        if self._vehicle in named:
            raise ValueError(f"entities contains {self._vehicle}, which is the vehicle.")
        frames = read(FrameNames, self.parameters)
        entities = Entities(self._vehicle, named, topic_token, frames.own)
        time = SimulatedTime(is_published=get("publish_clock"))
        self._simulation = Simulation(entities, self._read_items, time, Random())
        self._outputs = SimulatorTopics(self, self._vehicle, frames)
        self.cleanup.callback(self._outputs.close)
        self._outputs.set_scene(self._simulation.scene)
        self._commands: CommandTopics[NoReturn] = CommandTopics(
            self,
            self._outputs.stamps.command_clock,
            self._post_command,
            period_s=PROMPT_PERIOD_S,
            within_maxima=within_maxima,
        )
        self._commands.take_velocities()

    def make_transport(self) -> Link:
        """Return a link with the connections to the simulator."""
        get = self.parameters.__getitem__
        host, port, log = get("host"), get("port"), self.wire_log
        return TcpPeer(host, port, self.connecting_failed, connections=CONNECTIONS, options=OPTIONS, wire_log=log)

    def make_session(self) -> SimulatorClientSession:
        parameters = self.parameters.live(SimulatorClientParameters)
        steering = Steering(self._commands.arbiter, parameters)
        feedback = Feedback(self.observed, self._commands.arbiter.limits)
        self.session = SimulatorClientSession(
            self._simulation, steering, parameters, feedback, check_hold=self.hold.check
        )
        return self.session

    def _read_items(self) -> list[DesiredItem]:
        """Return the items given by parameters. Raises ValueError."""
        get = self.parameters.__getitem__
        period = get("stream_period")
        # A stream of every step, which drives the clock.
        items: list[DesiredItem] = (
            [] if period == 1 else [DesiredEntityStream(self._vehicle, 1, (Attribute.CORPOREAL,))]
        )
        items += [DesiredEntityStream(entity, period) for entity in (self._vehicle, *read_entities(get("entities")))]
        for adding in read_cameras(get("cameras")):
            camera = DesiredCamera(adding.name, wire_add_camera(adding))
            items += [camera, *(DesiredCameraStream(camera, target, adding.period) for target in adding.targets)]
        return items + [DesiredTrigger(adding.name, wire_trigger(adding)) for adding in read_triggers(get("triggers"))]

    # In the executor.

    def _post_command(self) -> None:
        if self.session:
            self.post(self.session.commanded)

    # The simulator, on the loop's thread.

    def publish_event(self, message: Any) -> None:
        """Publish an event of the session."""
        if handle := self._outputs.handlers.get(type(message)):
            handle(message)
        if isinstance(message, events.RequestRoundTrip):
            self.report.record_duration("request_round_trip", message.duration_s)
        elif isinstance(message, events.DiagnosticValue):
            self.report.facts[message.name] = message.text
        elif isinstance(message, events.BodyToModelKnown):
            self.report.end_condition(HEADING)
            rotation = " ".join(f"{number:.6g}" for number in message.rotation or ())
            self.report.facts["body_to_model"] = rotation or "not known"
        elif isinstance(message, events.HeadingUnknown):
            self.report.begin_condition(HEADING, "The vehicle's heading is unknown")


def main() -> int:
    """Run the node."""
    return run(SimulatorBridge)
