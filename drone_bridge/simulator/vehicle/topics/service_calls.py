# SPDX-License-Identifier: Apache-2.0
"""Conversion of the server's requests to calls of simulator_bridge's services, and of responses to answers.

A row of the table has the service, the function from the wire's request to the service's, and the function from the
service's response to the wire's answer. They convert between the wire's and ROS's axes. A quaternion on the wire may
have any length except 0.
"""

from collections.abc import Callable
from textwrap import shorten
from typing import Any, NamedTuple

from geometry_msgs.msg import Vector3

from drone_bridge import srv
from drone_bridge.motion.body_to_model import BodyToModel
from drone_bridge.motion.quaternions import Quaternion, inverse, rotated
from drone_bridge.motion.wxyz import WxyzQuaternion, unit
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator import units
from drone_bridge.simulator.codec import Attribute, CameraAttribute, ItemType
from drone_bridge.simulator.topics import EntityState, attribute_message, wire_state
from drone_bridge.simulator.topics.services import (
    REMOVAL_NAMES,
    point_message,
    pose_message,
    quaternion_message,
    vector3_message,
)

#: Limit of an error's text, bytes: visualizers read 90 bytes of an answer, and treat the rest as the next one.
LONGEST_TEXT = 77


# Requests of services.


def remove(request: sim.Remove) -> srv.RemoveItem.Request:
    """Convert REMOVE of any item."""
    name = REMOVAL_NAMES.get((request.type, request.id), "")
    return srv.RemoveItem.Request(type=request.type, id=request.id, name=name)


def spawn(request: sim.AddEntity) -> srv.Spawn.Request:
    """Convert EADD, without a name: one given by an earlier server could be that of another entity."""
    btom = BodyToModel(unit(request.body_to_model))
    call = srv.Spawn.Request(
        mass=request.mass,
        radius=request.radius,
        inertia=vector3_message(request.inertia),
        body_to_model=quaternion_message(units.rotation(btom.rotation)),
        corporeal=request.corporeal,
        attributes=[attribute_message(attribute.key, attribute.data) for attribute in request.attributes],
        stream=True,
    )
    for attribute in call.attributes:
        attribute.text = ""  # a call has text or data, and data are not restricted
    call.pose = pose_message(units.world(*request.position), units.orientation(btom.model(unit(request.orientation))))
    return call


def set_state(request: sim.SetEntity, orientation: Quaternion | None = None) -> srv.SetState.Request:
    """Convert ESET. `orientation` is the entity's current one, for v. Raises ValueError if it is needed and unknown."""
    call, value = srv.SetState.Request(id=request.id), request.value
    if request.attribute == Attribute.CORPOREAL:
        call.set_corporeal, call.corporeal = True, bool(value)
        return call
    assert isinstance(value, tuple)
    if request.attribute == Attribute.ORIENTATION:
        call.set_orientation = True
        call.pose.orientation = quaternion_message(units.orientation(unit(value)))
        return call
    x, y, z = value
    if request.attribute == Attribute.POSITION:
        call.set_position, call.pose.position = True, point_message(units.world(x, y, z))
    elif request.attribute == Attribute.VELOCITY:
        if orientation is None:
            raise ValueError("The entity's orientation is unknown.")
        call.set_velocity = True
        call.twist.linear = vector3_message(rotated(inverse(orientation), *units.world(x, y, z)))
    elif request.attribute == Attribute.ACCELERATION:
        call.set_acceleration, call.acceleration = True, vector3_message(units.world(x, y, z))
    else:
        call.set_angular_velocity, call.twist.angular = True, vector3_message(units.body(x, y, z))
    return call


def state_from_response(response: srv.GetState.Response) -> EntityState:
    """Return the state in a response of get_entity_state."""
    pose, twist, a = response.pose, response.twist, response.acceleration
    p, q = pose.position, pose.orientation
    orientation = Quaternion(q.x, q.y, q.z, q.w)
    velocity = rotated(orientation, twist.linear.x, twist.linear.y, twist.linear.z)
    rates = (twist.angular.x, twist.angular.y, twist.angular.z)
    return EntityState((p.x, p.y, p.z), velocity, (a.x, a.y, a.z), orientation, rates)


def set_attribute(request: sim.SetExtended) -> srv.SetAttribute.Request:
    """Convert EXSET."""
    attribute = attribute_message(request.key, request.data)
    attribute.text = ""
    return srv.SetAttribute.Request(id=request.id, attribute=attribute)


def add_camera(request: sim.AddCamera) -> srv.AddCamera.Request:
    """Convert CADD. The bridge chooses an unused name."""
    return srv.AddCamera.Request(
        entity_id=request.entity,
        pose=pose_message(units.body(*request.position), units.rotation(unit(request.orientation))),
        focal_length=request.focal_length,
        enabled=request.enabled,
    )


def set_camera(request: sim.SetCamera) -> srv.SetCamera.Request:
    """Convert CSET."""
    call, value = srv.SetCamera.Request(id=request.id), request.value
    if request.attribute == CameraAttribute.FOCAL_LENGTH:
        call.set_focal_length, call.focal_length = True, float(value)  # type: ignore[arg-type] # as the wire has it
    elif request.attribute == CameraAttribute.ENABLED:
        call.set_enabled, call.enabled = True, bool(value)
    else:
        assert isinstance(value, tuple)
        if request.attribute == CameraAttribute.ORIENTATION:
            call.set_orientation, call.pose.orientation = True, quaternion_message(units.rotation(unit(value)))
        else:
            x, y, z = value
            call.set_position, call.pose.position = True, point_message(units.body(x, y, z))
    return call


def add_trigger(request: sim.AddTrigger) -> srv.AddTrigger.Request:
    """Convert TADD of a type that simulators support."""
    trigger = request.trigger
    assert not isinstance(trigger, sim.UnknownTrigger | sim.BytecodeTrigger)
    call = srv.AddTrigger.Request(name="operator_trigger", type=trigger.TYPE)
    if isinstance(trigger, sim.PathTrigger):
        call.entity_a, call.distance = trigger.entity, trigger.distance
        call.start, call.end = point_message(units.world(*trigger.start)), point_message(units.world(*trigger.end))
    else:
        call.entity_a, call.entity_b = trigger.a, trigger.b
        call.distance = getattr(trigger, "distance", -1.0)
    return call


def add_turbulence(request: sim.AddObject) -> srv.AddTurbulence.Request:
    """Convert OADD of turbulence. Raises ValueError for invalid data."""
    turbulence = sim.Turbulence.of(request.data)
    call = srv.AddTurbulence.Request()
    call.minimum.force, call.maximum.force = _ros_bounds(turbulence.force_a, turbulence.force_b)
    call.minimum.torque, call.maximum.torque = _ros_bounds(turbulence.torque_a, turbulence.torque_b)
    call.minimum_force_rate, call.maximum_force_rate = turbulence.force_rate_a, turbulence.force_rate_b
    call.minimum_torque_rate, call.maximum_torque_rate = turbulence.torque_rate_a, turbulence.torque_rate_b
    return call


def _ros_bounds(lowest: sim.Vector, highest: sim.Vector) -> tuple[Vector3, Vector3]:
    """Exchange the bounds of components with opposite signs in ROS. Unordered bounds stay unordered."""
    low, high, signs = units.world(*lowest), units.world(*highest), units.world(1.0, 1.0, 1.0)
    pairs = [(a, b) if sign > 0 else (b, a) for a, b, sign in zip(low, high, signs, strict=True)]
    return vector3_message([low for low, _ in pairs]), vector3_message([high for _, high in pairs])


# Answers of the wire.


def _ok(request: sim.Request, response: Any) -> sim.Response:
    return sim.Ok()


def _added(kind: ItemType) -> "Callable[[sim.Request, Any], sim.Response]":
    return lambda request, response: sim.Added(kind, response.id)


def _configured(request: sim.GetConfig, got: srv.GetConfiguration.Response) -> sim.Response:
    return sim.Configured(got.frequency, got.speed, got.non_real_time, got.use_desired_thrusters)


def _entity_got(request: sim.GetEntity, response: srv.GetState.Response) -> sim.Response:
    values = (*wire_state(state_from_response(response)), response.corporeal)
    return sim.EntityGot(request.attribute, values[request.attribute])


def refusal(response: Any) -> sim.Error:
    """Return the error for a response without success: the simulator's own, or the bridge's sentence."""
    if response.code >= 0:
        return sim.Error(response.code, response.message)
    text = shorten(response.message, LONGEST_TEXT, placeholder=" ...").encode()[:LONGEST_TEXT]
    return sim.Error(0, text.decode(errors="ignore"))


class ServiceRow(NamedTuple):
    """Row of the table: a kind of request, and the service that answers it."""

    service: str
    ask: Callable[[Any], Any]
    answer: Callable[[Any, Any], sim.Response] = _ok


ROWS: dict[type[sim.Request], ServiceRow] = {
    sim.GetConfig: ServiceRow("get_configuration", lambda request: srv.GetConfiguration.Request(), _configured),
    sim.Run: ServiceRow("run", lambda request: srv.Run.Request(steps=request.steps)),
    sim.Pause: ServiceRow("pause", lambda request: srv.SimulatorRequest.Request()),
    sim.Remove: ServiceRow("remove", remove),
    sim.ListEntities: ServiceRow(
        "list_entities",
        lambda request: srv.ListEntities.Request(),
        lambda request, response: sim.EntitiesListed(tuple(response.ids)),
    ),
    sim.AddEntity: ServiceRow("spawn", spawn, _added(ItemType.ENTITY)),
    sim.SetEntity: ServiceRow("set_entity_state", set_state),
    sim.GetEntity: ServiceRow("get_entity_state", lambda request: srv.GetState.Request(id=request.id), _entity_got),
    sim.StreamEntity: ServiceRow(
        "stream_entity", lambda request: srv.StreamEntity.Request(id=request.id, name=f"entity_{request.id}")
    ),
    sim.GetExtended: ServiceRow(
        "get_attribute",
        lambda request: srv.GetAttribute.Request(id=request.id, key=attribute_message(request.key, b"").key),
        lambda request, response: sim.ExtendedGot(request.key, bytes(response.attribute.data)),
    ),
    sim.SetExtended: ServiceRow("set_attribute", set_attribute),
    sim.AddCamera: ServiceRow("add_camera", add_camera, _added(ItemType.CAMERA)),
    sim.SetCamera: ServiceRow("set_camera", set_camera),
    sim.StreamCamera: ServiceRow(
        "stream_camera",
        lambda request: srv.StreamCamera.Request(camera_id=request.id, target_id=request.target, period=request.period),
        lambda request, response: sim.Added(ItemType.CAMERA_STREAM, response.stream_id),
    ),
    sim.AddTrigger: ServiceRow("add_trigger", add_trigger, _added(ItemType.TRIGGER)),
    sim.AddObject: ServiceRow("add_turbulence", add_turbulence, _added(ItemType.OBJECT)),
}


def service_of(request: sim.Request) -> str | None:
    """Return the service that answers a request, or None."""
    row = ROWS.get(type(request))
    return row and row.service


def ask(request: sim.Request, orientation: WxyzQuaternion | None = None) -> Any:
    """Return the service's request. `orientation` is that of the entity whose v is set.

    Raises ValueError.
    """
    if isinstance(request, sim.SetEntity):
        return set_state(request, units.orientation(orientation) if orientation else None)
    return ROWS[type(request)].ask(request)


def answer(request: sim.Request, response: Any) -> sim.Response:
    """Return the answer to the client, which may be an Error."""
    return ROWS[type(request)].answer(request, response) if response.success else refusal(response)
