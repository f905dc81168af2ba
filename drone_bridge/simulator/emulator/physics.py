# SPDX-License-Identifier: Apache-2.0
"""Bodies, and the forces and engines that act on them, in steps of one duration."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from drone_bridge.motion.wxyz import conjugate, rotate
from drone_bridge.simulator.emulator.bodies import Bodies
from drone_bridge.simulator.emulator.forces import Engine, Force, Velocities


class Physics:
    """All bodies, forces and engines.

    A step is symmetric and of second order: forces over half of it, free motion over all of it, forces over the other
    half. Motion under a constant force is exact.
    """

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
