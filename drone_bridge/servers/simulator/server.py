# SPDX-License-Identifier: Apache-2.0
"""simulator_server: stands in for the underwater simulator, with a vehicle in ROS behind it. See docs/simulator.md."""

import asyncio
import contextlib
import time
import traceback
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from rclpy.qos import QoSProfile
from std_msgs.msg import Empty

from drone_bridge.link_node.link_node import LinkNode
from drone_bridge.link_node.link_thread import Endpoint
from drone_bridge.links.cancellation import Cancellation
from drone_bridge.links.errors import LinkCancelledError
from drone_bridge.links.tcp_clients import CLOSED_BY_PEER, Connection, TcpClients
from drone_bridge.msg import CameraView, ExtendedAttributes, ItemEvent, TriggerEvent
from drone_bridge.node.program import run
from drone_bridge.protocols import simulator as sim
from drone_bridge.protocols.simulator import ItemType
from drone_bridge.servers.simulator.calls import BridgeCalls
from drone_bridge.servers.simulator.errands import Elsewhere, Errands
from drone_bridge.servers.simulator.helm import Helm
from drone_bridge.servers.simulator.listening import Listening, ListeningEndpoint
from drone_bridge.servers.simulator.mirror import Mirrored, MirroredScene
from drone_bridge.servers.simulator.parameters import PARAMETERS
from drone_bridge.servers.simulator.sources import EntityPlan, Sources, read_plans
from drone_bridge.servers.simulator.visitor import ENDS, Visitor
from drone_bridge.translate.simulator import Axes, EntityState
from drone_bridge.vehicle_side.simulator.answers import Answers
from drone_bridge.vehicle_side.simulator.items import Client, RefusedError
from drone_bridge.vehicle_side.simulator.quirks import Quirks
from drone_bridge.vehicle_side.simulator.run import RunControl, Tempo
from drone_bridge.vehicle_side.simulator.world import World
from drone_bridge.vehicle_side.simulator.world_requests import Context

RENDER: Final = "render"
#: What has come from topics and waits for the link's thread; the oldest is dropped.
MAX_NEWS: Final = 1000
TICK_S: Final = 0.1
#: After so long without a tick /clock stands still.
CLOCK_STANDS_AFTER_S: Final = 0.5
ENDED: Final = "the server has ended"
_TRIGGERED: Final = {
    event.ID: event for event in (sim.Triggered, sim.Untriggered, sim.PathStarted, sim.PathFailed, sim.PathEnded)
}
_SILENT_VEHICLE: Final = "the vehicle's position is unknown"


class SimulatorServer(LinkNode):
    """Serves clients of the simulator's protocol with what topics tell and services do."""

    rates = ("requests", "states", "commands")
    problems = (*LinkNode.problems, "refused commands", "unsteered commands", "bad numbers", "dropped messages")
    open_state = "listening"

    def __init__(self, **options: Any) -> None:
        super().__init__("simulator_server", PARAMETERS, **options)
        self._news: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque(maxlen=MAX_NEWS)
        self._are_news_due = False  # and the link's thread knows it
        self._loop: asyncio.AbstractEventLoop | None = None
        self._visitors: list[Visitor] = []

    # The lifecycle.

    def set_up(self) -> None:
        """Read the parameters and create publishers, subscriptions and clients."""
        get = self.parameters.__getitem__
        self._axes = Axes(get("convert_frames"))
        self._vehicle: int = get("vehicle")
        self._quirks = Quirks(get("quirks"))
        plans = read_plans(get("entities"))
        self._scene = MirroredScene(
            self._axes, self._vehicle, self._now_s, lambda: float(self.parameters["source_timeout"])
        )
        world = self._world = World(self._scene)
        self._control = RunControl()
        self._control.run(0)
        context = Context(world, self._control, Tempo(get("frequency")), self._quirks is Quirks.REAL)
        self._answers = Answers(context)
        self._helm = Helm(self, self._axes, lambda: self._scene.state(self._vehicle))
        self._scene.steer = lambda attribute, value: self._helm.set(attribute, value, time.monotonic())
        self._sources = Sources(
            self,
            self._axes.against_gravity(get("gravity")),
            lambda entity, state: self._tell(self._moved, entity, state),
        )
        self._made.append((Sources.close, self._sources))
        self.calls = BridgeCalls(self, get("bridge"))
        self.errands = Errands(
            self.calls,
            self._axes,
            world,
            self._scene,
            self._vehicle,
            self._mirror,
            self.answer_here,
            lambda client: self._helm.engage(client, time.monotonic()),
        )
        self._plans: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._plans_guard = self.make_guard_condition(self._carry_out_plans)
        if self._vehicle not in (plan.number for plan in plans):
            self._put(EntityPlan(self._vehicle, "vehicle", render=get("render"), radius=get("radius")))
            self._sources.open_vehicle(self._vehicle)
        for plan in plans:
            self._put(plan)
            self._sources.open(plan)
        self._take_events()

    def _put(self, plan: EntityPlan) -> None:
        self._scene.put(plan.number, Mirrored(plan.radius, has_source=True))
        self._world.entity_added(plan.number, {RENDER: plan.render.encode()} if plan.render else {})

    def _take_events(self) -> None:
        events: tuple[tuple[type, str, Callable[[Any], None]], ...] = (
            (CameraView, "camera_view", self._camera_view),
            (TriggerEvent, "trigger_events", self._trigger_event),
            (ItemEvent, "item_events", self._item_event),
            (ExtendedAttributes, "attributes", self._attributes),
            (Empty, "completed", lambda _: self._complete()),
        )
        for kind, topic, take in events:
            self.make_subscription(kind, topic, partial(self._tell, take), QoSProfile(depth=100))

    def make_endpoint(self, cancellation: Cancellation) -> Endpoint:
        """Listen for clients."""
        get = self.parameters.__getitem__
        self._link_cancellation = cancellation

        def listen(port: int | None) -> TcpClients:
            return TcpClients(
                get("host"),
                get("port") if port is None else port,
                self._welcome,
                most=get("max_clients"),
                ends=ENDS,
                on_refused=self._refused,
                wire_log=self.wire_log,
            )

        return ListeningEndpoint(get("host"), cancellation, listen)

    def _now_s(self) -> float:
        """Return a time that stands still with /clock, where that is the time."""
        clock: Any = self.get_clock()
        return float(clock.now().nanoseconds / 1e9) if clock.ros_time_is_active else time.monotonic()

    # What the executor does.

    def _tell(self, take: Callable[..., None], *news: Any) -> None:
        """Leave news for the link's thread."""
        if len(self._news) == MAX_NEWS and self._loop:
            self.statistics.counts["dropped messages"] += 1
        self._news.append((take, news))
        if not self._are_news_due and (loop := self._loop):
            self._are_news_due = True
            with contextlib.suppress(RuntimeError):  # it has been closed this moment
                loop.call_soon_threadsafe(self._take_news)

    def _carry_out_plans(self) -> None:
        while self._plans:
            carry_out, plan = self._plans.popleft()
            carry_out(plan)

    # The conversation, on the link's thread.

    def converse(self, listening: Listening) -> None:
        """Serve clients until the link is cancelled, and leave a vehicle that is steered standing still."""
        asyncio.run(self._serve(listening.clients))
        raise LinkCancelledError("Serving clients was cancelled.")

    async def _serve(self, clients: TcpClients) -> None:
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        loop.add_reader(self._link_cancellation.fileno(), over.set)
        self._clock_moved_s, self._clock_s = time.monotonic(), self._now_s()
        self.statistics.liveness.closed()
        self._loop = loop
        try:
            await clients.start()
            self._take_news()
            while not over.is_set():
                due_s = min(self._helm.due_s - time.monotonic(), TICK_S, self.parameters["command_timeout"] / 4)
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(over.wait(), max(0.0, due_s))
                self._tick()
        finally:
            self._loop = None
            loop.remove_reader(self._link_cancellation.fileno())
            self._helm.end()
            self._complete()
            visitors = tuple(self._visitors)
            clients.hang_up(ENDED)
            if visitors:
                await asyncio.sleep(0)  # what was written goes out
            self._news.clear()

    def _welcome(self, connection: Connection) -> Visitor:
        statistics = self.statistics
        if not self._visitors:
            statistics.liveness.opened()
        visitor = Visitor(connection, self, self._quirks, statistics.liveness.heard)
        self._visitors.append(visitor)
        statistics.counts["connections"] += 1
        statistics.peer = ", ".join(other.peer for other in self._visitors)
        self.inform(f"Connected to {visitor.peer}.")
        return visitor

    def _refused(self, peer: str) -> None:
        self.reports.complain_while(
            "refused peers", f"{peer} was refused: {len(self._visitors)} clients are connected already."
        )

    def left(self, visitor: Visitor, reason: str) -> None:
        """See Desk."""
        self._visitors.remove(visitor)
        self._helm.leave(visitor)
        for kind, number in self._world.items.of_client(visitor):
            if isinstance(self._world.items.of(kind)[number], Elsewhere) and self._loop and self.calls.offers("remove"):
                request = self.errands.removal(kind, number)
                self.calls.call("remove", request, lambda response: None)
        self._world.leave(visitor)
        statistics = self.statistics
        statistics.peer = ", ".join(other.peer for other in self._visitors)
        if not self._visitors:
            statistics.liveness.closed()
        if reason in (CLOSED_BY_PEER, ENDED):
            self.inform(f"{visitor.peer} is gone: {reason}.")
        else:
            self.complain("lost connections", f"{visitor.peer} is gone: {reason}".rstrip(".") + ".")
        self.end_turn()

    def begin_turn(self) -> None:
        """See Desk."""
        self._scene.look_at_clock()

    def end_turn(self) -> None:
        """See Desk."""
        self._helm.flush()
        for visitor in tuple(self._visitors):
            visitor.flush()

    def answer_here(self, client: Client, request: sim.Request) -> sim.Response:
        """See Desk."""
        self.statistics.counts["requests"] += 1
        try:
            self._check_clock(request)
        except RefusedError as error:
            return error.answer
        self._helm.client = client
        response = self._answers.answer(client, request)
        self._hold()
        return response

    def _check_clock(self, request: sim.Request) -> None:
        """Raise RefusedError for RUN and PAUSE while /clock, which nobody here moves, says what the world does."""
        if not self._is_clock_still:
            return
        if isinstance(request, sim.Run):
            raise RefusedError(0, "The time on /clock stands still, and can't be advanced from here.")
        if isinstance(request, sim.Pause):
            raise RefusedError(0, "The simulator is not running.")

    @property
    def _is_clock_still(self) -> bool:
        clock: Any = self.get_clock()
        return bool(clock.ros_time_is_active) and time.monotonic() - self._clock_moved_s > CLOCK_STANDS_AFTER_S

    def _hold(self) -> None:
        """Let the vehicle stand while the world is paused."""
        is_held = not self._control.is_running
        if is_held and not self._helm.is_held:
            self._helm.stop()
        self._helm.is_held = is_held

    def _tick(self) -> None:
        now_s = time.monotonic()
        self._scene.look_at_clock()
        if (clock_s := self._now_s()) != self._clock_s:
            self._clock_s, self._clock_moved_s = clock_s, now_s
        self._helm.tick(now_s)
        is_unknown = bool(self._visitors) and not self._scene.is_current(self._vehicle)
        self.reports.keep_condition(
            "vehicle", _SILENT_VEHICLE if is_unknown else None, "clients get no state; check that odom is published"
        )
        self.statistics.facts["clients"] = str(len(self._visitors))

    def _mirror(self, plan: EntityPlan) -> None:
        """Have an entity's topics subscribed to."""
        self._plans.append((self._sources.open_new, plan))
        self._plans_guard.trigger()

    # News, on the link's thread.

    def _take_news(self) -> None:
        self._are_news_due = False
        # Where clients want more than can be made in time, there are always more: what is made is sent at once, so that
        # who does not take it is given up, and the loop gets its turn to hear and answer the others.
        for _ in range(len(self._news)):
            take, news = self._news.popleft()
            self._scene.look_at_clock()
            try:
                take(*news)
            except Exception:
                self.complain("internal errors", traceback.format_exc())
            self.end_turn()

    def _moved(self, entity: int, state: EntityState) -> None:
        self._scene.hear(entity, state)
        self.statistics.counts["states"] += 1
        if not self._control.is_running:
            return
        is_last = entity == self._vehicle and self._control.count_step()
        self._world.tell_step((entity,))
        if is_last:
            self._complete()
            self._hold()

    def _complete(self) -> None:
        for visitor in self._visitors:
            visitor.post(sim.Completed())
            visitor.flush()

    def _post(self, kind: ItemType, number: int, message: sim.Response) -> None:
        item = self._world.items.of(kind).get(number)
        if isinstance(item, Elsewhere) and item.client:
            item.client.post(message)

    def _camera_view(self, view: CameraView) -> None:
        data = sim.CameraData(view.stream_id, view.x, view.y, view.radius, view.depth)
        self._post(ItemType.CAMERA_STREAM, view.stream_id, data)

    def _trigger_event(self, event: TriggerEvent) -> None:
        if event.event in _TRIGGERED:
            self._post(ItemType.TRIGGER, event.trigger_id, _TRIGGERED[event.event](event.trigger_id))

    def _attributes(self, message: ExtendedAttributes) -> None:
        attributes = tuple(sim.ExtendedAttribute(each.key, bytes(each.data)) for each in message.attributes)
        data = sim.ExtendedData(message.stream_id, attributes)
        self._post(ItemType.EXTENDED_STREAM, message.stream_id, data)

    def _item_event(self, event: ItemEvent) -> None:
        if event.type != ItemType.ENTITY:
            return  # IDs of the rest are told of where they are added and removed
        if event.added:
            self.errands.note(event.id)
            return
        self.errands.forget(event.id)
        self._world.entity_removed(event.id)  # unless a client of ours has removed it
        self._plans.append((self._sources.close_new, event.id))
        self._plans_guard.trigger()


def main() -> int:
    """Run the node."""
    return run(SimulatorServer)
