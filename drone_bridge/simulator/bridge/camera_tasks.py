# SPDX-License-Identifier: Apache-2.0
"""Service tasks about cameras. See tasks.py."""

from dataclasses import replace
from typing import Final

from drone_bridge import srv
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.desired_items import Camera, CameraStream
from drone_bridge.simulator.bridge.session import SimulatorSession
from drone_bridge.simulator.bridge.tasks import NO_ANSWER, RefusedError, Task
from drone_bridge.simulator.bridge.world_tasks import is_cuauv_server, set_all
from drone_bridge.simulator.codec import ItemType
from drone_bridge.simulator.topics import requests as translate
from drone_bridge.simulator.topics.translation import BodyToModel

_NO_ENTITY: Final = 0xFFFFFFFF  # the last ID that there could be
# Codes of CSTREAM.
_NO_CAMERA: Final = 0
_OWN_ENTITY: Final = 2


def add_camera(session: SimulatorSession, request: srv.AddCamera.Request) -> Task:
    """Add a camera and streams of its targets; the value is its ID."""
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
    added = yield camera
    for target in plan.targets:
        session.items.add(CameraStream(camera, target, plan.period))
    return added.id


def set_camera(session: SimulatorSession, request: srv.SetCamera.Request) -> Task:
    """Set attributes of an existing camera; the CUAUV server crashes on CSET of an unknown one."""
    translate.check_camera(request)
    yield from _expect_camera(request.id)
    # That server takes a pose about the principal axes, though CADD takes it about the model.
    body_to_model = BodyToModel()
    if (request.set_position or request.set_orientation) and (yield from is_cuauv_server(session)):
        body_to_model = yield from _body_to_model_under(session, request.id)
    yield from set_all(translate.set_camera(request, session.outputs.axes, body_to_model))
    ours = session.items.find(ItemType.CAMERA, request.id)
    if isinstance(ours, Camera):
        ours.plan = translate.changed_camera(ours.plan, request)
        session.outputs.announce_camera(ours.plan)


def _expect_camera(camera: int) -> Task:
    """Request an impossible stream, whose error shows whether the camera exists. Raises RefusedError if not."""
    try:
        added = yield sim.StreamCamera(camera, 0, _NO_ENTITY)
    except RefusedError as error:
        if error.code in (NO_ANSWER, _NO_CAMERA):
            raise
    else:
        yield sim.Remove(added.type, added.id)


def _body_to_model_under(session: SimulatorSession, camera: int) -> Task:
    """Return the rotation from principal axes to model of the entity that a camera is on, identity if unknown.

    Raises ValueError when the camera is on the vehicle, and that is not known of the vehicle yet.
    """
    ours = session.items.find(ItemType.CAMERA, camera)
    if isinstance(ours, Camera):
        return session.outputs.known_body_to_model(ours.plan.entity)
    for entity in {session.vehicle, *session.outputs.body_to_model}:  # those that may be turned against their models
        try:
            added = yield sim.StreamCamera(camera, 0, entity)
        except RefusedError as error:
            if error.code == _OWN_ENTITY:  # no camera streams the entity that it is on
                return session.outputs.known_body_to_model(entity)
            if error.code == NO_ANSWER:
                raise
        else:
            yield sim.Remove(added.type, added.id)
    return BodyToModel()


def stream_camera(session: SimulatorSession, request: srv.StreamCamera.Request) -> Task:
    """Publish where an entity appears; the value is the stream's ID."""
    ours = session.items.find(ItemType.CAMERA, request.camera_id)
    camera = ours if isinstance(ours, Camera) else request.camera_id
    added = yield CameraStream(camera, request.target_id, request.period or 1)
    return added.id


def view_camera(session: SimulatorSession, request: srv.ViewCamera.Request) -> Task:
    """Return where an entity appears; the value is a CameraView."""
    got = yield sim.ViewCamera(request.camera_id, request.target_id)
    ours = session.items.find(ItemType.CAMERA, request.camera_id)
    name = ours.plan.name if isinstance(ours, Camera) else ""
    return session.outputs.view(got, (request.camera_id, name), request.target_id, 0)
