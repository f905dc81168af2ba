# SPDX-License-Identifier: Apache-2.0
"""simulator_server: stands in for the underwater simulator, with a vehicle in ROS behind it. See docs/simulator.md."""

import asyncio
import contextlib
import math
import time
import traceback
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time

from drone_bridge.net.connector import Cancellation, LinkCancelledError
from drone_bridge.net.tcp_clients import CLOSED_BY_PEER, Connection, Listening, ListeningEndpoint, TcpClients
from drone_bridge.ros.frames import FrameNames
from drone_bridge.ros.link_node import Endpoint, LinkNode
from drone_bridge.ros.program import run
from drone_bridge.ros.stall_watch import LoopSettling
from drone_bridge.ros.time import is_time_simulated
from drone_bridge.ros.topics import Topic, latched
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import ItemType
from drone_bridge.simulator.device.requests import Context, Quirks
from drone_bridge.simulator.device.world import Client, RunControl, Timing, World
from drone_bridge.simulator.server.clients import ENDS, ClientSession, LoopQueue
from drone_bridge.simulator.server.forwarding import BridgeServices, ForwardedItem, Forwarder, ServiceError
from drone_bridge.simulator.server.parameters import PARAMETERS
from drone_bridge.simulator.server.scene import MirroredEntity, MirroredScene
from drone_bridge.simulator.server.sources import Sources
from drone_bridge.simulator.server.steering import VelocityCommands
from drone_bridge.simulator.topics import EVENTS, SIMULATION_STARTED, Axes, EntityState, Labels, Translation
from drone_bridge.simulator.topics.plans import EntityPlan, read_entity_plans

RENDER = "render"
#: In the answer to CONFIG where no service gives it, Hz.
FREQUENCY = 100.0
#: One more takes the place of who has been silent for longest.
MAX_CLIENTS = 32
TICK_S = 0.1
#: Until a bridge that could not be told whether to run is told again.
TELL_AGAIN_S = 1.0
#: /clock counts as stopped after this time without a change.
CLOCK_STOPPED_AFTER_S = 0.5
ENDED = "the server has ended"
_SILENT_VEHICLE = "the vehicle's position is unknown"


class SimulatorServer(LinkNode):
    """Serves clients of the simulator's protocol from topics and a bridge's services."""

    is_server = True
    rates = ("requests", "states", "commands")
    problems = (*LinkNode.problems, "refused commands", "unsteered commands", "bad numbers", "dropped messages")
    open_state = "listening"

    def __init__(self, **options: Any) -> None:
        super().__init__("simulator_server", PARAMETERS, **options)
        self._queue = LoopQueue(self._handle_one, self._count_dropped)
        self._sessions: list[ClientSession] = []
        self._tasks: set[asyncio.Task[None]] = set()

    # The lifecycle.

    def set_up(self) -> None:
        """Read the parameters and create publishers, subscriptions and clients."""
        get = self.parameters.__getitem__
        self._axes = Axes()
        self._translation = Translation(FrameNames(), self._axes, Labels())
        self._vehicle: int = get("vehicle")
        self._quirks = Quirks(get("quirks"))
        plans = read_entity_plans(get("entities"))
        self._scene = MirroredScene(
            self._axes, self._vehicle, self._now_s, lambda: float(self.parameters["source_timeout"])
        )
        world = self._world = World(self._scene)
        self._control = RunControl()
        self._control.run(0)
        device = Context(world, self._control, Timing(FREQUENCY), self._quirks is Quirks.REAL)
        self._commands = VelocityCommands(self, self._axes, lambda: self._scene.state(self._vehicle), time.monotonic)
        self._scene.steer = self._commands.set
        self._sources = Sources(self, self._translation, partial(self._queue.put, self._moved))
        self.cleanup.callback(self._sources.close)
        self.bridge = BridgeServices(self, get("bridge"))
        self.forwarder = Forwarder(
            self.bridge,
            self._axes,
            device,
            self._scene,
            self._vehicle,
            self._commands,
            self._mirror,
            self._forget_entity,
            lambda: self._is_clock_stopped,
        )
        self._tell_s = -math.inf  # when to try again
        self._for_executor: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._executor_guard = self.make_guard_condition(self._run_in_executor)
        if self._vehicle not in (plan.number for plan in plans):
            self._add_entity(EntityPlan(self._vehicle, "vehicle", render=get("render"), radius=get("radius")))
            self._sources.open_vehicle(self._vehicle)
        for plan in plans:
            self._add_entity(plan)
            self._sources.open(plan)
        self._simulation: Time | None = None  # when that of the bridge began
        begun = partial(self._queue.put, self._simulation_started)
        self.make_subscription(Time, SIMULATION_STARTED, begun, latched())
        for row in {row.name: row for row in EVENTS}.values():
            self.make_subscription(row.message, row.name, partial(self._queue.put, self._event, row), row.requested())

    def _add_entity(self, plan: EntityPlan) -> None:
        self._scene.add(plan.number, MirroredEntity(plan.radius, has_source=True, is_configured=True))
        self._world.entity_added(plan.number, {RENDER: plan.render.encode()} if plan.render else {})

    def make_endpoint(self, cancellation: Cancellation) -> Endpoint:
        """Listen for clients."""
        get = self.parameters.__getitem__
        self._link_cancellation = cancellation

        def listen(port: int | None) -> TcpClients:
            return TcpClients(
                get("host"),
                get("port") if port is None else port,
                self._accept,
                most=MAX_CLIENTS,
                ends=ENDS,
                on_refused=self._refused,
                wire_log=self.wire_log,
            )

        return ListeningEndpoint(get("host"), cancellation, listen)

    def _now_s(self) -> float:
        """Return simulated time if the node uses it, otherwise monotonic time."""
        return float(self.get_clock().now().nanoseconds / 1e9) if is_time_simulated(self) else time.monotonic()

    # What the executor does.

    def _count_dropped(self) -> None:
        self.statistics.counts["dropped messages"] += 1

    def _run_in_executor(self) -> None:
        while self._for_executor:
            carry_out, plan = self._for_executor.popleft()
            carry_out(plan)

    # The conversation, on the link's thread.

    def converse(self, listening: Listening) -> None:
        """Serve clients until the link is cancelled, then stop a vehicle that is being steered."""
        asyncio.run(self._serve(listening.clients))
        raise LinkCancelledError("Serving clients was cancelled.")

    async def _serve(self, clients: TcpClients) -> None:
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        settling = LoopSettling(loop)
        self._commands.is_settling = settling.look
        loop.add_reader(self._link_cancellation.fileno(), over.set)
        self._clock_moved_s, self._clock_s = time.monotonic(), self._now_s()
        self.statistics.liveness.closed()
        self._queue.attach(loop)
        try:
            await clients.start()
            self._queue.handle_next()
            while not over.is_set():
                settling.look()
                due_s = min(self._commands.due_s - time.monotonic(), TICK_S, self.parameters["command_timeout"] / 4)
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(over.wait(), max(0.0, due_s))
                self._tick()
        finally:
            self._queue.detach()
            loop.remove_reader(self._link_cancellation.fileno())
            self._commands.end()
            self._send_completed()
            sessions = tuple(self._sessions)
            clients.hang_up(ENDED)
            if sessions:
                await asyncio.sleep(0)  # for what was written to be sent
            self._queue.clear()

    def _accept(self, connection: Connection) -> ClientSession:
        statistics = self.statistics
        if not self._sessions:
            statistics.liveness.opened()
        session = ClientSession(connection, self, self._quirks, statistics.liveness.heard)
        self._sessions.append(session)
        statistics.counts["connections"] += 1
        statistics.peer = ", ".join(other.peer for other in self._sessions)
        self.inform(f"Connected to {session.peer}.")
        return session

    def _refused(self, peer: str) -> None:
        self.reports.count_and_warn_ongoing(
            "refused peers", f"{peer} was refused: {len(self._sessions)} clients are connected already."
        )

    def session_ended(self, session: ClientSession, reason: str) -> None:
        """Clean up after a client that disconnected."""
        self._sessions.remove(session)
        self._commands.leave(session)
        self.remove_items_of(session)
        statistics = self.statistics
        statistics.peer = ", ".join(other.peer for other in self._sessions)
        if not self._sessions:
            statistics.liveness.closed()
        if reason in (CLOSED_BY_PEER, ENDED):
            self.inform(f"{session.peer} is gone: {reason}.")
        else:
            self.count_and_warn("lost connections", f"{session.peer} is gone: {reason}".rstrip(".") + ".")
        self.flush()

    def remove_items_of(self, session: ClientSession) -> None:
        """Remove the streams, triggers and spies of a client that has left."""
        for kind, number in self._world.items.of_client(session):
            is_forwarded = isinstance(self._world.items.of(kind)[number], ForwardedItem)
            if is_forwarded and self._queue.is_attached and self.bridge.offers("remove"):
                self._begin(self.forwarder.remove_item(kind, number))
        self._world.leave(session)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Have the loop do something beside the rest."""
        task = asyncio.create_task(work)
        self._tasks.add(task)  # the loop itself refers to it weakly
        task.add_done_callback(self._tasks.discard)

    def update_time(self) -> None:
        """Update which states are current; called before requests are handled."""
        self._scene.update_time()

    def flush(self) -> None:
        """Send all queued commands and messages, to all clients."""
        self._commands.tick()  # after anybody's turn: not when all have had theirs
        self._commands.flush()
        for session in tuple(self._sessions):
            session.send_queued()

    def answer(self, client: Client, request: sim.Request) -> sim.Response | Coroutine[Any, Any, sim.Response]:
        """Return the answer, or what awaits that of a service."""
        self.statistics.counts["requests"] += 1
        return self.forwarder.answer(client, request)

    def _follow_bridge(self) -> None:
        """Have the bridge's simulator run or pause as clients were told while there was no bridge."""
        self.forwarder.has_bridge = self.bridge.offers("run") and self.bridge.offers("pause")
        self.forwarder.stop_if_paused()
        now_s = time.monotonic()
        if not self.forwarder.has_bridge or not self.forwarder.is_run_untold or now_s < self._tell_s:
            return
        self.forwarder.is_run_untold, self._tell_s = False, now_s + TELL_AGAIN_S
        self._begin(self._tell_bridge())

    async def _tell_bridge(self) -> None:
        try:
            await self.forwarder.set_running(self._control.is_running, self._control.steps_left)
        except ServiceError as error:  # it does so already; or the bridge is gone again, or has no simulator
            self.forwarder.is_run_untold = not error.is_simulators

    @property
    def _is_clock_stopped(self) -> bool:
        return is_time_simulated(self) and time.monotonic() - self._clock_moved_s > CLOCK_STOPPED_AFTER_S

    def _tick(self) -> None:
        now_s = time.monotonic()
        self._scene.update_time()
        self._follow_bridge()
        if (clock_s := self._now_s()) != self._clock_s:
            self._clock_s, self._clock_moved_s = clock_s, now_s
        self._commands.tick()
        is_unknown = bool(self._sessions) and not self._scene.is_current(self._vehicle)
        self.reports.update_condition(
            "vehicle", _SILENT_VEHICLE if is_unknown else None, "clients get no state; check that odom is published"
        )
        self.statistics.facts["clients"] = str(len(self._sessions))

    def _mirror(self, plan: EntityPlan) -> None:
        """Have the executor subscribe to an entity's topics."""
        self._for_executor.append((self._sources.follow_entity, plan))
        self._executor_guard.trigger()

    # Messages from topics, on the link's thread.

    def _handle_one(self, handle: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._scene.update_time()
        try:
            handle(*arguments)
        except Exception:
            self.count_and_warn("internal errors", traceback.format_exc())
        self.flush()

    def _moved(self, entity: int, state: EntityState) -> None:
        self._scene.update(entity, state)
        self.statistics.counts["states"] += 1
        if self.forwarder.is_paused:
            return
        is_last = entity == self._vehicle and self._control.count_step()
        self._world.notify_step((entity,))
        if is_last:
            self._send_completed()
            self.forwarder.stop_if_paused()

    def _simulation_started(self, began: Time) -> None:
        if self._simulation not in (None, began):
            self.forwarder.begin_anew()
        self._simulation = began

    def _event(self, row: Topic, message: Any) -> None:
        """Tell clients what the bridge's simulator has told it."""
        assert row.from_ros
        event = row.from_ros(self._translation, message)
        if isinstance(event, sim.Completed):
            self._control.follow(is_running=False)
            self._send_completed()
        elif isinstance(event, sim.Spied):
            self._item_event(event)
        elif event is not None:
            kind = ItemType.CAMERA_STREAM if isinstance(event, sim.CameraData) else ItemType.TRIGGER
            item = self._world.items.of(kind).get(event.id)
            if isinstance(item, ForwardedItem) and item.client:
                item.client.post(event)

    def _send_completed(self) -> None:
        for session in self._sessions:
            session.post(sim.Completed())
            session.send_queued()

    def _item_event(self, event: sim.Spied) -> None:
        if event.type != ItemType.ENTITY:
            return  # other items are reported by the calls that add and remove them
        if event.is_added:
            self.forwarder.add_entity(event.id)
            return
        self._forget_entity(event.id)

    def _forget_entity(self, entity: int) -> None:
        """Remove what a bridge has removed, unless one of our clients has done so."""
        self.forwarder.forget_name(entity)
        self._world.entity_removed(entity)
        self._for_executor.append((self._sources.unfollow_entity, entity))
        self._executor_guard.trigger()


def main() -> int:
    """Run the node."""
    return run(SimulatorServer)
