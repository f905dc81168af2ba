# SPDX-License-Identifier: Apache-2.0
"""What the services of simulator_bridge have the link's thread do. Every task tells its result once.

Tasks raise LocalProtocolError and ValueError for what can't even be asked.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from drone_bridge.bridges.link_requests import ServiceResult
from drone_bridge.bridges.simulator.link import Channel, Outcome
from drone_bridge.bridges.simulator.session import SimulatorSession
from drone_bridge.bridges.simulator.wishes import EntityStream, ExtendedStream, Watch, Wish
from drone_bridge.protocols import simulator as sim
from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.protocols.simulator import Attribute, ItemType
from drone_bridge.srv import Run, SetState, Spawn
from drone_bridge.translate import simulator_requests as translate
from drone_bridge.translate.frames import Quaternion
from drone_bridge.translate.simulator import STREAMED
from drone_bridge.translate.simulator_errors import explanation
from drone_bridge.translate.simulator_plans import TriggerPlan


class Result(NamedTuple):
    """What a service answers."""

    success: bool
    message: str
    code: int = -1  # of the simulator's Error
    value: Any = None  # what was asked for


OnResult = Callable[[Result], None]
Task = Callable[[SimulatorSession, OnResult], None]

_GRAVITY: Final = 0  # among objects
_LIKE_GRAVITY: Final = (
    "This simulator numbers what it adds apart from what it can remove, as the CUAUV server does: to remove object 0 "
    "would remove gravity. Every object that was added is removed under its ID plus 1."
)
_OWN_ITEMS: Final = (
    ItemType.TRIGGER,
    ItemType.ENTITY_STREAM,
    ItemType.CAMERA_STREAM,
    ItemType.EXTENDED_STREAM,
    ItemType.SPY,
)


def result_of(request: sim.Request, outcome: Outcome) -> Result:
    """Return what has come of a request."""
    if isinstance(outcome, ServiceResult):
        return Result(False, outcome.message)
    if isinstance(outcome, sim.Error):
        return Result(False, explanation(request, outcome), outcome.code)
    return Result(True, "", value=outcome)


def ask(request: sim.Request) -> Task:
    """Ask one question; the result's value is the response."""

    def task(session: SimulatorSession, on_result: OnResult) -> None:
        session.requests.ask(request, lambda outcome: on_result(result_of(request, outcome)))

    return task


def ask_all(channel: Channel, questions: Iterable[sim.Request], on_result: OnResult) -> None:
    """Ask several questions; the value is all responses, or the result is the first one that has failed."""
    asked: Sequence[sim.Request] = list(questions)
    results: list[Result] = []

    def take(request: sim.Request, outcome: Outcome) -> None:
        results.append(result_of(request, outcome))
        if len(results) == len(asked):
            failed = [result for result in results if not result.success]
            on_result(failed[0] if failed else Result(True, "", value=[result.value for result in results]))

    if not asked:
        on_result(Result(False, "Nothing is to be set."))
    for question in asked:
        channel.ask(question, partial(take, question))


# Running.


def run(request: Run.Request) -> Task:
    """Unpause, and perhaps wait for the steps."""
    if request.wait and not request.steps:
        raise ValueError("To run for ever ends never: it can't be waited for.")

    def task(session: SimulatorSession, on_result: OnResult) -> None:
        question = sim.Run(request.steps)
        mark = session.runs.mark()

        def take(outcome: Outcome) -> None:
            result = result_of(question, outcome)
            if not (result.success and request.wait):
                on_result(result)
                return
            is_seen = any(wish.id is not None and session.counts_steps(wish) for wish in session.wishes)
            frequency = configured.frequency if (configured := session.introduction.configured) else 0.0
            expected_s = request.steps / frequency if frequency > 0 and not is_seen else 0.0
            session.runs.wait(mark, expected_s, lambda reason: on_result(Result(not reason, reason)))

        session.requests.ask(question, take)

    return task


def pause(session: SimulatorSession, on_result: OnResult) -> None:
    """Pause, and tell those who wait for steps."""
    question = sim.Pause()

    def take(outcome: Outcome) -> None:
        result = result_of(question, outcome)
        if result.success:
            session.runs.fail("The simulation was paused before the steps were done.")
        on_result(result)

    session.requests.ask(question, take)


# Items.


def remove(kind: int, number: int) -> Task:
    """Remove an item, and wish for it no more."""
    question = sim.Remove(kind, number)

    def task(session: SimulatorSession, on_result: OnResult) -> None:
        def take(outcome: Outcome) -> None:
            if isinstance(outcome, sim.Ok):
                session.forget(kind, number, is_ours=True)
            on_result(result_of(question, outcome))

        (session.streams if kind in _OWN_ITEMS else session.requests).ask(question, take)

    return task


def wish_for(session: SimulatorSession, wish: Wish, on_result: OnResult) -> None:
    """Ask for a new wish; the value is its ID."""
    question = wish.request(session.outputs.axes)
    assert question

    def take(outcome: Outcome) -> None:
        result = result_of(question, outcome)
        on_result(result._replace(value=wish.id) if result.success else result)

    session.watching.add(wish, take)


def list_entities(session: SimulatorSession, on_result: OnResult) -> None:
    """Ask which entities there are; the value is their IDs and names."""
    question = sim.ListEntities()

    def take(outcome: Outcome) -> None:
        result = result_of(question, outcome)
        if isinstance(outcome, sim.EntitiesListed):
            names = session.outputs.names
            result = result._replace(value=(outcome.ids, [names.get(entity, "") for entity in outcome.ids]))
        on_result(result)

    session.requests.ask(question, take)


# Entities.


def spawn(request: Spawn.Request) -> Task:
    """Add an entity, and publish its states; the value is its ID."""

    def task(session: SimulatorSession, on_result: OnResult) -> None:
        outputs = session.outputs
        question, body_to_model = translate.add_entity(request, outputs.axes)

        def take(outcome: Outcome) -> None:
            result = result_of(question, outcome)
            if isinstance(outcome, sim.Added):
                result = result._replace(value=outcome.id)
                if not body_to_model.is_identity:
                    outputs.body_to_model[outcome.id] = body_to_model
                if request.name or request.stream:
                    outputs.name_entity(outcome.id, request.name or f"entity_{outcome.id}")
                session.watching.ask_all(outcome.id)  # by the parameters, or by somebody before it was there
                if request.stream and not _stream_of(session, outcome.id):
                    try:
                        stream_entity(session, outcome.id, 0, lambda _: None)
                    except (LocalProtocolError, ValueError) as error:
                        result = result._replace(message=f"It is there, but not published: {error}")
            on_result(result)

        session.requests.ask(question, take)

    return task


def stream_entity(session: SimulatorSession, entity: int, period: int, on_result: OnResult) -> None:
    """Publish the states of an entity that has a name; the value is the ID of the stream."""
    if _stream_of(session, entity):
        raise ValueError(f"The states of entity {entity} are published already.")
    session.outputs.open_entity(entity)
    wish_for(session, EntityStream(entity, period or session.stream_period), on_result)


def _stream_of(session: SimulatorSession, entity: int) -> EntityStream | None:
    """Return the stream of an entity's states that is wished for."""
    streams = (wish for wish in session.wishes if isinstance(wish, EntityStream) and wish.attributes == STREAMED)
    return next((stream for stream in streams if stream.entity == entity), None)


def stream_named_entity(entity: int, name: str, period: int) -> Task:
    """Publish the states of an entity; the value is the ID of the stream."""

    def task(session: SimulatorSession, on_result: OnResult) -> None:
        was_named = entity in session.outputs.names
        session.outputs.name_entity(entity, name or f"entity_{entity}")

        def take(result: Result) -> None:
            if not result.success and not was_named:
                session.outputs.forget_entity(entity)
            on_result(result)

        try:
            stream_entity(session, entity, period, take)
        except (LocalProtocolError, ValueError):
            if not was_named:
                session.outputs.forget_entity(entity)
            raise

    return task


def stream_attributes(entity: int, period: int, keys: Sequence[str]) -> Task:
    """Publish extended attributes of an entity; the value is the ID of the stream."""
    return lambda session, on_result: wish_for(session, ExtendedStream(entity, period or 1, tuple(keys)), on_result)


def get_state(entity: int) -> Task:
    """Ask for all attributes; the value is an EntityState and whether it is corporeal."""

    def task(session: SimulatorSession, on_result: OnResult) -> None:
        def take(result: Result) -> None:
            if result.success:
                *values, corporeal = (got.value for got in result.value)
                try:
                    result = result._replace(value=(session.outputs.state(entity, values), corporeal))
                except ValueError as error:
                    result = Result(False, str(error))
            on_result(result)

        questions = [sim.GetEntity(entity, attribute) for attribute in (*STREAMED, Attribute.CORPOREAL)]
        ask_all(session.requests, questions, take)

    return task


def set_state(request: SetState.Request) -> Task:
    """Set attributes; a velocity in the entity's frame takes its orientation first."""

    def task(session: SimulatorSession, on_result: OnResult) -> None:
        axes = session.outputs.axes

        def change(orientation: Quaternion | None) -> None:
            ask_all(session.requests, translate.set_entity(request, orientation, axes), on_result)

        if not request.set_velocity or request.set_orientation:
            change(None)
            return
        question = sim.GetEntity(request.id, Attribute.ORIENTATION)

        def take(outcome: Outcome) -> None:
            if not isinstance(outcome, sim.EntityGot):
                on_result(result_of(question, outcome))
                return
            try:
                change(session.outputs.orientation(request.id, outcome.value))
            except (ValueError, LocalProtocolError) as error:
                on_result(Result(False, str(error)))

        session.requests.ask(question, take)

    return task


# Triggers and objects.


def add_trigger(plan: TriggerPlan) -> Task:
    """Add a trigger; the value is its ID."""
    return lambda session, on_result: wish_for(session, Watch(plan), on_result)


def add_object(question: sim.AddObject) -> Task:
    """Add an object; the value is the response."""

    def task(session: SimulatorSession, on_result: OnResult) -> None:
        def take(outcome: Outcome) -> None:
            result = result_of(question, outcome)
            if isinstance(outcome, sim.Added) and outcome.id == _GRAVITY:
                result = result._replace(message=_LIKE_GRAVITY)
            on_result(result)

        session.requests.ask(question, take)

    return task
