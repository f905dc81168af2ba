# SPDX-License-Identifier: Apache-2.0
"""Rigid bodies, and the forces and engines that act on them, in steps of one duration.

All bodies advance together, as columns of arrays. A step is symmetric and of second order: forces over half of it, free
motion over all of it, forces over the other half. Motion under a constant force is exact.

The world frame is inertial, north-east-down. A body frame has the principal axes of inertia; the model frame is the
one that a model of the body is drawn in. `btom` takes what is given in the body frame to the model frame.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from drone_bridge.motion.wxyz import (
    IDENTITY,
    Vector,
    WxyzQuaternion,
    conjugate,
    cross,
    dot,
    multiply,
    rotate,
    unit,
)
from drone_bridge.simulator import codec as wire

Array = npt.NDArray[np.float64]

_ROWS = 16  # x, v, a, q and w of a body
# q times i, j and k: which components go where, with which sign.
_PERMUTATIONS = tuple(np.array(rows) for rows in ((1, 0, 3, 2), (2, 3, 0, 1), (3, 2, 1, 0)))
_SIGNS = tuple(np.array(signs)[:, None] for signs in ((-1, 1, 1, -1), (-1, -1, 1, 1), (-1, 1, -1, 1)))


@dataclass(frozen=True, slots=True)
class Body:
    """The constants of a body. Raises ValueError for impossible ones."""

    mass: float = 1.0  # kg
    radius: float = 1.0  # m
    inertia: Vector = (1.0, 1.0, 1.0)  # about the axes of the body frame, kg m^2
    btom: WxyzQuaternion = IDENTITY  # made a unit quaternion

    def __post_init__(self) -> None:
        for name, value in (("mass", self.mass), ("radius", self.radius)):
            if not 0 < value < math.inf:
                raise ValueError(f"The {name} has to be finite and above 0, not {value:g}.")
        if not all(0 < moment < math.inf for moment in self.inertia):
            shown = ", ".join(f"{moment:g}" for moment in self.inertia)
            raise ValueError(f"The moments of inertia have to be finite and above 0, not {shown}.")
        object.__setattr__(self, "btom", unit(self.btom))


@dataclass(frozen=True, slots=True)
class Motion:
    """A body's state."""

    x: Vector = (0.0, 0.0, 0.0)  # world frame, m
    v: Vector = (0.0, 0.0, 0.0)  # world frame, m/s
    a: Vector = (0.0, 0.0, 0.0)  # world frame, mean of the last step, m/s^2
    q: WxyzQuaternion = IDENTITY  # of the body frame in the world
    w: Vector = (0.0, 0.0, 0.0)  # body frame, rad/s


class Bodies:
    """All bodies. `x`, `v`, `a`, `w` are (3, n) and `q` is (4, n), in the frames and units of Motion.

    They are views of `state`, (16, n), and stay valid until a body is added or removed.
    """

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.columns: dict[int, int] = {}  # by id
        self.bodies: dict[int, Body] = {}  # by id
        self.state: Array = np.empty((_ROWS, 0))
        self.before: Array = self.state.copy()  # the state before the last step
        self.is_corporeal: npt.NDArray[np.bool_] = np.empty(0, dtype=bool)
        self._pushed: set[int] = set()  # ids whose `a` was set from outside and still has to act
        self._arrange()

    def _arrange(self) -> None:
        """Rebuild the arrays from the list of bodies."""
        self.columns = {number: column for column, number in enumerate(self.ids)}
        self.x, self.v, self.a, self.q, self.w = np.split(self.state, (3, 6, 9, 13))
        bodies = [self.bodies[number] for number in self.ids]
        self.mass = np.array([body.mass for body in bodies])
        self.inertia = np.array([body.inertia for body in bodies]).reshape(-1, 3).T.copy()

    # Who is there.

    def add(self, number: int, body: Body, motion: Motion, is_corporeal: bool) -> None:
        """Add a body with a new id. Raises ValueError for a state that is not finite."""
        column = np.array([*motion.x, *motion.v, *motion.a, *unit(motion.q), *motion.w])[:, None]
        if not np.isfinite(column).all():
            raise ValueError("The state has to be finite.")
        self.ids.append(number)
        self.bodies[number] = body
        self.state = np.hstack((self.state, column))
        self.before = np.hstack((self.before, column))
        self.is_corporeal = np.append(self.is_corporeal, is_corporeal)
        self._arrange()

    def remove(self, number: int) -> None:
        column = self.columns[number]
        self.ids.remove(number)
        del self.bodies[number]
        self._pushed.discard(number)
        self.state = np.delete(self.state, column, axis=1)
        self.before = np.delete(self.before, column, axis=1)
        self.is_corporeal = np.delete(self.is_corporeal, column)
        self._arrange()

    # One body's state.

    def motion(self, number: int) -> Motion:
        s = self.state[:, self.columns[number]].tolist()
        return Motion((s[0], s[1], s[2]), (s[3], s[4], s[5]), (s[6], s[7], s[8]), tuple(s[9:13]), tuple(s[13:]))

    def model_attitude(self, number: int) -> WxyzQuaternion:
        """Return the attitude of a body's model frame in the world."""
        return multiply(self.motion(number).q, conjugate(self.bodies[number].btom))

    def model_rates(self, number: int) -> Vector:
        """Return the angular velocity in a body's model frame, rad/s."""
        return rotate(self.bodies[number].btom, self.motion(number).w)

    def set_position(self, number: int, x: Vector) -> None:
        """Move a body without motion: sweeps over the step start there, too."""
        column = self.columns[number]
        self.x[:, column] = self.before[:3, column] = x

    def set_velocity(self, number: int, v: Vector) -> None:
        """Set the velocity, world frame."""
        self.v[:, self.columns[number]] = v

    def push(self, number: int, a: Vector) -> None:
        """Set the acceleration, world frame, for the next step, in addition to forces."""
        self.a[:, self.columns[number]] = a
        self._pushed.add(number)

    def set_model_attitude(self, number: int, q: WxyzQuaternion) -> None:
        """Set the attitude of the model frame. Raises ValueError unless it is a rotation."""
        self.q[:, self.columns[number]] = multiply(unit(q), self.bodies[number].btom)

    def set_model_rates(self, number: int, w: Vector) -> None:
        """Set the angular velocity, model frame."""
        self.w[:, self.columns[number]] = rotate(conjugate(self.bodies[number].btom), w)

    # Time.

    def begin_step(self, duration: float) -> None:
        """Store the previous state, and apply accelerations that were set."""
        np.copyto(self.before, self.state)
        for number in self._pushed:
            column = self.columns[number]
            self.v[:, column] += self.a[:, column] * duration
        self._pushed.clear()

    def drift(self, duration: float) -> None:
        """Move and rotate without forces."""
        self.x += self.v * duration
        if self.w.any():
            self._spin(duration)

    def _spin(self, duration: float) -> None:
        """Rotate freely: about x, y, z, y, x in turn.

        Each of these turns is exact and keeps the angular momentum in the world; together they are of second order,
        and the energy's error stays bounded whatever the duration of the run.
        """
        momentum = self.w * self.inertia
        for axis, part in ((0, 0.5), (1, 0.5), (2, 1.0), (1, 0.5), (0, 0.5)):
            angle = momentum[axis] * (part * duration / self.inertia[axis])
            half_sine, half_cosine = np.sin(angle / 2), np.cos(angle / 2)
            self.q[:] = half_cosine * self.q + half_sine * (_SIGNS[axis] * self.q[_PERMUTATIONS[axis]])
            sine, cosine = 2 * half_sine * half_cosine, 1 - 2 * half_sine * half_sine
            j, k = momentum[axis - 2], momentum[axis - 1]
            momentum[axis - 2], momentum[axis - 1] = cosine * j + sine * k, cosine * k - sine * j
        np.divide(momentum, self.inertia, out=self.w)
        self.q /= np.sqrt((self.q * self.q).sum(axis=0))

    def end_step(self, duration: float) -> list[int]:
        """Compute accelerations, and stop bodies with a state that is not finite where they were; return their ids."""
        np.subtract(self.v, self.before[3:6], out=self.a)
        self.a /= duration
        if np.isfinite(self.state).all():
            return []
        lost = np.asarray(~np.isfinite(self.state).all(axis=0))
        self.state[:, lost] = self.before[:, lost]
        for rows in (self.v, self.a, self.w):
            rows[:, lost] = 0.0
        return [number for number, is_lost in zip(self.ids, lost.tolist(), strict=True) if is_lost]


# Forces act on every corporeal body, engines on the one that they are attached to. An engine works on a body's
# velocities over a part of a step, so that drag can be solved exactly and stays stable at any speed.


GRAVITY = 9.81  # m/s^2
WATER_DENSITY = 1000.0  # kg/m^3


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


def check_turbulence(limits: wire.Turbulence) -> None:
    """Raise ValueError for impossible limits."""
    rates = (limits.force_rate_a, limits.torque_rate_a), (limits.force_rate_b, limits.torque_rate_b)
    lowest, highest = (*limits.force_a, *limits.torque_a, *rates[0]), (*limits.force_b, *limits.torque_b, *rates[1])
    if not all(map(math.isfinite, (*lowest, *highest))):
        raise ValueError("The limits of turbulence have to be finite.")
    for a, b in zip(lowest, highest, strict=True):
        if a > b:
            raise ValueError(f"The limits a of turbulence must not be above the limits b, and {a:g} is above {b:g}.")


@dataclass(slots=True)
class Turbulence:
    """A bounded random walk of a wrench on every corporeal body, from zero on, at a rate that is drawn for each step.

    Equal limits make a constant wrench, which is one way to steer.
    """

    limits: wire.Turbulence
    random: random.Random
    force: Vector = (0.0, 0.0, 0.0)
    torque: Vector = (0.0, 0.0, 0.0)
    acceleration: Vector = (0.0, 0.0, 0.0)

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


# All of it.


class Physics:
    """All bodies, forces and engines."""

    def __init__(self, duration: float) -> None:
        """`duration`: of a step, s."""
        self.duration = duration
        self.bodies = Bodies()
        self.forces: dict[int, Force] = {}
        self.engines: dict[int, tuple[int, Engine]] = {}  # the id of the body, and what is attached to it
        self._next_force = 0
        self._next_engine = 0

    def add_force(self, force: Force) -> int:
        """Add a force; return its id."""
        self.forces[self._next_force] = force
        self._next_force += 1
        return self._next_force - 1

    def attach(self, body: int, engine: Engine) -> int:
        """Attach an engine to a body; return the engine's id."""
        self.engines[self._next_engine] = (body, engine)
        self._next_engine += 1
        return self._next_engine - 1

    def remove_body(self, number: int) -> None:
        """Remove a body and what is attached to it."""
        self.bodies.remove(number)
        self.engines = {key: value for key, value in self.engines.items() if value[0] != number}

    def step(self) -> list[int]:
        """Advance one step; return the ids of bodies that were stopped as their state was not finite."""
        engines: dict[int, list[Engine]] = {}
        for number, engine in self.engines.values():
            engines.setdefault(number, []).append(engine)
        with np.errstate(all="ignore"):  # whatever overflows is found at the end
            for force in self.forces.values():
                force.begin_step(self.duration)
            self.bodies.begin_step(self.duration)
            self._push(self.duration / 2)
            self._run(engines, self.duration / 2, reverse=False)
            self.bodies.drift(self.duration)
            self._run(engines, self.duration / 2, reverse=True)
            self._push(self.duration / 2)
            return self.bodies.end_step(self.duration)

    def _push(self, duration: float) -> None:
        bodies = self.bodies
        if not self.forces or not bodies.ids:
            return
        acceleration, push, torque = (
            np.array([_total(getattr(force, name) for force in self.forces.values())]).T
            for name in ("acceleration", "force", "torque")
        )
        change = acceleration + push / bodies.mass if push.any() else acceleration
        bodies.v += change * (duration * bodies.is_corporeal)
        if torque.any():
            twist = np.array(rotate(conjugate(bodies.q), torque))
            bodies.w += twist / bodies.inertia * (duration * bodies.is_corporeal)

    def _run(self, engines: dict[int, list[Engine]], duration: float, reverse: bool) -> None:
        """Apply the engines, in opposite orders in the two halves of a step, which cancels the effect of the order."""
        for number, attached in engines.items():
            column = self.bodies.columns[number]
            if not self.bodies.is_corporeal[column]:
                continue
            body, motion = self.bodies.bodies[number], self.bodies.motion(number)
            velocities = Velocities(rotate(conjugate(motion.q), motion.v), motion.w)
            for engine in reversed(attached) if reverse else attached:
                engine.act(body, motion.q, velocities, duration)
            self.bodies.v[:, column] = rotate(motion.q, velocities.v)
            self.bodies.w[:, column] = velocities.w


def _total(vectors: Iterable[tuple[float, float, float]]) -> list[float]:
    return [sum(components) for components in zip(*vectors, strict=True)]
