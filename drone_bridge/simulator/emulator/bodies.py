# SPDX-License-Identifier: Apache-2.0
"""Rigid bodies and their motion without forces. All bodies advance together, as columns of arrays.

The world frame is inertial, north-east-down. A body frame has the principal axes of inertia; the model frame is the
one that a model of the body is drawn in. `btom` takes what is given in the body frame to the model frame.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from drone_bridge.motion.wxyz import (
    IDENTITY,
    Vector,
    WxyzQuaternion,
    conjugate,
    multiply,
    rotate,
    unit,
)

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
