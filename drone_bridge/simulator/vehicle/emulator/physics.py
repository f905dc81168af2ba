# SPDX-License-Identifier: Apache-2.0
"""Body: a rigid body in water, with forces and engines, in steps of constant duration.

A step is symmetric and of second order: forces over the first half, free motion over all of it, forces over the second
half. Motion under a constant force is exact.

The world frame is inertial, north-east-down. The axes of a body frame are the principal axes of inertia. The model
frame is the frame of the body's drawing. `btom` rotates vectors from the body frame to the model frame.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from drone_bridge.motion.wxyz import IDENTITY, Vector, WxyzQuaternion, conjugate, cross, dot, multiply, rotate, unit
from drone_bridge.simulator import codec as wire

GRAVITY = 9.81  # m/s^2
WATER_DENSITY = 1000.0  # kg/m^3
ZERO: Vector = (0.0, 0.0, 0.0)


@dataclass(slots=True)
class Body:
    """Constants and settable state of a body. Raises ValueError for invalid ones."""

    mass: float = 1.0  # kg
    radius: float = 1.0  # m
    inertia: Vector = (1.0, 1.0, 1.0)  # about the axes of the body frame, kg m^2
    btom: WxyzQuaternion = IDENTITY  # normalized, like q
    x: Vector = ZERO  # world frame, m
    v: Vector = ZERO  # world frame, m/s
    a: Vector = ZERO  # world frame, mean of the last step, m/s^2
    q: WxyzQuaternion = IDENTITY  # of the body frame in the world
    w: Vector = ZERO  # body frame, rad/s
    is_corporeal: bool = True  # False: no force acts on it
    is_pushed: bool = False  # `a` was set from outside, and acts in the next step in addition to forces
    engines: list[Engine] = field(default_factory=list)
    x_before: Vector = field(init=False)  # the last step

    def __post_init__(self) -> None:
        for name, value in (("mass", self.mass), ("radius", self.radius)):
            if not 0 < value < math.inf:
                raise ValueError(f"The {name} is {value:g}, but must be finite and above 0.")
        if not all(0 < moment < math.inf for moment in self.inertia):
            shown = ", ".join(f"{moment:g}" for moment in self.inertia)
            raise ValueError(f"The moments of inertia are {shown}, but must be finite and above 0.")
        self.btom, self.q, self.x_before = unit(self.btom), unit(self.q), self.x
        if not self._is_finite:
            raise ValueError("The state must be finite.")

    @property
    def _is_finite(self) -> bool:
        return all(map(math.isfinite, (*self.x, *self.v, *self.a, *self.q, *self.w)))

    @property
    def model_attitude(self) -> WxyzQuaternion:
        """The attitude of the model frame in the world."""
        return multiply(self.q, conjugate(self.btom))

    @property
    def model_rates(self) -> Vector:
        """The angular velocity in the model frame, rad/s."""
        return self.w if self.btom == IDENTITY else rotate(self.btom, self.w)

    def step(self, force: Force, duration: float) -> bool:
        """Advance by a duration, s, under a force. Return False on numerical overflow, where the body is stopped."""
        v, q, self.x_before = self.v, self.q, self.x
        try:
            if self.is_pushed:
                self.v = _sum(self.v, self.a, duration)
            if self.is_corporeal:
                self._push(force, duration / 2)
                self._run(self.engines, duration / 2)
            self.x = _sum(self.x, self.v, duration)
            if any(self.w):
                self._spin(duration)
            if self.is_corporeal:  # in reverse order, which cancels the effect of the order
                self._run(reversed(self.engines), duration / 2)
                self._push(force, duration / 2)
            self.a = _divided(_sum(self.v, v, -1.0), duration)
            is_computable = self._is_finite
        except ValueError:  # of a sine
            is_computable = False
        self.is_pushed = False
        if not is_computable:
            self.x, self.q = self.x_before, q
            self.v = self.a = self.w = ZERO
        return is_computable

    def _push(self, force: Force, duration: float) -> None:
        self.v = _sum(self.v, _sum(force.acceleration, _divided(force.force, self.mass)), duration)
        self.w = self._turned(self.w, _sum(ZERO, rotate(conjugate(self.q), force.torque), duration))

    def _run(self, engines: Iterable[Engine], duration: float) -> None:
        v, w = rotate(conjugate(self.q), self.v), self.w
        for engine in engines:
            impulse, twist = engine.act(self, v, w, duration)
            v, w = _sum(v, _divided(impulse, self.mass)), self._turned(w, twist)
        self.v, self.w = rotate(self.q, v), w

    def _turned(self, w: Vector, twist: Vector) -> Vector:
        """Return an angular velocity after an angular impulse, N m s, both in the body frame."""
        (wx, wy, wz), (tx, ty, tz), (ix, iy, iz) = w, twist, self.inertia
        return wx + tx / ix, wy + ty / iy, wz + tz / iz

    def _spin(self, duration: float) -> None:
        """Rotate freely, about x, y, z, y, x in turn.

        Each of these rotations is exact and conserves the angular momentum in the world. Together they are of second
        order, and the error of the energy stays bounded for runs of any duration.
        """
        q, momentum = self.q, [rate * moment for rate, moment in zip(self.w, self.inertia, strict=True)]
        for axis, part in ((0, 0.5), (1, 0.5), (2, 1.0), (1, 0.5), (0, 0.5)):
            angle = momentum[axis] * (part * duration / self.inertia[axis])
            turn = [0.0, 0.0, 0.0]
            turn[axis] = math.sin(angle / 2)
            q = multiply(q, (math.cos(angle / 2), *turn))
            sine, cosine = math.sin(angle), math.cos(angle)
            j, k = momentum[axis - 2], momentum[axis - 1]
            momentum[axis - 2], momentum[axis - 1] = cosine * j + sine * k, cosine * k - sine * j
        self.q, self.w = unit(q), self._turned(ZERO, (momentum[0], momentum[1], momentum[2]))


def _sum(a: Vector, b: Vector, factor: float = 1.0) -> Vector:
    return a[0] + b[0] * factor, a[1] + b[1] * factor, a[2] + b[2] * factor


def _divided(a: Vector, divisor: float) -> Vector:
    return a[0] / divisor, a[1] / divisor, a[2] / divisor


# Forces act on every corporeal body.


@dataclass(slots=True)
class Force:
    """Force in the world frame."""

    acceleration: Vector = ZERO  # of a body of any mass, m/s^2
    force: Vector = ZERO  # on every body's centre of mass, N
    torque: Vector = ZERO  # on every body, N m

    def begin_step(self, duration: float) -> None:
        """Advance in time, s."""


def total(forces: Iterable[Force]) -> Force:
    """Return the sum of forces."""
    together = Force()
    for each in forces:
        together.acceleration = _sum(together.acceleration, each.acceleration)
        together.force = _sum(together.force, each.force)
        together.torque = _sum(together.torque, each.torque)
    return together


def check_turbulence(limits: wire.Turbulence) -> None:
    """Raise ValueError for invalid limits."""
    rates = (limits.force_rate_a, limits.torque_rate_a), (limits.force_rate_b, limits.torque_rate_b)
    lowest, highest = (*limits.force_a, *limits.torque_a, *rates[0]), (*limits.force_b, *limits.torque_b, *rates[1])
    for a, b in zip(lowest, highest, strict=True):
        if not a <= b:  # NaN never is
            raise ValueError(f"The limit a of turbulence is {a:g}, but must not be above limit b, {b:g}.")


@dataclass(slots=True, kw_only=True)
class TurbulenceForce(Force):
    """Bounded random walk of a wrench on every corporeal body, from zero, at a rate that is drawn for each step.

    Equal limits give a constant wrench, which is one way to steer.
    """

    limits: wire.Turbulence
    random: random.Random

    def begin_step(self, duration: float) -> None:
        """Advance the random walk by one step."""
        limits = self.limits
        rates = (limits.force_rate_a, limits.force_rate_b), (limits.torque_rate_a, limits.torque_rate_b)
        self.force = self._walk(self.force, limits.force_a, limits.force_b, rates[0], duration)
        self.torque = self._walk(self.torque, limits.torque_a, limits.torque_b, rates[1], duration)

    def _walk(self, value: Vector, a: Vector, b: Vector, rates: tuple[float, float], duration: float) -> Vector:
        x, y, z = (
            min(max(now + self.random.uniform(*rates) * duration, smallest), largest)
            for now, smallest, largest in zip(value, a, b, strict=True)
        )
        return x, y, z


# Engines act on their body over a part of a step, so that drag can be solved exactly and stays stable at any speed.


class Engine(Protocol):
    """Device attached to a body."""

    def act(self, body: Body, v: Vector, w: Vector, duration: float) -> tuple[Vector, Vector]:
        """Return impulse, N s, and angular impulse, N m s, over a time, s, at these velocities. In the body frame."""


@dataclass(frozen=True, slots=True)
class Buoyancy:
    """Constant buoyancy, without a water surface."""

    force: float  # N
    centre: Vector  # body frame, m

    def act(self, body: Body, v: Vector, w: Vector, duration: float) -> tuple[Vector, Vector]:
        up = rotate(conjugate(body.q), (0.0, 0.0, -self.force * duration))
        return up, cross(self.centre, up)


@dataclass(frozen=True, slots=True)
class DragPlane:
    """Drag along a normal, proportional to the square of the speed."""

    centre: Vector  # body frame, m
    normal: Vector  # body frame, unit vector
    coefficient: float
    area: float  # m^2
    density: float = WATER_DENSITY

    def act(self, body: Body, v: Vector, w: Vector, duration: float) -> tuple[Vector, Vector]:
        """See Engine. Exact: drag alone slows u along the normal down to u / (1 + k u t)."""
        lx, ly, lz = lever = cross(self.centre, self.normal)
        ix, iy, iz = body.inertia
        speed = dot(self.normal, v) + dot(lever, w)
        inverse_mass = 1 / body.mass + lx * lx / ix + ly * ly / iy + lz * lz / iz  # of this point along the normal
        k = self.density * self.coefficient * self.area * inverse_mass / 2  # 1/m
        lost = 1 - 1 / (1 + k * abs(speed) * duration)  # fraction of the speed
        impulse = -lost * speed / inverse_mass
        return _sum(ZERO, self.normal, impulse), _sum(ZERO, lever, impulse)
