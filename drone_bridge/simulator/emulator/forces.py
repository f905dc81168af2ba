# SPDX-License-Identifier: Apache-2.0
"""Forces act on every corporeal body, engines on the one that they are attached to.

An engine works on a body's velocities over a part of a step, so that drag can be solved exactly and stays stable at
any speed.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Protocol

from drone_bridge.motion.wxyz import Vector, WxyzQuaternion, conjugate, cross, dot, rotate
from drone_bridge.simulator.emulator.bodies import Body

GRAVITY = 9.81  # m/s^2
WATER_DENSITY = 1000.0  # kg/m^3

Range = tuple[float, float]


class Force(Protocol):
    """Acts on every corporeal body."""

    @property
    def acceleration(self) -> Vector:
        """The acceleration of a body of any mass, world frame, m/s^2."""

    @property
    def force(self) -> Vector:
        """The force on every body's centre of mass, world frame, N."""

    @property
    def torque(self) -> Vector:
        """The torque on every body, world frame, N m."""

    def begin_step(self, duration: float) -> None:
        """Advance in time, s."""


@dataclass(slots=True)
class Gravity:
    """Gravity, downwards."""

    strength: float = GRAVITY  # m/s^2
    force: Vector = (0.0, 0.0, 0.0)
    torque: Vector = (0.0, 0.0, 0.0)

    @property
    def acceleration(self) -> Vector:
        """Down, m/s^2."""
        return 0.0, 0.0, self.strength

    def begin_step(self, duration: float) -> None:
        """Do nothing, as gravity is constant."""


@dataclass(frozen=True, slots=True)
class TurbulenceLimits:
    """The limits of each component of the wrench and of its rate, which is redrawn for each step.

    Equal limits make a constant wrench, which is one way to steer. Raises ValueError for impossible limits.
    """

    force_a: Vector  # smallest, world frame, N
    force_b: Vector  # largest, N
    force_rate: Range  # N/s, drawn evenly from between
    torque_a: Vector  # smallest, world frame, N m
    torque_b: Vector  # largest, N m
    torque_rate: Range  # N m/s

    def __post_init__(self) -> None:
        numbers = (*self.force_a, *self.force_b, *self.force_rate, *self.torque_a, *self.torque_b, *self.torque_rate)
        if not all(map(math.isfinite, numbers)):
            raise ValueError("The limits of turbulence have to be finite.")
        pairs = (
            *zip(self.force_a, self.force_b, strict=True),
            *zip(self.torque_a, self.torque_b, strict=True),
            self.force_rate,
            self.torque_rate,
        )
        for a, b in pairs:
            if a > b:
                raise ValueError(
                    f"The limits a of turbulence must not be above the limits b, and {a:g} is above {b:g}."
                )


@dataclass(slots=True)
class Turbulence:
    """A bounded random walk of a wrench on every corporeal body. It starts at zero."""

    limits: TurbulenceLimits
    random: random.Random
    force: Vector = (0.0, 0.0, 0.0)
    torque: Vector = (0.0, 0.0, 0.0)
    acceleration: Vector = (0.0, 0.0, 0.0)

    def begin_step(self, duration: float) -> None:
        """Advance the random walk by one step."""
        limits = self.limits
        self.force = self._walk(self.force, limits.force_a, limits.force_b, limits.force_rate, duration)
        self.torque = self._walk(self.torque, limits.torque_a, limits.torque_b, limits.torque_rate, duration)

    def _walk(self, value: Vector, a: Vector, b: Vector, rate: Range, duration: float) -> Vector:
        x, y, z = (
            min(max(now + self.random.uniform(*rate) * duration, smallest), largest)
            for now, smallest, largest in zip(value, a, b, strict=True)
        )
        return x, y, z


@dataclass(slots=True)
class Velocities:
    """The velocities that engines change."""

    v: Vector  # body frame, m/s
    w: Vector  # body frame, rad/s

    def push(self, body: Body, impulse: Vector, twist: Vector) -> None:
        """Apply an impulse, N s, and an angular impulse, N m s, both in the body frame."""
        (vx, vy, vz), (px, py, pz), mass = self.v, impulse, body.mass
        (wx, wy, wz), (tx, ty, tz), (ix, iy, iz) = self.w, twist, body.inertia
        self.v = vx + px / mass, vy + py / mass, vz + pz / mass
        self.w = wx + tx / ix, wy + ty / iy, wz + tz / iz


class Engine(Protocol):
    """Acts on the body that it is attached to."""

    def act(self, body: Body, q: WxyzQuaternion, velocities: Velocities, duration: float) -> None:
        """Change the velocities over a time, s. `q`: of the body frame in the world."""


@dataclass(frozen=True, slots=True)
class Buoyancy:
    """Constant buoyancy: there is no surface."""

    force: float  # N
    centre: Vector  # body frame, m

    def act(self, body: Body, q: WxyzQuaternion, velocities: Velocities, duration: float) -> None:
        up = rotate(conjugate(q), (0.0, 0.0, -self.force * duration))
        velocities.push(body, up, cross(self.centre, up))


@dataclass(frozen=True, slots=True)
class DragPlane:
    """Drag along its normal, proportional to the square of the speed."""

    centre: Vector  # body frame, m
    normal: Vector  # body frame, unit vector
    coefficient: float
    area: float  # m^2
    density: float = WATER_DENSITY
    _lever: Vector = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lever", cross(self.centre, self.normal))

    def act(self, body: Body, q: WxyzQuaternion, velocities: Velocities, duration: float) -> None:
        """See Engine. Exact: it alone slows u along the normal down to u / (1 + k u t)."""
        (nx, ny, nz), (lx, ly, lz) = self.normal, self._lever
        ix, iy, iz = body.inertia
        speed = dot(self.normal, velocities.v) + dot(self._lever, velocities.w)
        inverse_mass = 1 / body.mass + lx * lx / ix + ly * ly / iy + lz * lz / iz  # of this point along the normal
        k = self.density * self.coefficient * self.area * inverse_mass / 2  # 1/m
        lost = 1 - 1 / (1 + k * abs(speed) * duration)  # of the speed
        impulse = -lost * speed / inverse_mass
        velocities.push(body, (impulse * nx, impulse * ny, impulse * nz), (impulse * lx, impulse * ly, impulse * lz))
