# SPDX-License-Identifier: Apache-2.0
"""Requests of callers, each a Procedure of a client's client. Pure.

A refusal is raised as one of REFUSALS. All numbers are in the wire's units, about models instead of principal axes.
"""

from collections.abc import Callable, Iterable
from typing import Any

from drone_bridge.motion.body_to_model import BodyToModel
from drone_bridge.motion.wxyz import WxyzQuaternion
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import STREAMED, Attribute, CameraAttribute, ItemType
from drone_bridge.simulator.session.connected_client import ConnectedClient, Success
from drone_bridge.simulator.session.desired_items import (
    DesiredCamera,
    DesiredCameraStream,
    DesiredEntityStream,
    DesiredItem,
)
from drone_bridge.simulator.session.entities import NO_ROTATION, UNKNOWN_HEADING
from drone_bridge.simulator.session.exchange import REFUSALS, Procedure, SimulatorRefusedError

#: Code of the Error to a PAUSE while paused.
PAUSED_ALREADY = 0


def ask(client: ConnectedClient, request: sim.Request) -> Procedure[Any]:
    """Send one request, and return its answer."""
    return (yield from client.exchange.request(request))


# Running.


def run(client: ConnectedClient, steps: int, is_awaited: bool, timeout_s: float) -> Procedure[None]:
    """Unpause, and optionally wait for the steps, each within `timeout_s`. Other procedures run meanwhile."""
    completed, pauses = client.completed_runs, client.pauses
    client.heading.note_run()
    yield from client.exchange.request(sim.Run(steps))
    if not is_awaited:
        return
    client.let_others_run()
    began_s = client.exchange.now_s
    while client.completed_runs == completed:  # COMPLETED may precede the answer to RUN
        if client.pauses != pauses:
            raise ValueError("The simulation was paused before all steps were done.")
        due_s = max(began_s, client.heading.stepped_s, client.exchange.resumed_s) + timeout_s
        if client.exchange.now_s >= due_s:
            raise ValueError(f"The simulation has made no step for {timeout_s:g} s.")
        yield due_s


def pause(client: ConnectedClient) -> Procedure[None]:
    """Pause, and fail callers that wait for steps."""
    try:
        yield from client.exchange.request(sim.Pause())
    except SimulatorRefusedError as error:
        if error.code == PAUSED_ALREADY:
            client.heading.note_pause()
        raise
    client.heading.note_pause()
    client.pauses += 1


# Items.


def remove(client: ConnectedClient, request: sim.Remove) -> Procedure[None]:
    """Remove an item, which may be a desired one."""
    yield from client.exchange.request(request)
    yield from client.removed(request.type, request.id)


def add(client: ConnectedClient, item: DesiredItem) -> Procedure[int]:
    """Add a desired item. Return its ID."""
    return (yield from client.requester.add(item)).id


def list_entities(client: ConnectedClient) -> Procedure[tuple[tuple[int, ...], list[str]]]:
    """Return the IDs and names of all entities."""
    listed = yield from client.exchange.request(sim.ListEntities())
    return listed.ids, [client.entities.names.get(entity, "") for entity in listed.ids]


# Entities.


def spawn(
    client: ConnectedClient, request: sim.AddEntity, name: str, is_streamed: bool, period: int
) -> Procedure[int | Success]:
    """Add an entity, and optionally publish its states. Return its ID."""
    entity = (yield from client.exchange.request(request)).id
    body_to_model = BodyToModel(request.body_to_model)
    if not body_to_model.is_identity:
        client.entities.body_to_model[entity] = body_to_model
    if name or is_streamed:
        client.simulation.name(entity, name)
    try:
        yield from client.requester.restore(entity)  # from parameters, or requested before it existed
        if is_streamed and not _stream_of(client, entity):
            yield from _publish(client, entity, period)
    except REFUSALS as error:
        return Success(entity, f"The entity was added, but is not published: {error}")
    return int(entity)


def stream_entity(client: ConnectedClient, entity: int, name: str, period: int) -> Procedure[int]:
    """Publish the states of an entity. Return the stream's ID."""
    was_named = entity in client.entities.names
    client.simulation.name(entity, name)
    try:
        return (yield from _publish(client, entity, period))
    except Exception:
        if not was_named:
            client.entities.forget(entity)
            client.exchange.publish(client.simulation.scene)
        raise


def _publish(client: ConnectedClient, entity: int, period: int) -> Procedure[int]:
    """Publish the states of a named entity."""
    if _stream_of(client, entity):
        raise ValueError(f"The states of entity {entity} are already published.")
    client.entities.publish(entity)
    client.exchange.publish(client.simulation.scene)
    return (yield from client.requester.add(DesiredEntityStream(entity, period))).id


def _stream_of(client: ConnectedClient, entity: int) -> DesiredEntityStream | None:
    """Return the desired stream of an entity's states."""
    streams = (
        item for item in client.requester.items if isinstance(item, DesiredEntityStream) and item.attributes == STREAMED
    )
    return next((stream for stream in streams if stream.entity == entity), None)


def get_state(client: ConnectedClient, entity: int) -> Procedure[Success]:
    """Return the values of STREAMED, with q of the model, and CORPOREAL."""
    attributes = (*STREAMED, Attribute.CORPOREAL)
    answers = yield from client.exchange.request_all(*(sim.GetEntity(entity, attribute) for attribute in attributes))
    *values, corporeal = (got.value for got in answers)
    state = client.entities.model_state(entity, values)
    is_doubtful = entity == client.vehicle and not client.entities.is_heading_known
    return Success((state, corporeal), UNKNOWN_HEADING if is_doubtful else "")


def set_state(
    client: ConnectedClient,
    entity: int,
    changes: Callable[[WxyzQuaternion | None], Iterable[sim.SetEntity]],
    needs_orientation: bool,
) -> Procedure[None]:
    """Set attributes. `changes` returns the requests, given the model's orientation if needed."""
    orientation = None
    if needs_orientation:
        got = yield from client.exchange.request(sim.GetEntity(entity, Attribute.ORIENTATION))
        orientation = client.entities.known_rotation(entity).model(got.value)
    yield from client.exchange.request_all(*_some(changes(orientation)))


def _some(changes: Iterable[Any]) -> list[Any]:
    """Return changes as a list. Raises ValueError if there are none."""
    if not (made := list(changes)):
        raise ValueError("The request sets nothing.")
    return made


# Turbulence.


def add_object(client: ConnectedClient, request: sim.AddObject) -> Procedure[int]:
    """Add an object.

    The returned ID is that for its removal. The CUAUV server returns a count from 0, and its force 0 is gravity.
    """
    number: int = (yield from client.exchange.request(request)).id
    return number + 1 if (yield from client.exchange.is_cuauv_server()) else number


# Cameras.


def add_camera(
    client: ConnectedClient, name: str, request: sim.AddCamera, targets: tuple[int, ...], period: int
) -> Procedure[int]:
    """Add a camera and streams of its targets. Return its ID."""
    items = client.requester.items
    items.check_room(1 + len(targets))
    camera = DesiredCamera(client.simulation.camera_name(name), request)
    added = yield from client.requester.add(camera)
    for target in targets:
        items.add(DesiredCameraStream(camera, target, period))
    yield from client.requester.renew_camera_streams()
    return added.id


def set_camera(client: ConnectedClient, camera: int, changes: Iterable[sim.SetCamera]) -> Procedure[None]:
    """Set attributes of a camera that was added here: the CUAUV server crashes on CSET of a nonexistent one."""
    made = _some(changes)
    ours = client.requester.items.find(ItemType.CAMERA, camera)
    if not isinstance(ours, DesiredCamera):
        raise ValueError(f"Camera {camera} was not added by this bridge, which can change only its own cameras.")
    # That server interprets the pose about the principal axes, although that of CADD is about the model.
    body_to_model = NO_ROTATION
    is_moved = any(change.attribute in (CameraAttribute.POSITION, CameraAttribute.ORIENTATION) for change in made)
    if is_moved and (yield from client.exchange.is_cuauv_server()):
        body_to_model = client.entities.known_rotation(ours.request.entity)
    yield from client.exchange.request_all(*(in_body(change, body_to_model) for change in made))
    for change in made:
        ours.change(change)
    client.requester.place(ours)


def in_body(change: sim.SetCamera, body_to_model: BodyToModel) -> sim.SetCamera:
    """Return a change converted from the model to the principal axes."""
    value: Any = change.value
    if change.attribute == CameraAttribute.ORIENTATION:
        value = body_to_model.rotation_in_body(value)
    elif change.attribute == CameraAttribute.POSITION:
        value = body_to_model.vector_in_body(value)
    return sim.SetCamera(change.id, change.attribute, value)


def stream_camera(client: ConnectedClient, camera: int, target: int, period: int) -> Procedure[int]:
    """Publish an entity's position in the image. Return the stream's ID."""
    ours = client.requester.items.find(ItemType.CAMERA, camera)
    stream = DesiredCameraStream(ours if isinstance(ours, DesiredCamera) else camera, target, period)
    return (yield from client.requester.add(stream)).id
