# SPDX-License-Identifier: Apache-2.0
"""Conversion between requests of simulator_bridge's services and requests of the simulator's protocol.

The bridge converts calls of its services to the wire: functions `wire_*`. The server converts its clients' requests to
calls of services: `service_calls`. Both convert between ROS's and the wire's axes. All raise ValueError, with a
sentence, for invalid numbers.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from geometry_msgs.msg import Point, Pose, Twist, Vector3
from geometry_msgs.msg import Quaternion as QuaternionMessage

from drone_bridge import srv
from drone_bridge.motion.body_to_model import BodyToModel
from drone_bridge.motion.quaternions import Quaternion, rotated
from drone_bridge.msg import ExtendedAttribute
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator import units
from drone_bridge.simulator.codec import Attribute, CameraAttribute
from drone_bridge.simulator.topics import EntityState, quaternion, vector
from drone_bridge.srv import AddCamera, AddTrigger, AddTurbulence, SetAttribute, SetCamera, SetState, Spawn

SPHERE = 0.4  # moment of inertia of a solid sphere of mass 1 kg and radius 1 m, kg m²
#: Names without which items are not removed, by type and ID: an empty request is about entity 0, a vehicle.
REMOVAL_NAMES: dict[tuple[int, int], str] = {(sim.ItemType.ENTITY, 0): "entity", (sim.ItemType.OBJECT, 0): "gravity"}


#: Services of simulator_bridge, by their names below its own. Two names are longer than the others, because every
#: lifecycle node has its own ~/get_state.
SERVICES = {
    "run": srv.Run,
    "pause": srv.SimulatorRequest,
    "reassure": srv.SimulatorRequest,
    "get_configuration": srv.GetConfiguration,
    "remove": srv.RemoveItem,
    "list_entities": srv.ListEntities,
    "spawn": srv.Spawn,
    "get_entity_state": srv.GetState,
    "set_entity_state": srv.SetState,
    "stream_entity": srv.StreamEntity,
    "get_attribute": srv.GetAttribute,
    "set_attribute": srv.SetAttribute,
    "add_camera": srv.AddCamera,
    "set_camera": srv.SetCamera,
    "stream_camera": srv.StreamCamera,
    "add_trigger": srv.AddTrigger,
    "add_turbulence": srv.AddTurbulence,
}


# Requests to the simulator.


def wire_remove(request: srv.RemoveItem.Request) -> sim.Remove:
    """Return the request to remove any item."""
    name = REMOVAL_NAMES.get((request.type, request.id))
    if name and request.name != name:
        kind = sim.ItemType(request.type).name.lower()
        raise ValueError(f"The removal of {kind} {request.id} needs the name {name!r} in the request.")
    return sim.Remove(request.type, request.id)


def wire_add_entity(request: Spawn.Request) -> sim.AddEntity:
    """Return the request for an entity."""
    btom = BodyToModel(units.wire_rotation(quaternion(request.body_to_model)))
    for name, value in (("mass", request.mass), ("radius", request.radius)):
        if not 0.0 < value < math.inf:
            raise ValueError(f"The {name} is {value:g}, but must be finite and above 0.")
    inertia = vector(request.inertia)
    if not any(inertia):
        inertia = (SPHERE * request.mass * request.radius**2,) * 3
    if not all(moment > 0.0 for moment in inertia):
        raise ValueError(f"The moments of inertia are {inertia}, but must be above 0.")
    model = units.wire_orientation(quaternion(request.pose.orientation))
    return sim.AddEntity(
        request.mass,
        request.radius,
        inertia,
        btom.rotation,
        units.world(*vector(request.pose.position)),
        btom.body(model),
        request.corporeal,
        tuple(sim.ExtendedAttribute(attribute.key, attribute_data(attribute)) for attribute in request.attributes),
    )


def wire_set_entity(request: SetState.Request, orientation: Quaternion | None) -> Iterator[sim.SetEntity]:
    """Yield a request for each chosen attribute. `orientation` is the entity's current one, if needed."""

    def change(attribute: Attribute, value: sim.AttributeValue) -> sim.SetEntity:
        return sim.SetEntity(request.id, attribute, value)

    if request.set_position:
        yield change(Attribute.POSITION, units.world(*vector(request.pose.position)))
    if request.set_orientation:
        orientation = quaternion(request.pose.orientation)
        yield change(Attribute.ORIENTATION, units.wire_orientation(orientation))
    if request.set_velocity:
        if orientation is None:
            raise ValueError("The entity's orientation is unknown, and so is its own frame.")
        yield change(Attribute.VELOCITY, units.world(*rotated(orientation, *vector(request.twist.linear))))
    if request.set_acceleration:
        yield change(Attribute.ACCELERATION, units.world(*vector(request.acceleration)))
    if request.set_angular_velocity:
        yield change(Attribute.ANGULAR_VELOCITY, units.body(*vector(request.twist.angular)))
    if request.set_corporeal:
        yield change(Attribute.CORPOREAL, bool(request.corporeal))


def state_fields(state: EntityState, corporeal: bool) -> dict[str, Any]:
    """Return the fields of a response of get_entity_state."""
    return {
        "pose": pose_message(state.position, state.orientation),
        "twist": Twist(linear=vector3_message(state.own_velocity), angular=vector3_message(state.angular_velocity)),
        "acceleration": vector3_message(state.acceleration),
        "corporeal": corporeal,
    }


# Extended attributes.


def wire_set_attribute(request: SetAttribute.Request) -> sim.SetExtended:
    """Return the request for an extended attribute."""
    return sim.SetExtended(request.id, request.attribute.key, attribute_data(request.attribute))


def attribute_data(message: ExtendedAttribute) -> bytes:
    """Return the value of an attribute: its text or its data."""
    if message.text and len(message.data):
        raise ValueError(f"The attribute {message.key!r} has both text and data, but must have only one of them.")
    return message.text.encode() or bytes(message.data)


# Cameras.


def wire_add_camera(request: AddCamera.Request) -> sim.AddCamera:
    """Return the request for a camera that looks along its x axis."""
    rotation = units.wire_rotation(quaternion(request.pose.orientation))
    position = units.body(*vector(request.pose.position))
    return sim.AddCamera(request.entity_id, rotation, position, _checked_focal_length(request), request.enabled)


def _checked_focal_length(request: AddCamera.Request | SetCamera.Request) -> float:
    if not 0.0 < request.focal_length < math.inf:
        raise ValueError(f"The focal length is {request.focal_length:g}, but must be finite and above 0.")
    return float(request.focal_length)


def wire_set_camera(request: SetCamera.Request) -> Iterator[sim.SetCamera]:
    """Yield a request for each chosen attribute."""
    if request.set_orientation:
        rotation = units.wire_rotation(quaternion(request.pose.orientation))
        yield sim.SetCamera(request.id, CameraAttribute.ORIENTATION, rotation)
    if request.set_position:
        yield sim.SetCamera(request.id, CameraAttribute.POSITION, units.body(*vector(request.pose.position)))
    if request.set_focal_length:
        yield sim.SetCamera(request.id, CameraAttribute.FOCAL_LENGTH, _checked_focal_length(request))
    if request.set_enabled:
        yield sim.SetCamera(request.id, CameraAttribute.ENABLED, bool(request.enabled))


# Triggers and objects.


def wire_trigger(request: AddTrigger.Request) -> sim.Trigger:
    """Return the trigger of an add_trigger request."""
    a, b, distance = request.entity_a, request.entity_b, request.distance
    if request.type == request.COLLISION:
        if not math.isfinite(distance):
            raise ValueError(f"The distance is {distance}, but must be finite.")
        return sim.CollisionTrigger(a, b, distance)
    if request.type == request.SWEEP_COLLISION:
        return sim.SweepCollisionTrigger(a, b)
    if request.type == request.PATH:
        if not 0.0 < distance < math.inf:
            raise ValueError(f"The distance is {distance:g}, but must be finite and above 0.")
        return sim.PathTrigger(a, units.world(*vector(request.start)), units.world(*vector(request.end)), distance)
    raise ValueError(f"Trigger type {request.type} does not exist: they are 0 (collision), 1 (sweep) and 3 (path).")


def wire_add_turbulence(request: AddTurbulence.Request) -> sim.AddObject:
    """Return the request for turbulence. The bounds of components with opposite signs on the wire are exchanged."""
    force_rates = _rates(request.minimum_force_rate, request.maximum_force_rate)
    torque_rates = _rates(request.minimum_torque_rate, request.maximum_torque_rate)
    force_a, force_b = _bounds(request.minimum.force, request.maximum.force)
    torque_a, torque_b = _bounds(request.minimum.torque, request.maximum.torque)
    turbulence = sim.Turbulence(force_a, force_b, *force_rates, torque_a, torque_b, *torque_rates)
    return sim.AddObject(sim.Turbulence.CLASS, turbulence.encode())


def _rates(minimum: float, maximum: float) -> tuple[float, float]:
    if not -math.inf < minimum <= maximum < math.inf:
        raise ValueError(f"The rates are {minimum:g} and {maximum:g}, but must be finite and in ascending order.")
    return minimum, maximum


def _bounds(minimum: Any, maximum: Any) -> tuple[Any, Any]:
    low, high = vector(minimum), vector(maximum)
    if any(a > b for a, b in zip(low, high, strict=True)):
        raise ValueError(f"No component of the minimum {low} may be above the maximum {high}.")
    pairs: Sequence[tuple[float, float]] = list(zip(units.world(*low), units.world(*high), strict=True))
    return tuple(min(pair) for pair in pairs), tuple(max(pair) for pair in pairs)


def vector3_message(vector: Any) -> Vector3:
    """Return a vector as a message."""
    x, y, z = vector
    return Vector3(x=x, y=y, z=z)


def point_message(vector: Any) -> Point:
    """Return a point as a message."""
    x, y, z = vector
    return Point(x=x, y=y, z=z)


def quaternion_message(q: Quaternion) -> QuaternionMessage:
    """Return a rotation as a message."""
    return QuaternionMessage(x=q.x, y=q.y, z=q.z, w=q.w)


def pose_message(position: Any, orientation: Quaternion) -> Pose:
    """Return a pose as a message."""
    return Pose(position=point_message(position), orientation=quaternion_message(orientation))
