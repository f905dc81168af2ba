# SPDX-License-Identifier: Apache-2.0
"""ConnectedClient: a client's requests on one set of connections, from the first one on. Pure.

One procedure runs at a time, and waits for its answers. Steering, streams and timeouts continue meanwhile. The first
procedure requests the configuration, the vehicle's state and all desired items. Then, the first of these that is due:

| procedure | due |
|---|---|
| list the entities, and request missing items of new ones | every LIST_PERIOD_S |
| learn the heading | while the simulation counts as paused, see Heading |
| execute a caller's request | in order; a run once the heading is settled |
| unpause the simulation | with `run_on_connect`, once the heading is settled |

Real simulators disconnect on SPY. The list is also what notices that a simulator is silent.
"""

import contextlib
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from drone_bridge.motion.body_to_model import BodyToModel
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.session import Outcome
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import STREAMED, ItemType
from drone_bridge.simulator.session.client_parameters import SimulatorClientParameters
from drone_bridge.simulator.session.events import ConnectionStarted, DiagnosticValue, SimulatorEvent
from drone_bridge.simulator.session.exchange import (
    BAD_NUMBERS,
    MISSING_VEHICLE,
    NO_ANSWER,
    REFUSALS,
    Channel,
    EndedError,
    Exchange,
    Pending,
    Procedure,
)
from drone_bridge.simulator.session.heading import BODY_TO_MODEL_KEY, Heading, VehicleState, decode_rotation
from drone_bridge.simulator.session.item_requester import ItemRequester
from drone_bridge.simulator.session.simulation import MARK_BYTES, Simulation
from drone_bridge.simulator.session.streams import Streams

MAX_ENTITIES = 65536  # remembered, to detect added and removed ones
#: Between two lists of the entities.
LIST_PERIOD_S = 1.0
#: Maximum number of unanswered calls. More are refused.
MAX_CALLS = 100
_MAY_FOLLOW = "It may still execute the request."
_NOT_SENT = "The request was not sent."
_NO_EFFECT = "Commands have no effect until it is added again."

#: Extended attribute of the vehicle: a mark that identifies the simulation after a reconnect.
SIMULATION_KEY = "drone_bridge.world"


class Success(NamedTuple):
    """Result of a procedure, with a sentence."""

    result: Any
    sentence: str


class CallerRequest(NamedTuple):
    """Request of a caller."""

    request: Any
    """Receiver of the outcome."""
    work: Callable[..., Procedure[Any]]
    """Procedure that returns the result. Its first argument is the client. Raises REFUSALS."""
    arguments: tuple[Any, ...]
    runs: bool = False
    """Whether it runs the simulation, so that the heading is learned first."""


@dataclass(slots=True, eq=False)
class _ActiveProcedure:
    """A procedure in progress."""

    procedure: Procedure[None]
    call: CallerRequest | None = None
    awaited: Pending | float | None = None  # None: ready to continue
    allows_others: bool = False


class ConnectedClient:
    """Requests on newly opened connections."""

    def __init__(
        self, exchange: Exchange, simulation: Simulation, parameters: SimulatorClientParameters, feedback: Feedback
    ) -> None:
        """Start with open connections."""
        self.exchange, self.simulation, self.entities = exchange, simulation, simulation.entities
        self.heading = Heading(exchange, self.entities)
        self.requester = ItemRequester(exchange, simulation)
        self.streams = Streams(exchange, simulation, self.heading, feedback)
        #: Number of completed runs, and of pauses requested here.
        self.completed_runs = self.pauses = 0
        #: Whether the simulator has answered.
        self.is_proven = False
        #: Time of the next `turn`.
        self.due_s = exchange.now_s
        self._parameters = parameters
        self._runs_on_connect = parameters.run_on_connect
        self._known: set[int] = set()  # entities
        self._list_due_s = math.inf
        self._calls: deque[CallerRequest] = deque()
        self._running = [_ActiveProcedure(self._begin())]  # the last one may let others pass

    @property
    def vehicle(self) -> int:
        """The entity that commands move."""
        return self.entities.vehicle

    # Events. Each is followed by `turn`.

    def receive(self, channel: Channel, data: bytes) -> None:
        """Decode a chunk of a connection's data. Raises RemoteProtocolError after earlier messages."""
        exchange = self.exchange
        try:
            for event in channel.receive(data, exchange.now_s):
                if isinstance(event, Pending):
                    exchange.answered(event)
                elif not isinstance(event, sim.Completed):
                    self.streams.handle(event)
                elif channel is exchange.requests:  # it arrives on every connection
                    self.completed_runs += 1
                    self.streams.report(SimulatorEvent(event))
        finally:
            self.streams.flush()

    def ask(self, call: CallerRequest) -> None:
        """Queue a caller's request."""
        if len(self._calls) + len(self._running) >= MAX_CALLS:
            self._resolve(call, False, f"{MAX_CALLS} requests are pending, which is the limit.")
        else:
            self._calls.append(call)

    def end(self, reason: str) -> None:
        """End all procedures, and answer all callers."""
        self._abort(self._running, reason, reason)

    def fail_calls(self, reason: str) -> None:
        """Time out all callers. The bridge's own procedures continue to wait."""
        called = [running for running in self._running if running.call]
        self._abort(called, f"{reason} {_MAY_FOLLOW}", f"{reason} {_NOT_SENT}")

    def _abort(self, aborted: list[_ActiveProcedure], reason: str, unsent_reason: str) -> None:
        self._running = [running for running in self._running if running not in aborted]
        for running in aborted:
            with contextlib.suppress(EndedError):
                running.procedure.throw(EndedError(reason))  # undoes its unfinished work
            if running.call:
                self._resolve(running.call, False, reason)
        while self._calls:
            self._resolve(self._calls.popleft(), False, unsent_reason)

    def turn(self) -> None:
        """Send due messages and advance procedures. While an answer is overdue, send nothing."""
        time = self.simulation.time
        if clock_time := time.tick(self.exchange.now_s):
            self.exchange.publish(clock_time)
        self.due_s = time.due_s
        if self.exchange.is_overdue:
            return
        self._continue()
        heading_due_s = self.heading.update(self.streams.sees_steps)
        times = [running.awaited for running in self._running if isinstance(running.awaited, float)]
        self.due_s = min(time.due_s, *times, math.inf)
        if self._is_free:
            self.due_s = min(self.due_s, self._list_due_s, heading_due_s)

    # Procedures, one after another.

    def _continue(self) -> None:
        """Continue the current procedure, and start the next one, until one has to wait."""
        while True:
            for running in (before := tuple(self._running)):
                if isinstance(running.awaited, float):  # a time, or an event that may have just happened
                    running.awaited = None
                self._advance(running)
            if len(self._running) < len(before):
                continue  # another procedure may wait for its effect
            if not self._is_free or not (following := self._next()):
                return
            self._running.append(following)

    @property
    def _is_free(self) -> bool:
        """Whether another procedure can start."""
        return all(running.allows_others for running in self._running)

    def _advance(self, running: _ActiveProcedure) -> None:
        try:
            while running.awaited is None or (isinstance(running.awaited, Pending) and running.awaited.answer):
                running.awaited = next(running.procedure)
        except StopIteration:
            self._running.remove(running)

    def _next(self) -> _ActiveProcedure | None:
        """Return the next procedure that is due, if any."""
        now_s = self.exchange.now_s
        if now_s >= self._list_due_s:
            return _ActiveProcedure(self._list())
        learning_due_s = self.heading.update(self.streams.sees_steps)
        if now_s >= learning_due_s:
            return _ActiveProcedure(self.heading.measure())
        if self._calls and (self.heading.is_settled or not self._calls[0].runs):
            call = self._calls.popleft()
            return _ActiveProcedure(self._execute(call), call)
        if self._runs_on_connect and self.heading.is_settled:
            return _ActiveProcedure(self._run_on_connect())
        return None

    def _run_on_connect(self) -> Procedure[None]:
        """Unpause the simulation, which answers with an Error if it already runs."""
        self._runs_on_connect = False
        self.heading.note_run()
        yield from self.exchange.ask(sim.Run())

    # Calls.

    def _execute(self, call: CallerRequest) -> Procedure[None]:
        self.exchange.asked_s = call.request.asked_s
        try:
            result = yield from call.work(self, *call.arguments)
        except REFUSALS as error:
            self._resolve(call, False, str(error), getattr(error, "code", NO_ANSWER))
        else:
            done = result if isinstance(result, Success) else Success(result, "")
            self._resolve(call, True, done.sentence, done.result)

    def let_others_run(self) -> None:
        """Let other procedures run beside the one that has just started. For that procedure."""
        self._running[-1].allows_others = True

    def _resolve(self, call: CallerRequest, is_success: bool, sentence: str, result: Any = NO_ANSWER) -> None:
        if not is_success:
            self.exchange.note("refused_requests")
        self.exchange.out.append(Outcome(call.request, is_success, sentence, result))

    # Start of the connections.

    def _begin(self) -> Procedure[None]:
        """Send the first requests, and request all desired items."""
        exchange, requester = self.exchange, self.requester
        first = [
            sim.GetConfig(),
            sim.ListEntities(),
            sim.GetExtended(self.vehicle, SIMULATION_KEY),
            sim.GetExtended(self.vehicle, BODY_TO_MODEL_KEY),
            *(sim.GetEntity(self.vehicle, attribute) for attribute in STREAMED),
        ]
        configured, listed, mark, rotation, *state = yield from exchange.ask(*first)
        if isinstance(listed, sim.EntitiesListed):  # one that is added from now on is a new one
            self._known = set(listed.ids[:MAX_ENTITIES])
        self._apply_configuration(configured)
        is_new = self._recognize(mark)
        self._apply_vehicle_state(rotation, state, is_new=is_new)
        exchange.publish(ConnectionStarted(is_new))
        sent = requester.send_missing()
        has_vehicle = isinstance(state[0], sim.EntityGot)
        self.heading.is_settled = self.entities.is_heading_known or not has_vehicle
        # Once this is answered, so are all requests for streams.
        (answer,) = yield from exchange.wait_for(exchange.send(sim.Reassure(), channel=exchange.streams))
        self.is_proven = isinstance(answer, sim.Ok)
        self.heading.watched_since_s = exchange.now_s
        yield from requester.await_answers(sent)
        yield from requester.renew_camera_streams()
        self._list_due_s = exchange.now_s + LIST_PERIOD_S

    def _apply_configuration(self, answer: sim.Response) -> None:
        if not isinstance(answer, sim.Configured):
            return
        self.heading.frequency = answer.frequency
        fast = ", as fast as possible" if answer.non_real_time else ""
        text = f"{answer.frequency:g} steps per second, speed {answer.speed:g}{fast}"
        self.exchange.publish(DiagnosticValue("configuration", text))
        try:
            self.simulation.time.configure(answer)
        except ValueError as error:
            self.exchange.note(BAD_NUMBERS, str(error))

    def _recognize(self, answer: sim.Response) -> bool:
        """Return whether this is a different simulation from the last one."""
        found = answer.data if isinstance(answer, sim.ExtendedGot) and len(answer.data) == MARK_BYTES else None
        is_new = self.simulation.recognize(found)
        if found is None and self.simulation.mark:
            self.exchange.send(sim.SetExtended(self.vehicle, SIMULATION_KEY, self.simulation.mark))
        if is_new:
            self.exchange.publish(self.simulation.scene)
        return is_new

    def _apply_vehicle_state(self, rotation: sim.Response, state: list[sim.Response], *, is_new: bool) -> None:
        stored = None
        if isinstance(rotation, sim.ExtendedGot):
            try:
                stored = decode_rotation(rotation.data)
            except ValueError as error:
                self.exchange.note(BAD_NUMBERS, str(error))
        given, heading, simulation = self._parameters.body_to_model, self.heading, self.simulation
        known = BodyToModel(given) if any(given) else stored
        values = {got.attribute: got.value for got in state if isinstance(got, sim.EntityGot)}
        try:
            seen = VehicleState(self.exchange.now_s, [values[attribute] for attribute in STREAMED])
            before, first = simulation.seen, simulation.first
            # A simulator that others restart may run at once, too early for the rotation to be learned.
            is_at_start = before and first and seen.continues(first._replace(at_s=before.at_s))
            is_same = is_at_start or (before and seen.continues(before))
            kept = self.entities.body_to_model.get(self.vehicle) if is_same else None
            if first is None or (is_new and not is_same):
                simulation.first = seen
            heading.set_rotation(known or kept)
            if kept and not known:
                heading.store(kept)
            simulation.seen = seen
            attitude = self.entities.model_state(self.vehicle, seen.values)[3]
            heading.attitude = attitude if self.entities.is_heading_known else None
        except (KeyError, ValueError) as error:
            heading.set_rotation(known)
            reason = str(error) if isinstance(error, ValueError) else f"Entity {self.vehicle} does not exist."
            self.exchange.note(MISSING_VEHICLE, f"The orientation of the vehicle is unknown. {reason}")

    # Added and removed items.

    def _list(self) -> Procedure[None]:
        (answer,) = yield from self.exchange.ask(sim.ListEntities())
        self._list_due_s = self.exchange.now_s + LIST_PERIOD_S
        if not isinstance(answer, sim.EntitiesListed):
            return
        listed = set(answer.ids[:MAX_ENTITIES])
        for entity in sorted(self._known - listed):
            yield from self._forget(entity)
        for entity in sorted(listed - self._known):
            self._known.add(entity)
            self._report(entity, is_added=True)
            yield from self.requester.restore(entity)

    def _forget(self, entity: int) -> Procedure[None]:
        self._known.discard(entity)
        self._report(entity, is_added=False)
        if entity == self.vehicle:
            self.heading.attitude = None
            self.exchange.note(MISSING_VEHICLE, f"Entity {entity}, the vehicle, was removed. {_NO_EFFECT}")
        yield from self.requester.forget(ItemType.ENTITY, entity)

    def _report(self, entity: int, *, is_added: bool) -> None:
        spied = sim.Spied(is_added, ItemType.ENTITY, entity)
        self.streams.report(SimulatorEvent(spied, self.entities.names.get(entity, "")))

    def removed(self, kind: int, number: int) -> Procedure[None]:
        """Forget an item that was removed at our request."""
        if kind == ItemType.ENTITY:
            yield from self._forget(number)
        else:
            yield from self.requester.forget(kind, number, is_ours=True)
