# SPDX-License-Identifier: Apache-2.0
"""A client's conversation with a simulator. For the thread whose turn it is: see turns.py."""

import math
import time
from collections.abc import Callable
from typing import Any, Final

from drone_bridge.net.connector import LinkCancelledError, LinkError
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.desired_items import (
    CameraStream,
    DesiredItem,
    DesiredItems,
    EntityStream,
    ExtendedStream,
    Trigger,
)
from drone_bridge.simulator.bridge.handshake import Handshake
from drone_bridge.simulator.bridge.link import Channel, Outcome, ignore
from drone_bridge.simulator.bridge.outputs import SimulatorOutputs
from drone_bridge.simulator.bridge.parameters import AUTO, POLL, SPY
from drone_bridge.simulator.bridge.reconciler import Reconciler
from drone_bridge.simulator.bridge.runs import Runs
from drone_bridge.simulator.codec import ItemType
from drone_bridge.simulator.topics.translation import STREAMED
from drone_bridge.wire.events import RemoteProtocolError

RATES_PERIOD_S: Final = 1.0
MAX_RATES: Final = 32  # that /diagnostics shows
MAX_ENTITIES: Final = 65536  # that are remembered, to tell which have come and gone
STREAM_TYPES: Final = (ItemType.ENTITY_STREAM, ItemType.CAMERA_STREAM, ItemType.EXTENDED_STREAM)
STREAM_CHANNEL_TYPES: Final = (*STREAM_TYPES, ItemType.TRIGGER, ItemType.SPY)
_TRIGGER_EVENTS: Final = (sim.Triggered, sim.Untriggered, sim.PathStarted, sim.PathFailed, sim.PathEnded)


class SimulatorSession:
    """The state of one pair of connections."""

    def __init__(
        self,
        node: LinkNode,
        channels: tuple[Channel, Channel],
        items: DesiredItems,
        outputs: SimulatorOutputs,
    ) -> None:
        """`channels`: for requests and for streams, perhaps the same."""
        get = node.parameters.__getitem__
        self._node = node
        self._counts = node.statistics.counts
        self.requests, self.streams = channels
        self.probe: Channel | None = None
        self._probe_id: int | None = None
        self.items = items
        self.outputs = outputs
        self._keeper = outputs.keeper
        self.vehicle: int = get("vehicle")
        self.stream_period: int = get("stream_period")
        self._item_events: str = get("item_events")
        self._poll_period_s: float = get("poll_period")
        self._poll_due_s = math.inf
        self._rates_due_s = time.monotonic() + RATES_PERIOD_S
        self._timeout_s: float = get("request_timeout")
        self.handshake = Handshake(node, self.requests, items, outputs, self._begin)
        self.reconciler = Reconciler(node, items, outputs, channels, self.handshake.mark_world)
        self._entities: set[int] | None = None
        self._former_names: dict[int, str] = {}  # of entities that we have removed, until the removal is reported
        self.runs = Runs(self._timeout_s)
        #: Since when no step has come, on the monotonic clock; never before steps would be seen.
        self.quiet_since_s = math.inf
        self.has_stepped = False
        self._waiting_for_heading: list[Callable[[], None]] | None = []  # None: settled
        self.is_cuauv_server: bool | None = None  # None: not known yet
        self._handlers: dict[type, Callable[[Any], None]] = {
            sim.EntityData: self._handle_entity_data,
            sim.CameraData: self._handle_camera_data,
            sim.ExtendedData: self._handle_extended_data,
            sim.Spied: self._handle_spied,
            sim.Completed: self._handle_completed,
            **dict.fromkeys(_TRIGGER_EVENTS, self._handle_trigger),
        }

    # Start.

    def _take_list(self, outcome: Outcome) -> None:
        if not isinstance(outcome, sim.EntitiesListed):
            return
        listed = set(outcome.ids[:MAX_ENTITIES])
        known, self._entities = self._entities, listed
        if known is None:
            # Those that were there before us have not been added, but they may have come since we asked for streams.
            for entity in sorted(listed):
                self.reconciler.request_all(entity)
            return
        for entity in sorted(known - listed):
            self._note_entity(False, entity)
        for entity in sorted(listed - known):
            self._note_entity(True, entity)

    def _take_poll(self, outcome: Outcome) -> None:
        self._poll_due_s = time.monotonic() + self._poll_period_s
        self._take_list(outcome)

    def start(self, token: bytes | None) -> None:
        """Send the first requests; `token` marks the previous connection's world, if any."""
        self.items.start_over()
        self.handshake.start(token)
        self.requests.ask(sim.ListEntities(), self._take_list)

    def _begin(self) -> None:
        """Request all desired items after the handshake."""
        self.outputs.announce()
        self.reconciler.request_all()
        if self._node.parameters["run_on_connect"]:
            # An Error says that it runs already.
            self.when_heading_is_settled(lambda: self.requests.ask(sim.Run(), ignore))
        if self.outputs.is_body_to_model_known or not self.handshake.has_vehicle:
            self.settle_heading()
        self._begin_to_notice_items()
        # When this is answered, so is all before it.
        self.streams.ask(sim.Reassure(), self._settle)

    def _settle(self, outcome: Outcome) -> None:
        if isinstance(outcome, sim.Ok):
            self._node.opened()
            self.quiet_since_s = min(self.quiet_since_s, time.monotonic())

    def when_heading_is_settled(self, proceed: Callable[[], None]) -> None:
        """Call `proceed` when the vehicle's heading is known, or can't be learned because the simulation runs."""
        if self._waiting_for_heading is None:
            proceed()
        else:
            self._waiting_for_heading.append(proceed)

    def settle_heading(self) -> None:
        """Call those that wait for the vehicle's heading."""
        waiting, self._waiting_for_heading = self._waiting_for_heading or [], None
        for proceed in waiting:
            proceed()

    def channel_for(self, request: sim.Request) -> Channel:
        """Return the channel of a request: streams and triggers must be removed by the connection that added them."""
        is_of_stream = isinstance(request, sim.Remove) and request.type in STREAM_CHANNEL_TYPES
        return self.streams if is_of_stream else self.requests

    @property
    def sends_unimplemented(self) -> bool:
        """Whether to send requests on which the CUAUV server closes the connection."""
        return bool(self._node.parameters["unimplemented_requests"] == "send")

    # Added and removed entities.

    def _begin_to_notice_items(self) -> None:
        if self._item_events == SPY:
            self._spy()
        elif self._item_events == POLL:
            self._poll()
        elif self._item_events == AUTO and self.probe:
            self.probe.ask(sim.Spy(), self._take_probe)

    def _spy(self) -> None:
        self._node.statistics.facts["item events"] = "by SPY"
        self.streams.ask(sim.Spy(), ignore)

    def _poll(self) -> None:
        self._node.statistics.facts["item events"] = f"by asking every {self._poll_period_s:g} s"
        self._poll_due_s = time.monotonic() + self._poll_period_s

    def _take_probe(self, outcome: Outcome) -> None:
        if isinstance(outcome, sim.Added):
            self._probe_id = outcome.id
            self._spy()
        else:
            self._poll()

    def read_probe(self, buffer: memoryview) -> None:
        """Read from the connection that tries SPY, and close it once the outcome is known."""
        assert self.probe
        try:
            for _ in self.probe.read(buffer):
                continue
        except LinkCancelledError:
            raise
        except (LinkError, RemoteProtocolError) as error:
            self.probe.fail(str(error))
        if not self.probe.outstanding:
            self.close_probe()

    def close_probe(self) -> None:
        """Close the connection that tries SPY."""
        if self.probe:
            probe, self.probe = self.probe, None
            probe.stream.close()

    def _note_entity(self, is_added: bool, entity: int) -> None:
        former_name = "" if is_added else self._former_names.get(entity, "")
        self.outputs.publish_item(is_added, ItemType.ENTITY, entity, former_name)
        if is_added:
            self.reconciler.request_all(entity)
        else:
            self.forget(ItemType.ENTITY, entity)
            self._former_names.pop(entity, None)

    def forget(self, kind: int, number: int, *, is_ours: bool = False) -> None:
        """Note that an item was removed; `is_ours`: at our request."""
        # With an entity the CUAUV server removes its cameras; if it has none, the streams of camera 0.
        disturbs_cameras = kind == ItemType.ENTITY and number not in self._former_names
        disturbs_cameras |= is_ours and kind == ItemType.CAMERA
        if is_ours and kind == ItemType.ENTITY and self._entities is not None and number in self._entities:
            self._former_names[number] = self.outputs.names.get(number, "")
        self.items.removed(kind, number, is_ours=is_ours)
        self.outputs.keep_cameras(self.items.camera_frames())
        if disturbs_cameras:
            self.reconciler.cameras_moved()
        if kind == ItemType.ENTITY and not any(number in item.entities for item in self.items):
            self.outputs.forget_entity(number)

    # Out-of-band messages.

    def handle(self, event: sim.Response, channel: Channel) -> None:
        """Handle an out-of-band message."""
        if isinstance(event, sim.Completed) and channel is not self.requests:
            return  # it comes on every connection
        self._handlers[type(event)](event)

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
            self.has_stepped, self.quiet_since_s = True, time.monotonic()
            self.runs.stepped(self.quiet_since_s)
            self._keeper.step()
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

    def _handle_camera_data(self, data: sim.CameraData) -> None:
        self._node.statistics.counts["stream messages"] += 1
        stream = self.items.find(ItemType.CAMERA_STREAM, data.id)
        if not isinstance(stream, CameraStream):
            self._node.statistics.counts["unknown streams"] += 1
            return
        stream.messages += 1
        camera = (stream.camera_id or 0, stream.camera_name)
        self.outputs.publish_view(self.outputs.view(data, camera, stream.target, data.id))

    def _handle_extended_data(self, data: sim.ExtendedData) -> None:
        self._node.statistics.counts["stream messages"] += 1
        stream = self.items.find(ItemType.EXTENDED_STREAM, data.id)
        if isinstance(stream, ExtendedStream):
            stream.messages += 1
            self.outputs.publish_attributes(stream.entity, data)

    def _handle_trigger(self, event: Any) -> None:
        watch = self.items.find(ItemType.TRIGGER, event.id)
        self.outputs.publish_trigger(event.ID, event.id, watch.plan.name if isinstance(watch, Trigger) else "")

    def _handle_spied(self, event: sim.Spied) -> None:
        if event.type == ItemType.SPY and event.id == self._probe_id:
            return  # from the probe
        if event.type != ItemType.ENTITY:
            self.outputs.publish_item(event.is_added, event.type, event.id)
            if not event.is_added:
                self.forget(event.type, event.id)
            return
        if self._entities is not None:
            if not event.is_added:
                self._entities.discard(event.id)
            elif len(self._entities) < MAX_ENTITIES:
                self._entities.add(event.id)
        self._note_entity(event.is_added, event.id)

    def _handle_completed(self, _: sim.Completed) -> None:
        self.outputs.publish_completed()
        self.runs.completed()

    # Time.

    @property
    def due_s(self) -> float:
        """When `tick` is due."""
        due_s = min(self.requests.due_s, self.streams.due_s, self._poll_due_s, self.runs.due_s, self._rates_due_s)
        return min(due_s, self.probe.due_s) if self.probe else due_s

    def tick(self, now_s: float) -> None:
        """Do what is due. Raises LinkTimeoutError."""
        self.requests.check(now_s)
        self.streams.check(now_s)
        if self.probe and now_s >= self.probe.due_s:
            self.probe.fail("The simulator does not answer SPY.")
            self.close_probe()
        self.runs.tick(now_s)
        if now_s >= self._rates_due_s:
            self._report_rates(now_s)
        if now_s >= self._poll_due_s:
            self._poll_due_s = math.inf
            self.requests.ask(sim.ListEntities(), self._take_poll)

    def _report_rates(self, now_s: float) -> None:
        period_s = now_s - self._rates_due_s + RATES_PERIOD_S
        self._rates_due_s = now_s + RATES_PERIOD_S
        streams = [item for item in self.items if item.id is not None and item.kind in STREAM_TYPES]
        rates = [f"{stream.name} {stream.take_message_count() / period_s:.1f}" for stream in streams]
        self._node.statistics.facts["messages per second"] = ", ".join(rates[:MAX_RATES])

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for an answer, for the end of a run or for the vehicle's heading."""
        return not (self.outstanding or self.runs.are_awaited or self._waiting_for_heading)

    @property
    def outstanding(self) -> int:
        return self.requests.outstanding + (self.streams.outstanding if self.streams is not self.requests else 0)

    def end(self, reason: str) -> None:
        """Fail everything that is pending."""
        self._waiting_for_heading = []  # nothing can be sent any more
        self.close_probe()
        self.runs.fail(reason)
        self.requests.fail(reason)
        self.streams.fail(reason)
