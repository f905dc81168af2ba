# SPDX-License-Identifier: Apache-2.0
"""simulator_server: replaces the underwater simulator, with a vehicle in ROS. See docs/simulator.md.

`session.simulator` decides what to send. This node provides its topics, parameters, the port for clients, and the
services of a bridge.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from geometry_msgs.msg import Twist

from drone_bridge.net.link_loop import Link, Work
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_port import TcpPort
from drone_bridge.ros.commands.cmd_vel_type import CmdVelPublisher
from drone_bridge.ros.commands.velocity_messages import twist_from_velocity
from drone_bridge.ros.node.program import run
from drone_bridge.ros.node.protocol_node import COMMANDS, ProtocolNode
from drone_bridge.ros.node.simulated_time import is_time_simulated
from drone_bridge.ros.servers.bridge_watch import BridgeWatch
from drone_bridge.ros.servers.neutral_repeater import NeutralRepeater
from drone_bridge.ros.servers.service_caller import ServiceCaller
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.ros.topics.table import Topic
from drone_bridge.session.session import Action, Actions, Answer
from drone_bridge.simulator import units
from drone_bridge.simulator.topics import (
    EVENTS,
    EntityState,
    SimulatorTranslation,
    wire_state,
    within_maxima,
)
from drone_bridge.simulator.topics.parameter_lines import EntityLine, read_entity_lines
from drone_bridge.simulator.topics.services import SERVICES
from drone_bridge.simulator.vehicle.server.parameters import PARAMETERS
from drone_bridge.simulator.vehicle.server.sources import Sources
from drone_bridge.simulator.vehicle.session.forwarding import Follow, Forwarder, Question, SimulatorParameters
from drone_bridge.simulator.vehicle.session.mirrored_scene import ConfiguredEntity
from drone_bridge.simulator.vehicle.session.simulator import CHUNK_BYTES, LISTENING, MAX_CLIENTS, SimulatorSession
from drone_bridge.simulator.vehicle.session.velocity_commands import NEUTRAL, VelocityCommand
from drone_bridge.simulator.vehicle.topics import service_calls
from drone_bridge.wire.addresses import address_name

#: Capacity of the queue of topic messages for the session. On overflow, the oldest are dropped.
MAX_ARRIVED = 1000
#: Messages per turn before clients get theirs. With only one, states would age while many clients are active.
MAX_PER_TURN = 10
#: Timeout of a service's response. The timeout of the session's clients is shorter.
LONGEST_ANSWER_S = 65.0
_SILENT_VEHICLE = "the vehicle's position is unknown"


class SimulatorServer(ProtocolNode):
    """Node that serves clients of the simulator's protocol from topics and a bridge's services."""

    is_server = True
    open_state = LISTENING

    def __init__(self, **options: Any) -> None:
        super().__init__("simulator_server", PARAMETERS, **options)
        self._session: SimulatorSession | None = None  # until the first activation
        self._queued: deque[Work] = deque(maxlen=MAX_ARRIVED)
        self._is_posted = False  # whether a call of `_deliver_queued` is pending

    # Lifecycle.

    def set_up(self) -> None:
        get = self.parameters.__getitem__
        self._translation = SimulatorTranslation(FrameNames())
        publisher: Any = CmdVelPublisher(self, lambda kind: self.make_publisher(kind, "cmd_vel", 1))
        self._commands = publisher
        self._repeater = NeutralRepeater(self, (publisher,), lambda: (publisher, Twist()))
        self.hold.when_set(self._hold_changed)
        self._make_caller(get("bridge"))
        self._sources = Sources(self, self._translation, self._take_state)
        plans, vehicle = read_entity_lines(get("entities")), get("vehicle")
        self._entities = [ConfiguredEntity(plan.number, plan.radius, plan.render) for plan in plans]
        if vehicle not in (plan.number for plan in plans):
            self._entities.insert(0, ConfiguredEntity(vehicle, get("radius"), get("render")))
            self._sources.open(EntityLine(vehicle, "vehicle", odom="odom", imu="imu/data"))
        for plan in plans:
            self._sources.open(plan)
        for row in {row.name: row for row in EVENTS}.values():
            self.make_subscription(row.message, row.name, partial(self._take_event, row), row.requested())
        self.each_second(self._report_clients)

    def _make_caller(self, bridge: str) -> None:
        """Prepare to call the services of a bridge. Empty name: none."""
        bridges = {self.resolve_service_name(bridge)} if bridge else set()
        # Services of a killed node stay in the DDS graph for much longer.
        watch = BridgeWatch(self, lambda: bridges)
        self._caller = ServiceCaller(
            self,
            {name: f"{bridge}/{name}" for name in SERVICES} if bridge else {},
            LONGEST_ANSWER_S,
            types=SERVICES if bridge else {},
            max_pending=2 * MAX_CLIENTS,
            is_gone=lambda name: watch.is_gone,
        )

    def make_transport(self) -> Link:
        """Listen for clients. Raises LinkError."""
        host, options = self.parameters["host"], StreamOptions(CHUNK_BYTES, expects_acknowledgements=True)
        port = TcpPort(host, self.parameters["port"], options=options, wire_log=self.wire_log, has_small_buffers=True)
        self.get_logger().info(f"Waiting for clients on {address_name(host, port.port)}.")
        return port

    def make_session(self) -> SimulatorSession:
        parameters = self.parameters.live(SimulatorParameters)
        self._queued.clear()  # stale
        self._is_posted = False
        forwarder = Forwarder(
            self._entities,
            parameters,
            service_calls,
            offers=lambda service: bool(self.parameters["bridge"]) and self._caller.offers(service),
            admits=lambda: self.hold.admits("the operator's topics"),
        )
        self._session = SimulatorSession(
            forwarder, lambda: self.get_clock().now().nanoseconds / 1e9 if is_time_simulated(self) else None
        )
        return self._session

    def link_ended(self) -> None:
        self._session = None
        super().link_ended()

    # Requests of clients, on the loop's thread.

    def publish_event(self, message: VelocityCommand | Follow) -> None:
        """Publish a velocity, or subscribe to an entity."""
        if isinstance(message, Follow):
            self._sources.follow(message.entity, message.name)
        elif message is NEUTRAL:
            self._repeater.publish_neutral()
        else:
            v, w, q = message
            velocity = units.velocity_from_wire(v, w, q)
            allowed = within_maxima(velocity)
            self.report.counts["clamped_commands"] += allowed != velocity
            self.report.counts[COMMANDS] += 1
            self._repeater.publish(self._commands, twist_from_velocity(allowed), self.decided_s)

    def call_service(self, name: str, tag: Question) -> None:
        self._caller.call(name, partial(self._answer, tag), tag.request, moves=tag.moves)

    def _answer(self, question: Question, answer: Answer) -> None:
        if session := self._session:
            self.post(partial(session.answered, question, answer), is_kept=True)

    # In the executor.

    def _hold_changed(self) -> None:
        if session := self._session:
            self.post(session.hold_changed, is_kept=True)

    def _take_state(self, entity: int, state: EntityState) -> None:
        self._queue_work(SimulatorSession.moved, entity, wire_state(state))

    def _take_event(self, row: Topic, message: Any) -> None:
        """Pass an event of the bridge's simulator to the session."""
        assert row.from_ros
        if (event := row.from_ros(self._translation, message)) is not None:
            self._queue_work(SimulatorSession.reported, event)

    def _queue_work(self, work: Callable[..., Actions], *arguments: Any) -> None:
        """Queue a topic message for the session: in order, a few per turn of clients, even after a stall."""
        if not (session := self._session):
            return
        self.report.counts["dropped_messages"] += len(self._queued) == MAX_ARRIVED
        self._queued.append(partial(work, session, *arguments))
        if not self._is_posted:
            self._is_posted = True  # set first, since the other thread clears it
            if not self.post(self._deliver_queued, is_kept=True):
                self._is_posted = False

    def _deliver_queued(self, now_s: float) -> Actions:
        """Pass some messages to the session, on the loop's thread."""
        self._is_posted = False
        actions: list[Action] = []
        for _ in range(min(len(self._queued), MAX_PER_TURN)):
            actions += self._queued.popleft()(now_s)
        if self._queued:
            self._is_posted = self.post(self._deliver_queued, is_kept=True)
        return actions

    def _report_clients(self) -> None:
        session = self._session
        self.report.facts["clients"] = str(session.client_count if session else 0)
        is_unknown = session is not None and session.is_vehicle_unknown
        self.report.update_condition(
            "vehicle", _SILENT_VEHICLE if is_unknown else None, "clients receive no state; check that odom is published"
        )


def main() -> int:
    """Run the node."""
    return run(SimulatorServer)
