# SPDX-License-Identifier: Apache-2.0
"""Entities: which entities of a simulation have names and topics, and how their models are turned. Pure."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from drone_bridge.motion.body_to_model import BodyToModel

VEHICLE_NAME = "vehicle"  # in messages
MAX_ENTITIES = 256  # that have topics
NO_ROTATION = BodyToModel()
UNKNOWN_HEADING = (
    "The rotation from the vehicle's principal axes to its model is unknown, so its orientation may be wrong. It is "
    "learned while the simulation is paused, or given by the parameter body_to_model."
)

#: Makes a token for topics and frames of a name, with what it is called that has none.
Token = Callable[[str, str], str]


class Entities:
    """The vehicle, those that parameters name, which are there in every simulation, and those that services add."""

    def __init__(self, vehicle: int, configured: Mapping[int, str], token: Token, own_frames: Collection[str]) -> None:
        """`configured` has names by entity, and `own_frames` those that no entity may have."""
        self.vehicle = vehicle
        #: By entity; they are tf frames, without prefix, and parts of topics as well.
        self.names: dict[int, str] = {}
        #: Whose states are published.
        self.open: set[int] = set()
        #: Rotations from principal axes to models, where known.
        self.body_to_model: dict[int, BodyToModel] = {}
        self._configured, self._token, self._own_frames = configured, token, frozenset(own_frames)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Have those that parameters name, and no others."""
        for entity in self.names.keys() - {self.vehicle, *self._configured}:
            self.forget(entity)
        self.names[self.vehicle] = VEHICLE_NAME
        self.open.add(self.vehicle)
        for entity, name in self._configured.items():
            self.name(entity, name)
            self.publish(entity)

    def name(self, entity: int, name: str, taken: Collection[str] = ()) -> None:
        """Give an entity a name of its own, unless it has one; `taken` are frames of what is no entity."""
        if entity in self.names:
            return
        token = free = self._token(name, "entity")
        used, number = self.frames() | set(taken), 2
        while free in used:
            free, number = f"{token}_{number}", number + 1
        self.names[entity] = free

    def frames(self) -> set[str]:
        """Return the tf frames of entities and the bridge's own, without prefix."""
        return {*self.names.values(), *self._own_frames}

    def camera_frame(self, camera: str) -> str:
        """Return the tf frame of a camera by its name, without prefix."""
        return self._token(camera, "camera")

    def publish(self, entity: int) -> None:
        """Have the states of a named entity published. Raises ValueError if there are too many."""
        if entity not in self.open and len(self.open) >= MAX_ENTITIES:
            raise ValueError(f"{MAX_ENTITIES} entities have topics already, which is the limit.")
        self.open.add(entity)

    def forget(self, entity: int) -> None:
        """Forget all about an entity that was removed, but the vehicle."""
        if entity != self.vehicle:
            self.names.pop(entity, None)
            self.body_to_model.pop(entity, None)
            self.open.discard(entity)

    @property
    def is_heading_known(self) -> bool:
        """Whether the rotation from the vehicle's principal axes to its model is known."""
        return self.vehicle in self.body_to_model

    def rotation(self, entity: int) -> BodyToModel:
        """Return the rotation of an entity, none by default."""
        return self.body_to_model.get(entity, NO_ROTATION)

    def known_rotation(self, entity: int) -> BodyToModel:
        """Return the rotation of an entity, none by default. Raises ValueError if the vehicle's is unknown."""
        if entity == self.vehicle and not self.is_heading_known:
            raise ValueError(UNKNOWN_HEADING)
        return self.rotation(entity)

    def model_state(self, entity: int, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the values of STREAMED with q about the model instead of the principal axes.

        Raises ValueError unless they are finite and q is a rotation.
        """
        x, v, a, q, w = values
        if not math.isfinite(sum(x + v + a + w)):  # the sum is NaN if any of them is
            raise ValueError(f"The state x {x}, v {v}, a {a}, w {w} is not made of finite numbers.")
        return x, v, a, self.rotation(entity).model(q), w
