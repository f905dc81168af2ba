# SPDX-License-Identifier: Apache-2.0
"""Streams: converts the simulator's out-of-band messages to published events. Pure.

States received together are published together, separately for each step. A step starts with a message of the vehicle's
stream of every step, or with a second state of the same entity. Order is preserved.
"""

from typing import Any

from drone_bridge.session.feedback import Feedback
from drone_bridge.session.session import Note
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import STREAMED, ItemType
from drone_bridge.simulator.session.desired_items import (
    DesiredCameraStream,
    DesiredEntityStream,
    DesiredItem,
    DesiredTrigger,
)
from drone_bridge.simulator.session.events import SimulatorEvent, States
from drone_bridge.simulator.session.exchange import BAD_NUMBERS, STEPS, STREAM_MESSAGES, Exchange
from drone_bridge.simulator.session.heading import Heading, VehicleState
from drone_bridge.simulator.session.simulation import Simulation
from drone_bridge.simulator.units import measurement

_MESSAGE = Note(STREAM_MESSAGES)


class Streams:
    """Streams on one set of connections."""

    def __init__(self, exchange: Exchange, simulation: Simulation, heading: Heading, feedback: Feedback) -> None:
        self._exchange, self._entities, self._items = exchange, simulation.entities, simulation.items
        self._simulation, self._time, self._heading = simulation, simulation.time, heading
        self._feedback = feedback
        self._states: dict[int, tuple[Any, ...]] = {}  # of this step, not yet published

    def handle(self, event: sim.Response) -> None:
        """Collect a message. Call `flush` after the last received one."""
        if isinstance(event, sim.EntityData):
            self._take_state(event)
        elif isinstance(event, sim.CameraData):
            self._take_view(event)
        elif isinstance(event, sim.ExtendedData):
            self._count_unknown()
        else:
            trigger = self._items.find(ItemType.TRIGGER, getattr(event, "id", -1))
            self.report(SimulatorEvent(event, trigger.name if isinstance(trigger, DesiredTrigger) else ""))

    def report(self, reported: SimulatorEvent) -> None:
        """Publish an event of the simulator, after earlier states."""
        self.flush()
        self._exchange.publish(reported)

    def flush(self) -> None:
        """Publish the received states."""
        if self._states:
            self._exchange.publish(States(tuple(self._states.items())))
            self._states.clear()

    def sees_steps(self) -> bool:
        """Whether a stream reports every step."""
        return any(item.id is not None and self._counts_steps(item) for item in self._items)

    def _counts_steps(self, item: DesiredItem) -> bool:
        return isinstance(item, DesiredEntityStream) and item.entity == self._entities.vehicle and item.period == 1

    def _take_state(self, data: sim.EntityData) -> None:
        exchange, stream = self._exchange, self._items.find(ItemType.ENTITY_STREAM, data.id)
        if not isinstance(stream, DesiredEntityStream):
            self._count_unknown()  # just added, or just removed
            return
        exchange.out.append(_MESSAGE)
        if self._counts_steps(stream):
            exchange.note(STEPS)
            self.flush()
            self._heading.stepped_s = exchange.now_s
            exchange.publish(self._time.step(exchange.now_s))
        if data.attributes != STREAMED or stream.entity not in self._entities.open:
            return
        try:
            state = self._entities.model_state(stream.entity, data.values)
        except ValueError as error:
            exchange.note(BAD_NUMBERS, f"Entity {stream.entity}: {error}")
            return
        if stream.entity == self._entities.vehicle:
            self._simulation.seen = VehicleState(exchange.now_s, data.values)
            is_known = self._entities.is_heading_known
            self._heading.attitude = state[3] if is_known else None
            self._feedback.measured(measurement(state, is_attitude_known=is_known), exchange.now_s)
        if stream.entity in self._states:
            self.flush()
        self._states[stream.entity] = state

    def _take_view(self, data: sim.CameraData) -> None:
        stream = self._items.find(ItemType.CAMERA_STREAM, data.id)
        if not isinstance(stream, DesiredCameraStream):
            self._count_unknown()
            return
        self._exchange.out.append(_MESSAGE)
        camera = (stream.camera_id or 0, stream.camera_name, stream.target)
        self.report(SimulatorEvent(data, self._entities.names.get(stream.target, ""), camera))

    def _count_unknown(self) -> None:
        """Count a message of a stream that was not requested."""
        self._exchange.out.append(_MESSAGE)
        self._exchange.note("unknown_streams")
