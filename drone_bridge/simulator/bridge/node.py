# SPDX-License-Identifier: Apache-2.0
"""simulator_bridge: a client of the underwater simulator, as a ROS 2 node. See docs/simulator.md."""

import time
from typing import Any

from geometry_msgs.msg import Twist

from drone_bridge.net.connector import Cancellation, LinkError
from drone_bridge.net.tcp import Wakeup
from drone_bridge.ros.command_topics import CommandTopics
from drone_bridge.ros.link_node import Endpoint, LinkNode
from drone_bridge.ros.link_requests import LinkRequest
from drone_bridge.ros.program import run
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.client import Client, OnAnswer, SimulatorEndpoint, SimulatorLink
from drone_bridge.simulator.bridge.desired_items import (
    Camera,
    CameraStream,
    DesiredItem,
    DesiredItems,
    EntityStream,
    Trigger,
)
from drone_bridge.simulator.bridge.outputs import SimulatorOutputs, TimeKeeper
from drone_bridge.simulator.bridge.parameters import AUTO, PARAMETERS
from drone_bridge.simulator.bridge.services import Call, Result, SimulatorServices, do
from drone_bridge.simulator.bridge.session import AwaitedRun, SimulatorSession
from drone_bridge.simulator.bridge.steering import Ask, Steering
from drone_bridge.simulator.codec import Attribute
from drone_bridge.simulator.topics import Axes, BodyToModel, Velocity, velocity_from_twist
from drone_bridge.simulator.topics.plans import read_cameras, read_entities, read_triggers
from drone_bridge.wire.events import RemoteProtocolError

#: How long the simulator has to read the last velocities and close its connections.
LEAVE_TIMEOUT_S = 0.3


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
        self._wakeup = Wakeup()
        self._simulator_services = SimulatorServices(self, self._wakeup.wake)

    # The lifecycle.

    def set_up(self) -> None:
        get = self.parameters.__getitem__
        self._axes = Axes()
        self._vehicle: int = get("vehicle")
        self._timeout_s: float = get("request_timeout")
        if any(get("body_to_model")):
            if len(get("body_to_model")) != 4:
                raise ValueError("body_to_model has to have 4 numbers.")
            BodyToModel(get("body_to_model"))
        self._entities = read_entities(get("entities"))
        if self._vehicle in self._entities:
            raise ValueError(f"entities names {self._vehicle}, which is the vehicle.")
        keeper = TimeKeeper(self)
        self._items = DesiredItems()
        self._outputs = SimulatorOutputs(self, self._axes, keeper, self._vehicle, self._items)
        self.cleanup.callback(self._outputs.close)
        self._take_parameters()
        self._commands: CommandTopics[Velocity] = CommandTopics(
            self, now=keeper.clock.message if keeper.stamps_are_simulated else None, on_command=self._wakeup.wake
        )
        self._commands.take_velocities(self._read)
        self._steering = Steering(self, self._commands.arbiter, self._axes, self._vehicle)
        self._simulation: bytes | None = None  # the mark of the one that the bridge was connected to last

    def _take_parameters(self) -> None:
        """Have the entities and items that parameters name, and no others. Raises ValueError."""
        self._outputs.forget_entities_but({self._vehicle, *self._entities})
        for entity, name in self._entities.items():
            self._outputs.name_entity(entity, name)
            self._outputs.open_entity(entity)
        self._items.begin_anew(self._read_items())
        self._outputs.keep_cameras(self._items.camera_frames())

    def _read_items(self) -> list[DesiredItem]:
        """Return the items given by parameters. Raises ValueError."""
        get = self.parameters.__getitem__
        period = get("stream_period")
        # The clock counts the steps in the vehicle's stream.
        items: list[DesiredItem] = [] if period == 1 else [EntityStream(self._vehicle, 1, (Attribute.CORPOREAL,))]
        items += [EntityStream(entity, period) for entity in (self._vehicle, *self._entities)]
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
            has_probe=get("item_events") == AUTO,
        )

    # The conversation, on the link's thread.

    def prepare(self) -> None:
        """Forget old commands, and accept requests."""
        self._commands.arbiter.forget()
        self._simulator_services.link_requests.open()

    def converse(self, link: SimulatorLink) -> None:
        """Publish and steer until the connection ends, and stop a vehicle that is being steered."""
        client = Client(link, self._timeout_s, self.statistics, self._link_cancellation, self._wakeup)

        def ask(request: sim.Request, on_answer: OnAnswer) -> None:
            self.encode(lambda each: client.send(each, on_answer), request)

        client.steer = lambda now_s: self._steer(now_s, ask)
        client.check_hold = self._check_hold
        session = SimulatorSession(self, client, self._items, self._outputs, self._simulation)
        session.begin_anew = self._begin_anew
        link_requests = self._simulator_services.link_requests
        reason = "The connection to the simulator ended."
        try:
            self._steering.start_over(ask)
            session.start()
            while True:
                client.is_stirred = False
                due_s = session.tick()
                for link_request in link_requests.take():
                    self._do(link_request, session)
                if not client.is_stirred:  # else there may be something to do by now
                    client.wait(due_s)
        except (LinkError, RemoteProtocolError) as error:
            reason = str(error)
            raise
        finally:
            session.stop()
            link.leave(self._steering.last_requests(), LEAVE_TIMEOUT_S)
            self._simulation = session.simulation
            link_requests.close(reason)
            self.statistics.facts["outstanding requests"] = "0"

    def _begin_anew(self) -> None:
        """Forget what services have added to a former simulation, and say that another one began."""
        self._take_parameters()
        self._outputs.announce_simulation()

    def _steer(self, now_s: float, ask: Ask) -> float:
        self._steering.tick(now_s, self._outputs.attitude, ask)
        return self._steering.due_s

    def _check_hold(self, request: sim.Request) -> None:
        if request.moves(self._vehicle):
            self.hold.check(request.NAME)

    def _do(self, link_request: LinkRequest[Call], session: SimulatorSession) -> None:
        def finish(result: Result) -> None:
            self.statistics.counts["refused requests"] += not result.success
            self._simulator_services.link_requests.finish(link_request, result)

        result = do(session, link_request.task)
        if isinstance(result, Result):
            finish(result)
            return
        latest_s = time.monotonic() + result.expected_s
        session.wait_for_run(AwaitedRun(result.mark, latest_s, lambda problem: finish(Result(not problem, problem))))

    # What the executor does.

    def _read(self, twist: Twist) -> tuple[Velocity, bool]:
        asked = velocity_from_twist(twist)
        allowed = asked.limited(self.parameters["max_linear_speed"], self.parameters["max_angular_speed"])
        return allowed, allowed == asked


def main() -> int:
    """Run the node."""
    return run(SimulatorBridge)
