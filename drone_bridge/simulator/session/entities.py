# SPDX-License-Identifier: Apache-2.0
"""Entities: names and topics of a simulation's entities, and the rotations of their models. Pure."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from drone_bridge.motion.body_to_model import BodyToModel

VEHICLE_NAME = "vehicle"  # in messages
MAX_ENTITIES = 256  # with topics
NO_ROTATION = BodyToModel()
UNKNOWN_HEADING = (
    "The rotation from the vehicle's principal axes to its model is unknown, so its orientation may be wrong. It is "
    "learned while the simulation is paused, or set by the parameter body_to_model."
)

#: Function from a name and a fallback to a token for topics and frames.
Token = Callable[[str, str], str]


class Entities:
    """The vehicle, entities from parameters, which are in each simulation, and entities from services."""

    def __init__(self, vehicle: int, configured: Mapping[int, str], token: Token, own_frames: Collection[str]) -> None:
        """`configured` maps entities to names. `own_frames` are reserved names."""
        self.vehicle = vehicle
        #: Names by entity, also used as tf frames without prefix, and in topics.
        self.names: dict[int, str] = {}
        #: Entities whose states are published.
        self.open: set[int] = set()
        #: Known rotations from principal axes to models.
        self.body_to_model: dict[int, BodyToModel] = {}
        self._configured, self._token, self._own_frames = configured, token, frozenset(own_frames)
        self.reset()

    def reset(self) -> None:
        """Reset to the entities from parameters."""
        for entity in self.names.keys() - {self.vehicle, *self._configured}:
            self.forget(entity)
        self.names[self.vehicle] = VEHICLE_NAME
        self.open.add(self.vehicle)
        for entity, name in self._configured.items():
            self.name(entity, name)
            self.publish(entity)

    def name(self, entity: int, name: str, taken: Collection[str] = ()) -> None:
        """Assign a unique name to an entity without one. `taken` are frames of other things than entities."""
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
        """Publish the states of a named entity from now on. Raises ValueError if there are too many."""
        if entity not in self.open and len(self.open) >= MAX_ENTITIES:
            raise ValueError(f"{MAX_ENTITIES} entities already have topics, which is the limit.")
        self.open.add(entity)

    def forget(self, entity: int) -> None:
        """Remove a removed entity, except the vehicle."""
        if entity != self.vehicle:
            self.names.pop(entity, None)
            self.body_to_model.pop(entity, None)
            self.open.discard(entity)

    @property
    def is_heading_known(self) -> bool:
        """Whether the rotation from the vehicle's principal axes to its model is known."""
        return self.vehicle in self.body_to_model

    def rotation(self, entity: int) -> BodyToModel:
        """Return the rotation of an entity. Default: identity."""
        return self.body_to_model.get(entity, NO_ROTATION)

    def known_rotation(self, entity: int) -> BodyToModel:
        """Return the rotation of an entity. Default: identity. Raises ValueError if the vehicle's is unknown."""
        if entity == self.vehicle and not self.is_heading_known:
            raise ValueError(UNKNOWN_HEADING)
        return self.rotation(entity)

    def model_state(self, entity: int, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the values of STREAMED with q of the model instead of the principal axes.

        Raises ValueError if they are not finite or q is no rotation.
        """
        x, v, a, q, w = values
        if not math.isfinite(sum(x + v + a + w)):  # the sum is NaN if any of them is
            raise ValueError(f"The state x {x}, v {v}, a {a}, w {w} has a number that is not finite.")
        return x, v, a, self.rotation(entity).model(q), w
