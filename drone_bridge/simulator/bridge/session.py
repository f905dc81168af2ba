# SPDX-License-Identifier: Apache-2.0
"""A client's conversation with a simulator, from its first requests on.

The link's thread asks for the configuration, for the vehicle's state and for all desired items, and then notices items
that come and go, learns what the vehicle's heading depends on, and probes an idle simulator. The streams' thread starts
after the configuration, and publishes what comes. `lock` protects outputs and items; it is never held across a
request.
"""

import math
import random
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from drone_bridge.net.connector import Cancellation, Watch
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.client import (
    STREAM_TYPES,
    Channel,
    Client,
    Pending,
    RefusedError,
)
from drone_bridge.simulator.bridge.desired_items import (
    Camera,
    CameraStream,
    DesiredItem,
    DesiredItems,
    EntityStream,
)
from drone_bridge.simulator.bridge.outputs import SimulatorOutputs
from drone_bridge.simulator.bridge.parameters import AUTO, POLL, SPY
from drone_bridge.simulator.codec import Attribute, ItemType
from drone_bridge.simulator.topics import STREAMED, BodyToModel
from drone_bridge.simulator.topics.services import explanation
from drone_bridge.wire.events import LocalProtocolError
from drone_bridge.wire.layouts import MisfitError

RATES_PERIOD_S = 1.0
MAX_RATES = 32  # that /diagnostics shows
MAX_ENTITIES = 65536  # that are remembered, to tell which have come and gone
#: Silence of an idle simulator after which it is probed.
PROBE_AFTER_S = 1.0
#: How long the streams' thread has to end, before the last velocities are sent.
STOP_TIMEOUT_S = 0.1

#: Extended attributes of the vehicle. The first is a mark, which tells after a reconnect whether the simulation is the
#: same one; the second keeps what can be learned only while it is paused.
SIMULATION_KEY = "drone_bridge.world"
BODY_TO_MODEL_KEY = "drone_bridge.btom"
TOKEN_BYTES = 16
#: What the vehicle is asked for at first.
FIRST_ATTRIBUTES = (
    Attribute.POSITION,
    Attribute.VELOCITY,
    Attribute.ACCELERATION,
    Attribute.ANGULAR_VELOCITY,
    Attribute.ORIENTATION,
)

#: Without a step for this long, and for the time of this many steps, the simulation counts as paused.
_QUIET_S = 0.2
_QUIET_STEPS = 3
_JITTER_S = 0.1  # so that bridges that connect at the same time do not disturb each other
_RETRY_S = 5.0
_LARGEST_TURN = 1e-9  # 1 - cos of half the angle by which a vehicle may seem to have turned

#: What ends a call without success: refusals, and requests that can't be sent.
REFUSALS = (RefusedError, LocalProtocolError, ValueError)


class FairLock:
    """A lock that goes to the thread that waits for it, and not again to the one that has just released it.

    A stream without pause would otherwise keep the link's thread, and with it the velocities, from it for long. Who
    holds it may take it again.
    """

    def __init__(self) -> None:
        self._lock, self._next = threading.Lock(), threading.Lock()
        self._holder = 0
        self._depth = 0

    def __enter__(self) -> None:
        if self._holder != threading.get_ident():
            with self._next:
                self._lock.acquire()
            self._holder = threading.get_ident()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._holder = 0
            self._lock.release()


@dataclass(slots=True, eq=False)
class AwaitedRun:
    """Somebody who waits for the end of a run."""

    mark: int  # the number of runs that had been completed when it began
    latest_s: float  # when the last step came, or should have
    finish: Callable[[str], None]  # gets why the end is not known, or an empty text


class SimulatorSession:
    """One conversation. For the link's thread, but for what is said to be the streams'."""

    def __init__(
        self, node: LinkNode, client: Client, items: DesiredItems, outputs: SimulatorOutputs, simulation: bytes | None
    ) -> None:
        """`simulation` is the mark of the one that the previous conversation was about, if it had one."""
        get = node.parameters.__getitem__
        self._node = node
        self._counts = node.statistics.counts
        self.client = client
        self.items = items
        self.outputs = outputs
        self.lock = FairLock()
        self.vehicle: int = get("vehicle")
        self.stream_period: int = get("stream_period")
        self.configured: sim.Configured | None = None
        #: The mark of this simulation, and until that is known of the last one.
        self.simulation = simulation
        #: Called when this proves to be another simulation than the last one.
        self.begin_anew: Callable[[], None] = lambda: None
        self._camera_moves = 0  # how often cameras have come or gone
        self._timeout_s: float = get("request_timeout")

        self._poll_period_s: float = get("poll_period")
        self._poll_due_s = math.inf
        self._rates_due_s = time.monotonic() + RATES_PERIOD_S
        self._probe_id: int | None = None
        self._entities: set[int] = set()
        self.is_cuauv_server: bool | None = None  # None: not known yet

        self._runs: list[AwaitedRun] = []
        #: Since when no step has come, on the monotonic clock; never before steps would be seen.
        self._quiet_since_s = math.inf
        self._is_heading_settled = self._is_heading_warned = False
        self._learning_not_before_s = -math.inf
        self._jitter_s = random.uniform(0.0, _JITTER_S)
        self._runs_on_connect: bool = get("run_on_connect")

        # What the streams' thread writes.
        self.completions = 0
        self._stepped_s = -math.inf
        self._spied: deque[sim.Spied] = deque()
        self._handlers: dict[type, Callable[[Any], None]] = {
            sim.EntityData: self._handle_entity_data,
            sim.CameraData: self._handle_camera_data,
            sim.ExtendedData: self._count_unknown,
            sim.Spied: self._spied.append,
        }
        client.handle = self._handle
        self._stop_streams = Cancellation()
        self._streams_thread = threading.Thread(
            target=self._publish_streams, name=f"{node.get_name()} streams", daemon=True
        )

    # The beginning and the end.

    def start(self) -> None:
        """Send the first requests, and ask for all desired items. Raises LinkError."""
        first = [
            sim.GetConfig(),
            sim.GetExtended(self.vehicle, SIMULATION_KEY),
            sim.GetExtended(self.vehicle, BODY_TO_MODEL_KEY),
            *(sim.GetEntity(self.vehicle, attribute) for attribute in FIRST_ATTRIBUTES),
        ]
        *pending, listing = [self.client.send(request) for request in (*first, sim.ListEntities())]
        configured, mark, rotation, *state = [self.client.wait_for(each) for each in pending]
        with self.lock:
            self._take_configuration(configured)
            self._recognize(mark)
            self._take_vehicle(rotation, state)
            self.outputs.announce()
        self.client.read_requests(streams_too=False)
        self._streams_thread.start()
        sent = self._send_missing()
        has_vehicle = isinstance(state[-1], sim.EntityGot)
        self._is_heading_settled = self.outputs.is_body_to_model_known or not has_vehicle
        # When this is answered, so is all that streams.
        answer = self.client.wait_for(self.client.streams.send(sim.Reassure()))
        if isinstance(answer, sim.Ok):
            self._node.opened()
            self._quiet_since_s = max(self._stepped_s, time.monotonic())
        self._settle(sent)
        self.ask_for_camera_streams()
        listed = self.client.wait_for(listing)
        if isinstance(listed, sim.EntitiesListed):
            self._entities = set(listed.ids[:MAX_ENTITIES])
        for entity in sorted(self._entities):
            self.restore(entity)  # it may have come after the request for its stream, and nobody reports that
        self._begin_to_notice_items()

    def _take_configuration(self, answer: sim.Response) -> None:
        if not isinstance(answer, sim.Configured):
            return
        self.configured = answer
        self._node.statistics.facts["configuration"] = (
            f"{answer.frequency:g} steps per second, speed {answer.speed:g}"
            f"{', as fast as it can' if answer.non_real_time else ''}"
        )
        try:
            self.outputs.keeper.clock.configure(answer)
        except ValueError as error:
            self._node.count_and_warn("bad numbers", str(error))

    def _recognize(self, answer: sim.Response) -> None:
        mark = answer.data if isinstance(answer, sim.ExtendedGot) and len(answer.data) == TOKEN_BYTES else None
        if mark is not None and mark == self.simulation:
            self.items.reconnect()
            return
        if mark is None:  # else another bridge has marked it: with two marks each would take it for a new one
            mark = uuid.uuid4().bytes
            self.client.send(sim.SetExtended(self.vehicle, SIMULATION_KEY, mark))
        self.simulation = mark
        self.begin_anew()

    def _take_vehicle(self, rotation: sim.Response, state: list[sim.Response]) -> None:
        stored = None
        if isinstance(rotation, sim.ExtendedGot):
            try:
                stored = decode_rotation(rotation.data)
            except ValueError as error:
                self._node.count_and_warn("bad numbers", str(error))
        given, outputs = self._node.parameters["body_to_model"], self.outputs
        outputs.learn_body_to_model(BodyToModel(given) if any(given) else stored)
        outputs.attitude = None
        values = {got.attribute: got.value for got in state if isinstance(got, sim.EntityGot)}
        try:
            attitude = outputs.state(self.vehicle, [values[attribute] for attribute in STREAMED]).orientation
            outputs.attitude = attitude if outputs.is_body_to_model_known else None
        except (KeyError, ValueError) as error:
            reason = str(error) if isinstance(error, ValueError) else f"There is no entity {self.vehicle}."
            self._node.count_and_warn("missing vehicle", f"The direction of the vehicle is unknown. {reason}")

    def stop(self) -> None:
        """End the streams' thread."""
        self._stop_streams.cancel()
        if self._streams_thread.is_alive():
            self._streams_thread.join(STOP_TIMEOUT_S)
        if not self._streams_thread.is_alive():
            self._stop_streams.close()

    # What is due.

    def tick(self) -> float:
        """Do what is due; return when to call this again, on the monotonic clock, unless something comes before."""
        with self.lock:
            self.outputs.keeper.tick(time.monotonic())
        while self._spied:
            self._note_spied(self._spied.popleft())
        if time.monotonic() >= self._rates_due_s:
            self._report_rates()
        if time.monotonic() >= self._poll_due_s:
            self._poll()
        runs_due_s, heading_due_s = self._tick_runs(), self._tick_heading()
        return min(self._rates_due_s, self._poll_due_s, runs_due_s, heading_due_s, self._probe_if_idle())

    def _report_rates(self) -> None:
        now_s = time.monotonic()
        period_s = now_s - self._rates_due_s + RATES_PERIOD_S
        self._rates_due_s = now_s + RATES_PERIOD_S
        with self.lock:
            streams = [item for item in self.items if item.id is not None and item.kind in STREAM_TYPES]
            rates = [f"{stream.name} {stream.take_message_count() / period_s:.1f}" for stream in streams]
        self._node.statistics.facts["messages per second"] = ", ".join(rates[:MAX_RATES])

    def _probe_if_idle(self) -> float:
        """Send a request to an idle simulator to see whether it responds; return when to check again."""
        left_s = PROBE_AFTER_S - self._node.statistics.liveness.silence_s
        if left_s <= 0:
            self.client.exchange(sim.Reassure())
            left_s = PROBE_AFTER_S
        return time.monotonic() + left_s

    # Runs.

    def wait_for_run(self, run: AwaitedRun) -> None:
        """Have `run.finish` called when the run is complete. Completed may come even before the answer to RUN."""
        self._runs.append(run)

    def end_runs(self, reason: str) -> None:
        """Tell all who wait for a run that they wait in vain."""
        runs, self._runs = self._runs, []
        for run in runs:
            run.finish("" if run.mark != self.completions else reason)

    def _tick_runs(self) -> float:
        for run in tuple(self._runs):
            latest_s = max(run.latest_s, self._stepped_s)
            is_complete = run.mark != self.completions
            if is_complete or time.monotonic() >= latest_s + self._timeout_s:
                self._runs.remove(run)
                run.finish("" if is_complete else f"The simulation has made no step for {self._timeout_s:g} s.")
        return min((max(run.latest_s, self._stepped_s) + self._timeout_s for run in self._runs), default=math.inf)

    # Desired items.

    def add(self, item: DesiredItem) -> sim.Added:
        """Request a new item for somebody, and keep it if the simulator adds it.

        Raises as `Client.request_all` does, and ValueError if there are too many.
        """
        request = item.request(self.outputs.axes)
        assert request
        self.client.check(request)
        with self.lock:
            self.items.add(item)
        try:
            answer = self.client.wait_for(self._send(item, request))
            if isinstance(answer, sim.Error):
                raise RefusedError(explanation(request, answer), answer.code)
            assert isinstance(answer, sim.Added)
        except BaseException:  # who hears of no success is not to find it there later
            with self.lock:
                self.items.drop(item)
            raise
        if isinstance(item, Camera):
            self._note_camera(item)
        return answer

    def restore(self, entity: int | None = None) -> None:
        """Ask for all missing items, or those that depend on an entity. What is refused is logged."""
        self._settle(self._send_missing(entity))
        self.ask_for_camera_streams(entity)

    def ask_for_camera_streams(self, entity: int | None = None) -> None:
        """Ask for streams of cameras that were not asked for yet, and renew those that precede a move of cameras.

        Those that have been refused are asked for again when they depend on `entity`.
        """
        wanted: list[DesiredItem] = []
        for stream in self.items:
            if not isinstance(stream, CameraStream) or stream.camera_id is None:
                continue
            if stream.id is None and (stream.camera_moves is None or entity in stream.entities):
                wanted.append(stream)
            elif stream.id is not None and stream.camera_moves != self._camera_moves:
                self.client.send(sim.Remove(stream.kind, stream.id))
                with self.lock:
                    self.items.mark_missing(stream)
                wanted.append(stream)
        self._settle(self._send_items(wanted))

    def cameras_moved(self) -> None:
        """Note that cameras or streams may be gone, and renew all our camera streams.

        The CUAUV server stores its cameras in an array. When one is added or removed the others move, but their streams
        keep dangling pointers: they repeat what was seen last, or send garbage.
        """
        self._camera_moves += 1
        self.ask_for_camera_streams()

    def _note_camera(self, camera: Camera) -> None:
        """Note that the simulator has added a camera of ours. Its streams have to be asked for."""
        self._camera_moves += 1
        for stream in self.items:
            if isinstance(stream, CameraStream) and stream.camera is camera:
                stream.camera_moves = None
        with self.lock:
            self.outputs.announce_camera(camera.plan)

    def _send_missing(self, entity: int | None = None) -> list[tuple[DesiredItem, Pending]]:
        """Ask for all missing items but streams of cameras, or those that depend on an entity."""
        missing = [item for item in self.items if item.id is None and not isinstance(item, CameraStream)]
        return self._send_items(item for item in missing if entity is None or entity in item.entities)

    def _send_items(self, items: Iterable[DesiredItem]) -> list[tuple[DesiredItem, Pending]]:
        """Ask for items together; return what is to be settled."""
        sent: list[tuple[DesiredItem, Pending]] = []
        for item in items:
            request = item.request(self.outputs.axes)
            assert request
            try:
                sent.append((item, self._send(item, request)))
            except LocalProtocolError as error:
                self._warn_refused(item, str(error))
        return sent

    def _settle(self, sent: list[tuple[DesiredItem, Pending]]) -> None:
        """Wait for the answers, and log what was refused."""
        for item, pending in sent:
            answer = self.client.wait_for(pending)
            if isinstance(answer, sim.Error):
                self._warn_refused(item, explanation(pending.request, answer))
            elif isinstance(item, Camera):
                self._note_camera(item)

    def _warn_refused(self, item: DesiredItem, sentence: str) -> None:
        self._node.count_and_warn("refused items", f"The simulator refused {item.name}. {sentence}")

    def _send(self, item: DesiredItem, request: sim.Request) -> Pending:
        if isinstance(item, CameraStream):
            item.camera_moves = self._camera_moves

        def register(answer: sim.Response) -> None:  # where it is read, as data may follow at once
            if isinstance(answer, sim.Added):
                with self.lock:
                    self.items.mark_added(item, answer.id)

        return self.client.send(request, on_read=register)

    # Items that come and go.

    def _begin_to_notice_items(self) -> None:
        way = self._node.parameters["item_events"]
        if way == AUTO:
            added = self.client.try_on_probe(sim.Spy())
            self._probe_id = added.id if isinstance(added, sim.Added) else None
            way = POLL if self._probe_id is None else SPY
        facts = self._node.statistics.facts
        if way == SPY:
            facts["item events"] = "by SPY"
            self.client.send(sim.Spy())
        elif way == POLL:
            facts["item events"] = f"by asking every {self._poll_period_s:g} s"
            self._poll_due_s = time.monotonic() + self._poll_period_s

    def _poll(self) -> None:
        (answer,) = self.client.exchange(sim.ListEntities())
        self._poll_due_s = time.monotonic() + self._poll_period_s
        if not isinstance(answer, sim.EntitiesListed):
            return
        listed = set(answer.ids[:MAX_ENTITIES])
        known, self._entities = self._entities, listed
        for entity in sorted(known - listed):
            self._note_entity(False, entity)
        for entity in sorted(listed - known):
            self._note_entity(True, entity)

    def _note_spied(self, event: sim.Spied) -> None:
        if event.type == ItemType.SPY and event.id == self._probe_id:
            return  # from the probe
        if event.type != ItemType.ENTITY:
            with self.lock:
                self.outputs.publish(event)
            if not event.is_added:
                self.forget(event.type, event.id)
            return
        if not event.is_added:
            self._entities.discard(event.id)
        elif len(self._entities) < MAX_ENTITIES:
            self._entities.add(event.id)
        self._note_entity(event.is_added, event.id)

    def _note_entity(self, is_added: bool, entity: int) -> None:
        with self.lock:
            self.outputs.publish(sim.Spied(is_added, ItemType.ENTITY, entity))
        if is_added:
            self.restore(entity)
        else:
            self.forget(ItemType.ENTITY, entity)
            self.outputs.former_names.pop(entity, None)

    def forget(self, kind: int, number: int, *, is_ours: bool = False) -> None:
        """Note that an item was removed; `is_ours`: at our request."""
        # With an entity the CUAUV server removes its cameras; if it has none, the streams of camera 0.
        disturbs_cameras = kind == ItemType.ENTITY and number not in self.outputs.former_names
        disturbs_cameras |= is_ours and kind == ItemType.CAMERA
        with self.lock:
            if is_ours and kind == ItemType.ENTITY and number in self._entities:
                self.outputs.former_names[number] = self.outputs.names.get(number, "")
            self.items.removed(kind, number, is_ours=is_ours)
            self.outputs.keep_cameras(self.items.camera_frames())
        if disturbs_cameras:
            self.cameras_moved()
        if kind == ItemType.ENTITY and not any(number in item.entities for item in self.items):
            with self.lock:
                self.outputs.forget_entity(number)

    # The rotation from the vehicle's principal axes to its model frame, which its heading depends on. No message
    # carries it. But the simulator accepts q of the model and reports q of the principal axes: setting it and reading
    # it back shows the difference. That turns the vehicle for a moment, which is harmless while it is paused.

    def settle_heading(self) -> None:
        """Wait until the vehicle's heading is known, or can't be learned because the simulation runs."""
        while not self._is_heading_settled:
            due_s = self._tick_heading()
            if not self._is_heading_settled:
                self.client.wait(due_s)

    def _tick_heading(self) -> float:
        """Learn the heading if the simulation is paused, warn if it runs; return when to call this again."""
        if self._runs_on_connect and self._is_heading_settled:
            self._runs_on_connect = False
            self.client.exchange(sim.Run())  # an Error says that it runs already
        if self.outputs.is_body_to_model_known or self._quiet_since_s == math.inf:
            self._is_heading_settled |= self.outputs.is_body_to_model_known
            return math.inf
        if not self.sees_steps:
            self._is_heading_settled = True  # there is no vehicle
            return math.inf
        frequency = self.configured.frequency if self.configured else 0.0
        quiet_s = max(_QUIET_S, _QUIET_STEPS / frequency if frequency > 0.0 else 0.0) + self._jitter_s
        due_s = max(max(self._quiet_since_s, self._stepped_s) + quiet_s, self._learning_not_before_s)
        if time.monotonic() >= due_s:
            self._learn_heading()
            return -math.inf  # somebody may have waited for it
        if self._stepped_s > -math.inf and not self._is_heading_warned:
            self._is_heading_warned = self._is_heading_settled = True
            self._warn_of_heading(
                "The simulation was running already, so the rotation from the vehicle's principal axes to its model "
                "can't be learned: its orientation may be wrong, and it is not steered. Pause the simulation for a "
                "moment (services pause and run), or set the parameter body_to_model (1, 0, 0, 0 for none)."
            )
        return due_s

    def _warn_of_heading(self, sentence: str) -> None:
        self._node.statistics.begin_condition("heading", "The vehicle's heading is not known")
        self._node.count_and_warn("unknown heading", sentence)

    def _learn_heading(self) -> None:
        outputs = self.outputs
        try:
            learned, q = self._learn_body_to_model()
        except REFUSALS as error:
            self._learning_not_before_s = time.monotonic() + _RETRY_S
            self._warn_of_heading(f"The rotation from the vehicle's principal axes to its model is unknown: {error}")
        else:
            with self.lock:
                outputs.learn_body_to_model(learned)
                outputs.attitude = outputs.orientation(self.vehicle, q)
            data = sim.EntityGot(Attribute.ORIENTATION, learned.rotation).encode()[1:]
            self.client.send(sim.SetExtended(self.vehicle, BODY_TO_MODEL_KEY, data))
            self._node.get_logger().info(
                "The rotation from the vehicle's principal axes to its model is (w, x, y, z) = "
                f"({', '.join(f'{number:.4g}' for number in learned.rotation)})."
            )
        self._is_heading_settled = True

    def _learn_body_to_model(self) -> tuple[BodyToModel, Any]:
        """Set q to its own value and read it back; return the rotation, and the vehicle's q."""
        ask = sim.GetEntity(self.vehicle, Attribute.ORIENTATION)
        (held,) = self.client.exchange(sim.GetExtended(self.vehicle, BODY_TO_MODEL_KEY))
        if isinstance(held, sim.ExtendedGot):  # another bridge may have learned it meanwhile
            return decode_rotation(held.data), self.client.request(ask).value
        before = self.client.request(ask).value
        turned = self.client.answers_to([sim.SetEntity(self.vehicle, Attribute.ORIENTATION, before), ask])[1].value
        learned = BodyToModel.between(before, turned)
        restoring = sim.SetEntity(self.vehicle, Attribute.ORIENTATION, learned.model(before))
        after = self.client.answers_to([restoring, ask])[1].value
        if 1.0 - abs(sum(a * b for a, b in zip(before, after, strict=True))) > _LARGEST_TURN:
            raise ValueError("The vehicle was turned by others meanwhile.")
        return learned, before

    # Streams: in a thread of their own.

    def _publish_streams(self) -> None:
        keeper, streams = self.outputs.keeper, self.client.streams.stream
        watch = Watch([self._stop_streams, streams])
        try:
            while True:
                timeout_s = None if keeper.due_s == math.inf else max(0.0, keeper.due_s - time.monotonic())
                is_stopped, is_readable = watch.wait(timeout_s)
                if is_stopped:
                    return
                with self.lock:
                    keeper.tick(time.monotonic())
                    try:
                        if is_readable:
                            self.client.read_streams()
                    finally:  # also of what came before the end: later it would be old
                        self.outputs.flush()
        except Exception as error:
            self.client.fail(error)

    def _handle(self, event: sim.Response, channel: Channel) -> None:
        """Handle an out-of-band message, in the thread that has read it."""
        with self.lock:
            if isinstance(event, sim.Completed):
                if channel is self.client.requests:  # it comes on every connection
                    self.completions += 1
                    self.outputs.publish(event)
            else:
                self._handlers.get(type(event), self.outputs.publish)(event)

    def _handle_entity_data(self, data: sim.EntityData) -> None:
        stream = self.items.find(ItemType.ENTITY_STREAM, data.id)
        counts = self._counts
        counts["stream messages"] += 1
        if not isinstance(stream, EntityStream):
            counts["unknown streams"] += 1  # just added, or just removed
            return
        stream.messages += 1
        if self.counts_steps(stream):
            counts["steps"] += 1
            self._stepped_s = time.monotonic()
            self.outputs.keeper.step()
        if data.attributes != STREAMED:
            return
        try:
            self.outputs.publish_state(stream.entity, data.values)
        except ValueError as error:
            self._node.count_and_warn("bad numbers", f"Entity {stream.entity}: {error}")

    @property
    def sees_steps(self) -> bool:
        """Whether a stream reports every step."""
        return any(item.id is not None and self.counts_steps(item) for item in self.items)

    def counts_steps(self, item: DesiredItem) -> bool:
        """Return whether an item is the stream that reports every step."""
        return isinstance(item, EntityStream) and item.entity == self.vehicle and item.period == 1

    def _count_unknown(self, data: Any) -> None:
        """Count a message of a stream that nobody asked for."""
        self._counts["stream messages"] += 1
        self._counts["unknown streams"] += 1

    def _handle_camera_data(self, data: sim.CameraData) -> None:
        """Publish what a camera sees."""
        stream = self.items.find(ItemType.CAMERA_STREAM, data.id)
        if stream is None:
            self._count_unknown(data)
            return
        self._counts["stream messages"] += 1
        stream.messages += 1
        self.outputs.publish(data)


def decode_rotation(data: bytes) -> BodyToModel:
    """Return the value of BODY_TO_MODEL_KEY. Raises ValueError."""
    try:
        return BodyToModel(sim.EntityGot.decode(bytes([Attribute.ORIENTATION]) + data).value)  # type: ignore[arg-type]
    except (ValueError, MisfitError) as error:
        raise ValueError(f"What {BODY_TO_MODEL_KEY} of the vehicle is not a rotation.") from error
