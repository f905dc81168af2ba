# SPDX-License-Identifier: Apache-2.0
"""Converts requests of the simulator's protocol to calls of simulator_bridge's services."""

from typing import Any

from geometry_msgs.msg import Point, Pose, Vector3
from geometry_msgs.msg import Quaternion as QuaternionMessage

from drone_bridge import srv
from drone_bridge.motion.quaternions import Quaternion, inverse, rotated
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, CameraAttribute
from drone_bridge.simulator.topics.requests import attribute_message
from drone_bridge.simulator.topics.translation import Axes, BodyToModel, EntityState

_GRAVITY_ID = 0  # among objects
_GRAVITY = "gravity"  # has to be given as the name to remove it


def remove(request: sim.Remove) -> srv.RemoveItem.Request:
    """REMOVE of any item."""
    is_gravity = request.type == sim.ItemType.OBJECT and request.id == _GRAVITY_ID
    return srv.RemoveItem.Request(type=request.type, id=request.id, name=_GRAVITY if is_gravity else "")


def spawn(request: sim.AddEntity, name: str, axes: Axes) -> srv.Spawn.Request:
    """EADD. Raises ValueError for what is not a rotation."""
    btom = BodyToModel(request.body_to_model)
    asked = srv.Spawn.Request(
        name=name,
        mass=request.mass,
        radius=request.radius,
        inertia=_vector3(request.inertia),
        body_to_model=_quaternion(axes.rotation(btom.rotation)),
        corporeal=request.corporeal,
        attributes=[attribute_message(attribute.key, attribute.data) for attribute in request.attributes],
        stream=True,
    )
    for attribute in asked.attributes:
        attribute.text = ""  # a call has text or data, and data hold anything
    asked.pose = _pose(axes.world(*request.position), axes.orientation(btom.model(request.orientation)))
    return asked


def set_state(request: sim.SetEntity, orientation: Quaternion | None, axes: Axes) -> srv.SetState.Request:
    """ESET. `orientation` is what the entity has now, for v. Raises ValueError when it is needed and not known."""
    asked, value = srv.SetState.Request(id=request.id), request.value
    if request.attribute == Attribute.CORPOREAL:
        asked.set_corporeal, asked.corporeal = True, bool(value)
        return asked
    assert isinstance(value, tuple)
    if request.attribute == Attribute.ORIENTATION:
        asked.set_orientation = True
        asked.pose.orientation = _quaternion(axes.orientation(value))
        return asked
    x, y, z = value
    if request.attribute == Attribute.POSITION:
        asked.set_position, asked.pose.position = True, _point(axes.world(x, y, z))
    elif request.attribute == Attribute.VELOCITY:
        if orientation is None:
            raise ValueError("Where the entity points to is not known.")
        asked.set_velocity = True
        asked.twist.linear = _vector3(rotated(inverse(orientation), *axes.world(x, y, z)))
    elif request.attribute == Attribute.ACCELERATION:
        asked.set_acceleration, asked.acceleration = True, _vector3(axes.world(x, y, z))
    else:
        asked.set_angular_velocity, asked.twist.angular = True, _vector3(axes.body(x, y, z))
    return asked


def state_from_response(response: srv.GetState.Response) -> EntityState:
    """Return the state in a response of get_entity_state."""
    pose, twist, a = response.pose, response.twist, response.acceleration
    p, q = pose.position, pose.orientation
    orientation = Quaternion(q.x, q.y, q.z, q.w)
    velocity = rotated(orientation, twist.linear.x, twist.linear.y, twist.linear.z)
    rates = (twist.angular.x, twist.angular.y, twist.angular.z)
    return EntityState((p.x, p.y, p.z), velocity, (a.x, a.y, a.z), orientation, rates)


def set_attribute(request: sim.SetExtended) -> srv.SetAttribute.Request:
    """EXSET."""
    attribute = attribute_message(request.key, request.data)
    attribute.text = ""
    return srv.SetAttribute.Request(id=request.id, attribute=attribute)


def extended_from_response(key: str, response: srv.GetAttribute.Response) -> sim.ExtendedGot:
    """Return the answer to EXGET."""
    return sim.ExtendedGot(key, bytes(response.attribute.data))


def add_camera(request: sim.AddCamera, name: str, axes: Axes) -> srv.AddCamera.Request:
    """CADD."""
    return srv.AddCamera.Request(
        name=name,
        entity_id=request.entity,
        pose=_pose(axes.body(*request.position), axes.rotation(request.orientation)),
        focal_length=request.focal_length,
        enabled=request.enabled,
    )


def set_camera(request: sim.SetCamera, axes: Axes) -> srv.SetCamera.Request:
    """CSET."""
    asked, value = srv.SetCamera.Request(id=request.id), request.value
    if request.attribute == CameraAttribute.FOCAL_LENGTH:
        asked.set_focal_length, asked.focal_length = True, float(value)  # type: ignore[arg-type] # as the wire has it
    elif request.attribute == CameraAttribute.ENABLED:
        asked.set_enabled, asked.enabled = True, bool(value)
    else:
        assert isinstance(value, tuple)
        if request.attribute == CameraAttribute.ORIENTATION:
            asked.set_orientation, asked.pose.orientation = True, _quaternion(axes.rotation(value))
        else:
            x, y, z = value
            asked.set_position, asked.pose.position = True, _point(axes.body(x, y, z))
    return asked


def add_trigger(trigger: Any, name: str, axes: Axes) -> srv.AddTrigger.Request:
    """TADD. Raises ValueError for a type that the document does not have."""
    asked = srv.AddTrigger.Request(name=name)
    if isinstance(trigger, sim.UnknownTrigger):
        raise ValueError(f"There is no type {trigger.type} of triggers.")
    asked.type = trigger.TYPE
    if isinstance(trigger, sim.BytecodeTrigger):
        asked.code = list(trigger.code)
    elif isinstance(trigger, sim.PathTrigger):
        asked.entity_a, asked.distance = trigger.entity, trigger.distance
        asked.start, asked.end = _point(axes.world(*trigger.start)), _point(axes.world(*trigger.end))
    else:
        asked.entity_a, asked.entity_b = trigger.a, trigger.b
        asked.distance = getattr(trigger, "distance", -1.0)
    return asked


def _vector3(vector: Any) -> Vector3:
    x, y, z = vector
    return Vector3(x=x, y=y, z=z)


def _point(vector: Any) -> Point:
    x, y, z = vector
    return Point(x=x, y=y, z=z)


def _quaternion(q: Quaternion) -> QuaternionMessage:
    return QuaternionMessage(x=q.x, y=q.y, z=q.z, w=q.w)


def _pose(position: Any, orientation: Quaternion) -> Pose:
    return Pose(position=_point(position), orientation=_quaternion(orientation))
