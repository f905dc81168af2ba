# SPDX-License-Identifier: Apache-2.0
"""Service tasks about the world, its entities, triggers and objects. See tasks.py."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from drone_bridge import srv
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.desired_items import EntityStream, ExtendedStream, Trigger
from drone_bridge.simulator.bridge.outputs import UNKNOWN_HEADING
from drone_bridge.simulator.bridge.session import SimulatorSession
from drone_bridge.simulator.bridge.tasks import (
    NO_ANSWER,
    TASK_ERRORS,
    AwaitHeading,
    AwaitSteps,
    RefusedError,
    Result,
    Task,
)
from drone_bridge.simulator.codec import Attribute, ItemType
from drone_bridge.simulator.topics import requests as translate
from drone_bridge.simulator.topics.translation import STREAMED

GRAVITY: Final = "gravity"  # has to be given as the name to remove it
_GRAVITY_ID: Final = 0  # among objects
_NO_ITEM: Final = 0xFFFFFFFF  # the last ID that there could be

MakeTask = Callable[[SimulatorSession, Any], Task]


def ask(make: Callable[[Any], sim.Request]) -> MakeTask:
    """Return a factory of tasks with one request; the value is the answer."""

    def task(session: SimulatorSession, request: Any) -> Task:
        return (yield make(request))

    return task


def set_all(requests: Iterable[sim.Request]) -> Task:
    """Send several changes."""
    changes = list(requests)
    if not changes:
        raise ValueError("The request sets nothing.")
    yield changes


# Running.


def run(session: SimulatorSession, request: srv.Run.Request) -> Task:
    """Unpause, and optionally wait for the steps."""
    if request.wait and not request.steps:
        raise ValueError("An endless run can't be waited for: set steps, or wait to false.")
    yield AwaitHeading()
    mark = session.runs.mark()
    yield sim.Run(request.steps)
    if request.wait:
        configured = session.handshake.configured
        is_silent = not session.sees_steps and configured and configured.frequency > 0.0
        yield AwaitSteps(mark, request.steps / configured.frequency if configured and is_silent else 0.0)


def pause(session: SimulatorSession, request: srv.SimulatorRequest.Request) -> Task:
    """Pause, and fail those that wait for steps."""
    yield sim.Pause()
    session.runs.fail("The simulation was paused before the steps were done.")


# Items.


def remove(session: SimulatorSession, request: srv.RemoveItem.Request) -> Task:
    """Remove an item, which may be a desired one."""
    if request.type == ItemType.OBJECT and request.id == _GRAVITY_ID and request.name != GRAVITY:
        raise ValueError(f"Object {_GRAVITY_ID} is gravity: it is removed only if the request's name is {GRAVITY!r}.")
    yield sim.Remove(request.type, request.id)
    session.forget(request.type, request.id, is_ours=True)


def list_entities(session: SimulatorSession, request: srv.ListEntities.Request) -> Task:
    """List entities; the value is their IDs and names."""
    listed = yield sim.ListEntities()
    return listed.ids, [session.outputs.names.get(entity, "") for entity in listed.ids]


# Entities.


def spawn(session: SimulatorSession, request: srv.Spawn.Request) -> Task:
    """Add an entity, and publish its states; the value is its ID."""
    outputs = session.outputs
    add, body_to_model = translate.add_entity(request, outputs.axes)
    entity = (yield add).id
    if not body_to_model.is_identity:
        outputs.body_to_model[entity] = body_to_model
    if request.name or request.stream:
        outputs.name_entity(entity, request.name or f"entity_{entity}")
    session.reconciler.request_all(entity)  # what parameters, or others before it was there, desire of it
    if request.stream and not _stream_of(session, entity):
        try:
            yield from _publish(session, entity, session.stream_period)
        except TASK_ERRORS as error:
            return Result(True, f"It was added, but is not published: {error}", value=entity)
    return entity


def stream_entity(session: SimulatorSession, request: srv.StreamEntity.Request) -> Task:
    """Publish the states of an entity; the value is the stream's ID."""
    outputs, entity = session.outputs, request.id
    was_named = entity in outputs.names
    outputs.name_entity(entity, request.name or f"entity_{entity}")
    try:
        added = yield from _publish(session, entity, request.period or session.stream_period)
    except TASK_ERRORS:
        if not was_named:
            outputs.forget_entity(entity)
        raise
    return added.id


def _publish(session: SimulatorSession, entity: int, period: int) -> Task:
    """Publish the states of a named entity."""
    if _stream_of(session, entity):
        raise ValueError(f"The states of entity {entity} are published already.")
    session.outputs.open_entity(entity)
    return (yield EntityStream(entity, period))


def _stream_of(session: SimulatorSession, entity: int) -> EntityStream | None:
    """Return the desired stream of an entity's states."""
    streams = (item for item in session.items if isinstance(item, EntityStream) and item.attributes == STREAMED)
    return next((stream for stream in streams if stream.entity == entity), None)


def stream_attributes(session: SimulatorSession, request: srv.StreamAttributes.Request) -> Task:
    """Publish extended attributes of an entity; the value is the stream's ID."""
    added = yield ExtendedStream(request.id, request.period or 1, tuple(request.keys))
    return added.id


def get_state(session: SimulatorSession, request: srv.GetState.Request) -> Task:
    """Get all attributes; the value is an EntityState and whether the entity is corporeal."""
    answers = yield [sim.GetEntity(request.id, attribute) for attribute in (*STREAMED, Attribute.CORPOREAL)]
    *values, corporeal = (got.value for got in answers)
    state = session.outputs.state(request.id, values), corporeal
    is_doubtful = request.id == session.vehicle and not session.outputs.is_body_to_model_known
    return Result(True, UNKNOWN_HEADING if is_doubtful else "", value=state)


def set_state(session: SimulatorSession, request: srv.SetState.Request) -> Task:
    """Set attributes; for a velocity in the entity's frame, get its orientation first."""
    orientation = None
    if request.set_velocity and not request.set_orientation:
        got = yield sim.GetEntity(request.id, Attribute.ORIENTATION)
        orientation = session.outputs.orientation(request.id, got.value)
    yield from set_all(translate.set_entity(request, orientation, session.outputs.axes))


# Triggers and objects.


def add_trigger(session: SimulatorSession, request: srv.AddTrigger.Request) -> Task:
    """Add a trigger; the value is its ID."""
    added = yield Trigger(translate.trigger_plan(request, session.outputs.axes))
    return added.id


def add_turbulence(session: SimulatorSession, request: srv.AddTurbulence.Request) -> Task:
    """Add turbulence; the value is the ID by which it can be removed."""
    data = translate.turbulence(request, session.outputs.axes).encode()
    return (yield from _add_object(session, sim.AddObject(sim.Turbulence.CLASS, data)))


def add_object(session: SimulatorSession, request: srv.AddObject.Request) -> Task:
    """Add an object; the value is the ID by which it can be removed."""
    return (yield from _add_object(session, sim.AddObject(request.class_name, bytes(request.data))))


def _add_object(session: SimulatorSession, add: sim.AddObject) -> Task:
    """The CUAUV server returns a count from 0, but removes by the IDs of forces, of which gravity is 0."""
    number = (yield add).id
    return number + 1 if (yield from is_cuauv_server(session)) else number


def is_cuauv_server(session: SimulatorSession) -> Task:
    """Find out whether this is the CUAUV server, which accepts the removal of unknown triggers."""
    if session.is_cuauv_server is None:
        try:
            yield sim.Remove(ItemType.TRIGGER, _NO_ITEM)
        except RefusedError as error:
            if error.code == NO_ANSWER:
                raise
            session.is_cuauv_server = False
        else:
            session.is_cuauv_server = True
    return session.is_cuauv_server
