# SPDX-License-Identifier: Apache-2.0
"""simulator_bridge: a client of the underwater simulator, as a ROS 2 node. See docs/simulator.md."""

import math
import time
import uuid
from typing import Any, Final

from geometry_msgs.msg import Twist

from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError, Selectable, Wakeup
from drone_bridge.net.shared_watch import SharedWatch
from drone_bridge.ros.commands import CommandIntake
from drone_bridge.ros.link_node import Endpoint, LinkNode
from drone_bridge.ros.link_requests import LinkRequest
from drone_bridge.ros.program import run
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.body_to_model import BodyToModelLearner
from drone_bridge.simulator.bridge.desired_items import (
    Camera,
    CameraStream,
    DesiredItem,
    DesiredItems,
    EntityStream,
    Trigger,
)
from drone_bridge.simulator.bridge.link import (
    RECEIVE_BYTES,
    Channel,
    OnOutcome,
    SimulatorEndpoint,
    SimulatorLink,
    ignore,
)
from drone_bridge.simulator.bridge.outputs import SimulatorOutputs
from drone_bridge.simulator.bridge.parameters import AUTO, PARAMETERS
from drone_bridge.simulator.bridge.services import PATIENCE_S, Call, SimulatorServices
from drone_bridge.simulator.bridge.session import SimulatorSession
from drone_bridge.simulator.bridge.steering import Steering
from drone_bridge.simulator.bridge.steering_mark import SteeringMark
from drone_bridge.simulator.bridge.tasks import Result, TaskRunner
from drone_bridge.simulator.bridge.time import TimeKeeper
from drone_bridge.simulator.bridge.turns import Turns
from drone_bridge.simulator.codec import Attribute
from drone_bridge.simulator.topics.plans import read_cameras, read_entities, read_triggers
from drone_bridge.simulator.topics.translation import Axes, BodyToModel, Velocity, velocity_from_twist
from drone_bridge.wire.events import RemoteProtocolError

#: How long the simulator has to read the last velocities and close its connections.
LEAVE_TIMEOUT_S: Final = 0.3
#: Silence of an idle simulator after which it is probed.
PROBE_AFTER_S: Final = 1.0
#: How long what is streamed may keep the link's thread from finding out what else is due by now.
STREAM_TURN_S: Final = 0.03


class SimulatorBridge(LinkNode):
    """Publishes the simulator's world, steers its vehicle, and forwards service calls."""

    rates = ("steps", "stream messages", "requests", "velocities")
    problems = (
        *LinkNode.problems,
        "refused commands",
        "unsteered commands",
        "refused velocities",
        "refused items",
        "missing vehicle",
        "unknown heading",
        "bad numbers",
        "dropped messages",
    )

    def __init__(self, **options: Any) -> None:
        super().__init__("simulator_bridge", PARAMETERS, **options)
        self._owner = uuid.uuid4().bytes
        self._wakeup = Wakeup()
        self._turns = Turns(self._start_requests)
        self._simulator_services = SimulatorServices(self, self._call)

    # The lifecycle.

    def set_up(self) -> None:
        get = self.parameters.__getitem__
        self._axes = Axes(get("convert_frames"))
        self._vehicle: int = get("vehicle")
        self._timeout_s: float = get("request_timeout")
        if any(get("body_to_model")):
            if len(get("body_to_model")) != 4:
                raise ValueError("body_to_model has to have 4 numbers.")
            BodyToModel(get("body_to_model"))
        entities = read_entities(get("entities"))
        if self._vehicle in entities:
            raise ValueError(f"entities names {self._vehicle}, which is the vehicle.")
        keeper = TimeKeeper(self)
        self._outputs = SimulatorOutputs(self, self._axes, keeper, self._vehicle)
        self.cleanup.callback(self._outputs.close)
        for entity, name in entities.items():
            self._outputs.name_entity(entity, name)
            self._outputs.open_entity(entity)
        self._items = DesiredItems(self._read_items(entities))
        self._commands: CommandIntake[Velocity] = CommandIntake(
            self, now=keeper.clock.message if keeper.stamps_are_simulated else None, on_command=self._wakeup.wake
        )
        self._commands.take_limited_velocities(self._read)
        mark = SteeringMark(self, self._owner, self._axes, self._vehicle)
        self._steering = Steering(self, self._commands, self._axes, mark)
        self._world: bytes | None = None  # the mark of the world with our cameras

    def _read_items(self, entities: dict[int, str]) -> list[DesiredItem]:
        """Return the items given by parameters. Raises ValueError."""
        get = self.parameters.__getitem__
        period = get("stream_period")
        # The clock counts the steps in the vehicle's stream.
        items: list[DesiredItem] = [] if period == 1 else [EntityStream(self._vehicle, 1, (Attribute.CORPOREAL,))]
        items += [EntityStream(entity, period) for entity in (self._vehicle, *entities)]
        taken = self._outputs.entity_frames()
        for plan in read_cameras(get("cameras")):
            if plan.frame in taken:
                raise ValueError(f"cameras names {plan.name!r}, and there is a frame {plan.frame!r} already.")
            taken.add(plan.frame)
            camera = Camera(plan)
            items += [camera, *(CameraStream(camera, target, plan.period) for target in plan.targets)]
        return items + [Trigger(plan) for plan in read_triggers(get("triggers"), self._axes)]

    def make_endpoint(self, cancellation: Cancellation) -> Endpoint:
        """Open several connections to the simulator."""
        get = self.parameters.__getitem__
        self._link_cancellation = cancellation
        self._steering.disengage()
        return SimulatorEndpoint(
            get("host"),
            get("port"),
            cancellation,
            self._connecting_failed,
            wire_log=self.wire_log,
            is_single=get("single_connection"),
            has_probe=get("item_events") == AUTO,
        )

    # The conversation, on the link's thread.

    def prepare(self) -> None:
        """Forget old commands, and accept requests."""
        self._commands.mailbox.clear()
        self._simulator_services.link_requests.open()

    def converse(self, link: SimulatorLink) -> None:
        """Publish and steer until the connection ends, and stop a vehicle that is being steered."""
        requests = Channel(link.requests, self._timeout_s, self._measured)
        is_single = link.streams is link.requests
        streams = requests if is_single else Channel(link.streams, self._timeout_s, self._measured)
        session = SimulatorSession(self, (requests, streams), self._items, self._outputs)
        if link.probe:
            session.probe = Channel(link.probe, self._timeout_s, lambda _: None)
        self._steering.start_over()
        self._learner = BodyToModelLearner(self, session)
        link_requests = self._simulator_services.link_requests
        reason = "The connection to the simulator ended."
        with self._turns.of(session):
            try:
                session.start(self._world)
                self._exchange(link, session)
            except (LinkError, RemoteProtocolError) as error:
                reason = str(error)
                raise
            finally:
                link.leave(self._steering.last_requests(), LEAVE_TIMEOUT_S)
                self._world = session.handshake.token
                session.end(reason)
                link_requests.close(reason)
                self.statistics.facts["outstanding requests"] = "0"

    def _exchange(self, link: SimulatorLink, session: SimulatorSession) -> None:
        buffer = memoryview(bytearray(RECEIVE_BYTES))
        channels = [session.requests]
        if session.streams is not session.requests:
            channels.append(session.streams)
        always: list[Selectable] = [self._link_cancellation, self._wakeup, *(channel.stream for channel in channels)]
        probe = session.probe
        watch = SharedWatch([*always, probe.stream] if probe else always)
        due_s = -math.inf
        while True:
            now_s = time.monotonic()
            self._outputs.keeper.tick(now_s)
            if now_s >= due_s:
                due_s = self._do_what_is_due(session, now_s)
            if session.probe is not probe:  # it has been closed
                probe, watch = None, SharedWatch(always)
            next_s = min(due_s, self._outputs.keeper.due_s)
            timeout_s = None if next_s == math.inf else max(0.0, next_s - time.monotonic())
            is_cancelled, is_woken, *are_readable = self._turns.wait(watch, timeout_s)
            if is_cancelled:
                raise LinkCancelledError("Talking to the simulator was cancelled.")
            for channel, is_readable in zip(channels, are_readable, strict=False):
                event = None
                if is_readable:
                    for event in channel.read(buffer):
                        session.handle(event, channel)
                if event:
                    self.statistics.liveness.heard()
            if probe and are_readable[-1]:
                session.read_probe(buffer)
            if is_woken:  # now, not after what else is due: a callback waits for the answer on the spot
                self._wakeup.clear()
                self._start_requests(session)
            self._outputs.flush()
            # To find out what is due takes as long as two states do.
            has_answers = are_readable[0]
            due_s = -math.inf if is_woken or has_answers else min(due_s, now_s + STREAM_TURN_S)

    def _do_what_is_due(self, session: SimulatorSession, now_s: float) -> float:
        """Do what is due; return when to call this again, on the monotonic clock, unless an event comes before."""
        session.tick(now_s)

        def ask(request: sim.Request, on_outcome: OnOutcome) -> None:
            session.requests.ask(request, on_outcome)

        self._steering.tick(now_s, self._outputs.attitude, ask)
        self.statistics.facts["outstanding requests"] = str(session.outstanding)
        self._learner.tick(now_s)
        return min(self._probe(session, now_s), session.due_s, self._steering.due_s, self._learner.due_s)

    def _start_requests(self, session: SimulatorSession) -> None:
        for link_request in self._simulator_services.link_requests.take():
            self._do(link_request, session)

    def _do(self, link_request: LinkRequest[Call], session: SimulatorSession) -> None:
        def finish(result: Result) -> None:
            self.statistics.counts["refused requests"] += not result.success
            self._simulator_services.link_requests.finish(link_request, result)

        try:
            TaskRunner(session, link_request.task.task(session), finish).start()
        except BaseException as error:
            finish(Result(False, str(error)))
            raise

    def _probe(self, session: SimulatorSession, now_s: float) -> float:
        """Send a request to an idle simulator to see whether it responds; return when to check again."""
        left_s = PROBE_AFTER_S - self.statistics.liveness.silence_s
        if session.outstanding:
            return math.inf  # which is overdue by itself
        if left_s <= 0:
            session.requests.ask(sim.Reassure(), ignore)
            return math.inf
        return now_s + left_s

    def _measured(self, seconds: float) -> None:
        self.statistics.liveness.heard()
        self.statistics.counts["requests"] += 1
        self.statistics.took("request round trip", seconds)

    # What the executor does.

    def _call(self) -> None:
        if not self._turns.call(PATIENCE_S):
            self._wakeup.wake()

    def _read(self, twist: Twist) -> tuple[Velocity, bool]:
        get = self.parameters.__getitem__
        return velocity_from_twist(twist, get("max_linear_speed"), get("max_angular_speed"))


def main() -> int:
    """Run the node."""
    return run(SimulatorBridge)
