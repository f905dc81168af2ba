# SPDX-License-Identifier: Apache-2.0
"""The services of simulator_bridge: each is a function that the link's thread calls, and that waits for its answers.

Calls follow one another. What refuses a call is raised as one of REFUSALS.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from rclpy.callback_groups import ReentrantCallbackGroup

from drone_bridge import srv
from drone_bridge.net.connector import LinkError
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.link_requests import LinkRequests, ServiceResult
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.client import NO_ANSWER, RefusedError
from drone_bridge.simulator.bridge.desired_items import Camera, CameraStream, EntityStream, Trigger
from drone_bridge.simulator.bridge.outputs import UNKNOWN_HEADING
from drone_bridge.simulator.bridge.session import REFUSALS, SimulatorSession
from drone_bridge.simulator.codec import Attribute, ItemType
from drone_bridge.simulator.topics import STREAMED, BodyToModel, attribute_message
from drone_bridge.simulator.topics import services as translate
from drone_bridge.simulator.topics.services import GRAVITY, GRAVITY_ID, SERVICES

#: How long an answer is waited for on the spot: a simulator on this machine takes a tenth of that.
PATIENCE_S = 0.003
_LAST_ID = 0xFFFFFFFF  # that there could be of an item, and is not
# Codes of CSTREAM.
_NO_CAMERA = 0
_OWN_ENTITY = 2


class Result(NamedTuple):
    """The outcome of a call."""

    success: bool
    message: str = ""
    code: int = NO_ANSWER  # of the simulator's Error
    fields: Mapping[str, Any] = MappingProxyType({})  # of the response


class AwaitSteps(NamedTuple):
    """What a function returns whose call ends with a run, for which the link's thread does not wait."""

    mark: int  # the runs that had been completed before it began
    expected_s: float  # how long the run may show no sign of life


#: What a response has beside its outcome, by field.
Fields = Mapping[str, Any]
#: Gets the session and the service's request; returns the fields of the response, a Result with them, or AwaitSteps.
Work = Callable[[SimulatorSession, Any], "Fields | Result | AwaitSteps | None"]


def ask(make: Callable[[Any], sim.Request], told: Callable[[Any], Fields] = lambda answer: {}) -> Work:
    """Return a function that sends one request; `told` makes the fields of its answer."""
    return lambda session, request: told(session.client.request(make(request)))


def set_all(session: SimulatorSession, requests: Iterable[sim.Request]) -> None:
    """Send several changes."""
    changes = list(requests)
    if not changes:
        raise ValueError("The request sets nothing.")
    session.client.request_all(changes)


# Running.


def run(session: SimulatorSession, request: srv.Run.Request) -> AwaitSteps | None:
    """Unpause, and optionally wait for the steps."""
    if request.wait and not request.steps:
        raise ValueError("An endless run can't be waited for: set steps, or wait to false.")
    session.settle_heading()
    mark = session.completions
    session.client.request(sim.Run(request.steps))
    if not request.wait:
        return None
    configured = session.configured
    is_silent = not session.sees_steps and configured and configured.frequency > 0.0
    return AwaitSteps(mark, request.steps / configured.frequency if configured and is_silent else 0.0)


def pause(session: SimulatorSession, request: srv.SimulatorRequest.Request) -> None:
    """Pause, and fail those that wait for steps."""
    session.client.request(sim.Pause())
    session.end_runs("The simulation was paused before the steps were done.")


# Items.


def remove(session: SimulatorSession, request: srv.RemoveItem.Request) -> None:
    """Remove an item, which may be a desired one."""
    if request.type == ItemType.OBJECT and request.id == GRAVITY_ID and request.name != GRAVITY:
        raise ValueError(f"Object {GRAVITY_ID} is gravity: it is removed only if the request's name is {GRAVITY!r}.")
    session.client.request(sim.Remove(request.type, request.id))
    session.forget(request.type, request.id, is_ours=True)


def list_entities(session: SimulatorSession, request: srv.ListEntities.Request) -> Fields:
    """List entities."""
    listed = session.client.request(sim.ListEntities())
    return {"ids": listed.ids, "names": [session.outputs.names.get(entity, "") for entity in listed.ids]}


# Entities.


def spawn(session: SimulatorSession, request: srv.Spawn.Request) -> Fields | Result:
    """Add an entity, and publish its states."""
    outputs = session.outputs
    add, body_to_model = translate.wire_add_entity(request, outputs.axes)
    entity = session.client.request(add).id
    with session.lock:
        if not body_to_model.is_identity:
            outputs.body_to_model[entity] = body_to_model
        if request.name or request.stream:
            outputs.name_entity(entity, request.name or f"entity_{entity}")
    try:
        session.restore(entity)  # what parameters, or others before it was there, desire of it
        if request.stream and not _stream_of(session, entity):
            _publish(session, entity, session.stream_period)
    except (*REFUSALS, LinkError) as error:  # which the next wait raises again if it is the link's
        return Result(True, f"It was added, but is not published: {error}", fields={"id": entity})
    return {"id": entity}


def stream_entity(session: SimulatorSession, request: srv.StreamEntity.Request) -> Fields:
    """Publish the states of an entity."""
    outputs, entity = session.outputs, request.id
    was_named = entity in outputs.names
    with session.lock:
        outputs.name_entity(entity, request.name or f"entity_{entity}")
    try:
        added = _publish(session, entity, request.period or session.stream_period)
    except REFUSALS:
        if not was_named:
            with session.lock:
                outputs.forget_entity(entity)
        raise
    return {"stream_id": added.id}


def _publish(session: SimulatorSession, entity: int, period: int) -> sim.Added:
    """Publish the states of a named entity."""
    if _stream_of(session, entity):
        raise ValueError(f"The states of entity {entity} are published already.")
    with session.lock:
        session.outputs.open_entity(entity)
    return session.add(EntityStream(entity, period))


def _stream_of(session: SimulatorSession, entity: int) -> EntityStream | None:
    """Return the desired stream of an entity's states."""
    streams = (item for item in session.items if isinstance(item, EntityStream) and item.attributes == STREAMED)
    return next((stream for stream in streams if stream.entity == entity), None)


def get_state(session: SimulatorSession, request: srv.GetState.Request) -> Result:
    """Get all attributes."""
    answers = session.client.request_all(
        [sim.GetEntity(request.id, attribute) for attribute in (*STREAMED, Attribute.CORPOREAL)]
    )
    *values, corporeal = (got.value for got in answers)
    told = translate.state_fields(session.outputs.state(request.id, values), corporeal)
    is_doubtful = request.id == session.vehicle and not session.outputs.is_body_to_model_known
    return Result(True, UNKNOWN_HEADING if is_doubtful else "", fields=told)


def set_state(session: SimulatorSession, request: srv.SetState.Request) -> None:
    """Set attributes; for a velocity in the entity's frame, get its orientation first."""
    orientation = None
    if request.set_velocity and not request.set_orientation:
        got = session.client.request(sim.GetEntity(request.id, Attribute.ORIENTATION))
        orientation = session.outputs.orientation(request.id, got.value)
    set_all(session, translate.wire_set_entity(request, orientation, session.outputs.axes))


# Triggers and turbulence.


def add_trigger(session: SimulatorSession, request: srv.AddTrigger.Request) -> Fields:
    """Add a trigger."""
    added = session.add(Trigger(translate.trigger_plan(request, session.outputs.axes)))
    return {"id": added.id}


def add_turbulence(session: SimulatorSession, request: srv.AddTurbulence.Request) -> Fields:
    """Add turbulence.

    Its ID is the one by which it is removed: the CUAUV server returns a count from 0, and its force 0 is gravity.
    """
    data = translate.wire_turbulence(request, session.outputs.axes).encode()
    number = session.client.request(sim.AddObject(sim.Turbulence.CLASS, data)).id
    return {"id": number + 1 if is_cuauv_server(session) else number}


def is_cuauv_server(session: SimulatorSession) -> bool:
    """Find out whether this is the CUAUV server, which accepts the removal of unknown triggers."""
    if session.is_cuauv_server is None:
        try:
            session.client.request(sim.Remove(ItemType.TRIGGER, _LAST_ID))
        except RefusedError as error:
            if error.code == NO_ANSWER:
                raise
            session.is_cuauv_server = False
        else:
            session.is_cuauv_server = True
    return session.is_cuauv_server


# Cameras.


def add_camera(session: SimulatorSession, request: srv.AddCamera.Request) -> Fields:
    """Add a camera and streams of its targets."""
    plan = translate.camera_plan(request)
    taken = session.outputs.entity_frames() | session.items.camera_frames()
    number = 0
    while not plan.name and f"camera_{number}" in taken:
        number += 1
    named = plan if plan.name else replace(plan, name=f"camera_{number}")
    if named.frame in taken:
        raise ValueError(f"There is a frame {named.frame!r} already, so no camera can be called {plan.name!r}.")
    session.items.check_room(1 + len(plan.targets))
    camera = Camera(named)
    added = session.add(camera)
    for target in plan.targets:
        with session.lock:
            session.items.add(CameraStream(camera, target, plan.period))
    session.ask_for_camera_streams()
    return {"id": added.id}


def set_camera(session: SimulatorSession, request: srv.SetCamera.Request) -> None:
    """Set attributes of an existing camera; the CUAUV server crashes on CSET of an unknown one."""
    translate.check_camera(request)
    _expect_camera(session, request.id)
    # That server takes a pose about the principal axes, though CADD takes it about the model.
    body_to_model = BodyToModel()
    if (request.set_position or request.set_orientation) and is_cuauv_server(session):
        body_to_model = _body_to_model_under(session, request.id)
    set_all(session, translate.wire_set_camera(request, session.outputs.axes, body_to_model))
    ours = session.items.find(ItemType.CAMERA, request.id)
    if isinstance(ours, Camera):
        ours.plan = translate.changed_camera(ours.plan, request)
        with session.lock:
            session.outputs.announce_camera(ours.plan)


def _expect_camera(session: SimulatorSession, camera: int) -> None:
    """Request an impossible stream, whose error shows whether the camera exists. Raises RefusedError if not."""
    try:
        added = session.client.request(sim.StreamCamera(camera, 0, _LAST_ID))
    except RefusedError as error:
        if error.code in (NO_ANSWER, _NO_CAMERA):
            raise
    else:
        session.client.request(sim.Remove(added.type, added.id))


def _body_to_model_under(session: SimulatorSession, camera: int) -> BodyToModel:
    """Return the rotation from principal axes to model of the entity that a camera is on, identity if unknown.

    Raises ValueError when the camera is on the vehicle, and that is not known of the vehicle yet.
    """
    ours = session.items.find(ItemType.CAMERA, camera)
    if isinstance(ours, Camera):
        return session.outputs.known_body_to_model(ours.plan.entity)
    for entity in {session.vehicle, *session.outputs.body_to_model}:  # those that may be turned against their models
        try:
            added = session.client.request(sim.StreamCamera(camera, 0, entity))
        except RefusedError as error:
            if error.code == _OWN_ENTITY:  # no camera streams the entity that it is on
                return session.outputs.known_body_to_model(entity)
            if error.code == NO_ANSWER:
                raise
        else:
            session.client.request(sim.Remove(added.type, added.id))
    return BodyToModel()


def stream_camera(session: SimulatorSession, request: srv.StreamCamera.Request) -> Fields:
    """Publish where an entity appears."""
    ours = session.items.find(ItemType.CAMERA, request.camera_id)
    camera = ours if isinstance(ours, Camera) else request.camera_id
    added = session.add(CameraStream(camera, request.target_id, request.period or 1))
    return {"stream_id": added.id}


# What is offered.


#: By service. What each responds with beside its outcome is made of the simulator's answer.
_WORK: dict[str, Work] = {
    # The world.
    "run": run,
    "pause": pause,
    "reassure": ask(lambda _: sim.Reassure()),
    "get_configuration": ask(
        lambda _: sim.GetConfig(),
        lambda got: {
            "frequency": got.frequency,
            "speed": got.speed,
            "non_real_time": got.non_real_time,
            "use_desired_thrusters": got.use_desired_thrusters,
        },
    ),
    "remove": remove,
    # Entities and their extended attributes.
    "list_entities": list_entities,
    "spawn": spawn,
    "get_entity_state": get_state,
    "set_entity_state": set_state,
    "stream_entity": stream_entity,
    "get_attribute": ask(
        lambda q: sim.GetExtended(q.id, q.key), lambda got: {"attribute": attribute_message(got.key, got.data)}
    ),
    "set_attribute": ask(translate.wire_set_attribute),
    # Cameras and triggers.
    "add_camera": add_camera,
    "set_camera": set_camera,
    "stream_camera": stream_camera,
    "add_trigger": add_trigger,
    "add_turbulence": add_turbulence,
}


# The node's side.


class Call(NamedTuple):
    """A service call for the link's thread."""

    work: Work
    request: Any  # of the service


def do(session: SimulatorSession, call: Call) -> "Result | AwaitSteps":
    """Do what is asked for, in the link's thread. Raises LinkError."""
    try:
        done = call.work(session, call.request)
    except REFUSALS as error:
        return Result(False, str(error), getattr(error, "code", NO_ANSWER))
    return done if isinstance(done, Result | AwaitSteps) else Result(True, fields=done or {})


class SimulatorServices:
    """Always available; without a connection to a simulator they return an error."""

    def __init__(self, node: LinkNode, wake: Callable[[], None]) -> None:
        """`wake` wakes the link's thread."""
        self._node = node
        self._wake = wake
        group = ReentrantCallbackGroup()  # as callbacks wait
        self.link_requests: LinkRequests[Call] = LinkRequests(node, "simulator")
        for name, kind in SERVICES.items():
            node.make_service(kind, name, self._server(name), group)

    def _server(self, name: str) -> Callable[[Any, Any], Any]:
        async def serve(request: Any, response: Any) -> Any:
            result = await self._run(name, Call(_WORK[name], request))
            response.success, response.message, response.code = result.success, result.message, result.code
            for field, value in result.fields.items():
                setattr(response, field, value)
            return response

        return serve

    async def _run(self, name: str, call: Call) -> Result:
        try:
            self._node.check_age(name)
            result = await self.link_requests.run(call, self._wake, PATIENCE_S)
        except ValueError as error:
            return Result(False, str(error))
        return Result(*result) if isinstance(result, ServiceResult) else result
