# SPDX-License-Identifier: Apache-2.0
"""Requests to the simulator's services as requests of its protocol, and answers the other way.

What a service asks for in ROS's axes becomes what the wire has. All raise ValueError, with a sentence, for numbers
that make no sense.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from drone_bridge.motion.quaternions import IDENTITY, Quaternion, inverse, rotated
from drone_bridge.msg import CameraView, ExtendedAttribute
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, CameraAttribute
from drone_bridge.simulator.topics.plans import CameraPlan, TriggerPlan
from drone_bridge.simulator.topics.translation import Axes, BodyToModel, EntityState, Vector
from drone_bridge.srv import (
    AddCamera,
    AddTrigger,
    AddTurbulence,
    SetAttribute,
    SetCamera,
    SetState,
    Spawn,
)

SPHERE = 0.4  # the moment of inertia of a solid sphere of mass 1 kg and radius 1 m, kg m²


def vector(message: Any) -> Vector:
    """Return a geometry_msgs/Vector3 or Point."""
    values = (message.x, message.y, message.z)
    if not all(map(math.isfinite, values)):
        raise ValueError(f"The vector {values} has to be made of finite numbers.")
    return values


def quaternion(message: Any) -> Quaternion:
    """Return a geometry_msgs/Quaternion, of length 1. All zeros stand for no rotation."""
    q = Quaternion(message.x, message.y, message.z, message.w)
    length = math.hypot(*q)
    if length == 0.0:
        return IDENTITY
    if not 0.99 <= length <= 1.01:
        raise ValueError(f"The quaternion {tuple(q)} has the length {length:g}, and has to have 1.")
    return Quaternion(*(part / length for part in q))


# Entities.


def add_entity(request: Spawn.Request, axes: Axes) -> tuple[sim.AddEntity, BodyToModel]:
    """Return the request, and the rotation from the entity's principal axes to its model."""
    btom = BodyToModel(axes.wire_rotation(quaternion(request.body_to_model)))
    for name, value in (("mass", request.mass), ("radius", request.radius)):
        if not 0.0 < value < math.inf:
            raise ValueError(f"The {name} is {value:g}, and has to be finite and more than 0.")
    inertia = vector(request.inertia)
    if not any(inertia):
        inertia = (SPHERE * request.mass * request.radius**2,) * 3
    if not all(moment > 0.0 for moment in inertia):
        raise ValueError(f"The moments of inertia are {inertia}, and each has to be more than 0.")
    model = axes.wire_orientation(quaternion(request.pose.orientation))
    return sim.AddEntity(
        request.mass,
        request.radius,
        inertia,
        btom.rotation,
        axes.world(*vector(request.pose.position)),
        btom.body(model),
        request.corporeal,
        tuple(sim.ExtendedAttribute(attribute.key, attribute_data(attribute)) for attribute in request.attributes),
    ), btom


def set_entity(request: SetState.Request, orientation: Quaternion | None, axes: Axes) -> Iterator[sim.SetEntity]:
    """Yield a request per attribute that is chosen; `orientation` is what the entity has now, if that is needed."""

    def change(attribute: Attribute, value: sim.AttributeValue) -> sim.SetEntity:
        return sim.SetEntity(request.id, attribute, value)

    if request.set_position:
        yield change(Attribute.POSITION, axes.world(*vector(request.pose.position)))
    if request.set_orientation:
        orientation = quaternion(request.pose.orientation)
        yield change(Attribute.ORIENTATION, axes.wire_orientation(orientation))
    if request.set_velocity:
        if orientation is None:
            raise ValueError("The entity's orientation is not known, so its own frame is not either.")
        yield change(Attribute.VELOCITY, axes.world(*rotated(orientation, *vector(request.twist.linear))))
    if request.set_acceleration:
        yield change(Attribute.ACCELERATION, axes.world(*vector(request.acceleration)))
    if request.set_angular_velocity:
        yield change(Attribute.ANGULAR_VELOCITY, axes.body(*vector(request.twist.angular)))
    if request.set_corporeal:
        yield change(Attribute.CORPOREAL, bool(request.corporeal))


def fill_state(response: Any, state: EntityState, corporeal: bool) -> None:
    """Fill in the response to get_state."""
    response.pose.position.x, response.pose.position.y, response.pose.position.z = state.position
    orientation = response.pose.orientation
    orientation.x, orientation.y, orientation.z, orientation.w = state.orientation
    velocity = rotated(inverse(state.orientation), *state.velocity)
    response.twist.linear.x, response.twist.linear.y, response.twist.linear.z = velocity
    response.twist.angular.x, response.twist.angular.y, response.twist.angular.z = state.angular_velocity
    response.acceleration.x, response.acceleration.y, response.acceleration.z = state.acceleration
    response.corporeal = corporeal


# Extended attributes.


def set_attribute(request: SetAttribute.Request) -> sim.SetExtended:
    """Return the request for an extended attribute."""
    return sim.SetExtended(request.id, request.attribute.key, attribute_data(request.attribute))


def attribute_data(message: ExtendedAttribute) -> bytes:
    """Return what an attribute holds: its text or its data."""
    if message.text and len(message.data):
        raise ValueError(f"The attribute {message.key!r} has both text and data; it can have one of them.")
    return message.text.encode() or bytes(message.data)


def attribute_message(key: str, data: bytes) -> ExtendedAttribute:
    """Return an attribute with its data, also as text if it is any."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if "\0" in text:
        text = ""
    # Invalid UTF-8 has become surrogates, which a ROS string can't hold.
    return ExtendedAttribute(key=key.encode(errors="surrogateescape").decode(errors="replace"), text=text, data=data)


# Cameras.


def camera_plan(request: AddCamera.Request) -> CameraPlan:
    """Return the camera that add_camera asks for."""
    return CameraPlan(
        request.name,
        request.entity_id,
        vector(request.pose.position),
        quaternion(request.pose.orientation),
        request.focal_length,
        request.enabled,
        tuple(request.targets),
        request.period,
    )


def add_camera(plan: CameraPlan, axes: Axes) -> sim.AddCamera:
    """Return the request for a camera."""
    return sim.AddCamera(
        plan.entity, axes.wire_rotation(plan.rotation), axes.body(*plan.position), plan.focal_length, plan.enabled
    )


def check_camera(request: SetCamera.Request) -> None:
    """Raise ValueError for a request that can't be made."""
    if not any(set_camera(request, Axes(), BodyToModel())):
        raise ValueError("The request sets nothing.")


def set_camera(request: SetCamera.Request, axes: Axes, body_to_model: BodyToModel) -> Iterator[sim.SetCamera]:
    """Yield a request per attribute that is chosen.

    `body_to_model`: of the entity, for a simulator that takes poses about its principal axes; else none.
    """
    if request.set_orientation:
        rotation = body_to_model.rotation_in_body(axes.wire_rotation(quaternion(request.pose.orientation)))
        yield sim.SetCamera(request.id, CameraAttribute.ORIENTATION, rotation)
    if request.set_position:
        position = body_to_model.vector_in_body(axes.body(*vector(request.pose.position)))
        yield sim.SetCamera(request.id, CameraAttribute.POSITION, position)
    if request.set_focal_length:
        if not 0.0 < request.focal_length < math.inf:
            raise ValueError(f"The focal length is {request.focal_length:g}, and has to be finite and more than 0.")
        yield sim.SetCamera(request.id, CameraAttribute.FOCAL_LENGTH, request.focal_length)
    if request.set_enabled:
        yield sim.SetCamera(request.id, CameraAttribute.ENABLED, bool(request.enabled))


def changed_camera(plan: CameraPlan, request: SetCamera.Request) -> CameraPlan:
    """Return what a camera is after the attributes that are chosen have been set."""
    pose = request.pose
    return replace(
        plan,
        rotation=quaternion(pose.orientation) if request.set_orientation else plan.rotation,
        position=vector(pose.position) if request.set_position else plan.position,
        focal_length=request.focal_length if request.set_focal_length else plan.focal_length,
        enabled=bool(request.enabled) if request.set_enabled else plan.enabled,
    )


def fill_view(message: CameraView, view: sim.CameraData | sim.CameraGot) -> None:
    """Fill in where an entity appears."""
    message.x, message.y, message.radius, message.depth = view.x, view.y, view.radius, view.depth
    message.visible = view.radius > 0.0


# Triggers and objects.


def trigger_plan(request: AddTrigger.Request, axes: Axes) -> TriggerPlan:
    """Return the trigger that add_trigger asks for."""
    if request.type == request.COLLISION:
        return TriggerPlan.collision(request.name, request.entity_a, request.entity_b, request.distance)
    if request.type == request.SWEEP_COLLISION:
        return TriggerPlan(request.name, sim.SweepCollisionTrigger(request.entity_a, request.entity_b))
    if request.type == request.BYTECODE:
        return TriggerPlan(request.name, sim.BytecodeTrigger(bytes(request.code)))
    if request.type == request.PATH:
        start, end = vector(request.start), vector(request.end)
        return TriggerPlan.path(request.name, request.entity_a, start, end, request.distance, axes)
    raise ValueError(f"There is no type {request.type} of triggers; there are 0 to 3.")


def turbulence(request: AddTurbulence.Request, axes: Axes) -> sim.Turbulence:
    """Return a force and a torque; a component that points the other way on the wire has its bounds exchanged."""
    force_rates = _rates(request.minimum_force_rate, request.maximum_force_rate)
    torque_rates = _rates(request.minimum_torque_rate, request.maximum_torque_rate)
    force_a, force_b = _bounds(request.minimum.force, request.maximum.force, axes)
    torque_a, torque_b = _bounds(request.minimum.torque, request.maximum.torque, axes)
    return sim.Turbulence(force_a, force_b, *force_rates, torque_a, torque_b, *torque_rates)


def _rates(minimum: float, maximum: float) -> tuple[float, float]:
    if not -math.inf < minimum <= maximum < math.inf:
        raise ValueError(f"The rates {minimum:g} and {maximum:g} have to be finite and in this order.")
    return minimum, maximum


def _bounds(minimum: Any, maximum: Any, axes: Axes) -> tuple[Any, Any]:
    low, high = vector(minimum), vector(maximum)
    if any(a > b for a, b in zip(low, high, strict=True)):
        raise ValueError(f"The minimum {low} has to be nowhere above the maximum {high}.")
    pairs: Sequence[tuple[float, float]] = list(zip(axes.world(*low), axes.world(*high), strict=True))
    return tuple(min(pair) for pair in pairs), tuple(max(pair) for pair in pairs)
