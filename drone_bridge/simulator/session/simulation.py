# SPDX-License-Identifier: Apache-2.0
"""Simulation: a client's knowledge of the connected simulation, across connections. Pure."""

from collections.abc import Callable, Iterable
from itertools import count
from random import Random

from drone_bridge.simulator.session.desired_items import DesiredCamera, DesiredItem, DesiredItems
from drone_bridge.simulator.session.entities import Entities
from drone_bridge.simulator.session.events import PublishedScene
from drone_bridge.simulator.session.heading import VehicleState
from drone_bridge.simulator.session.simulated_time import SimulatedTime

MARK_BYTES = 16


class Simulation:
    """Entities and items from parameters and services. It is reset when another simulation is detected."""

    def __init__(
        self,
        entities: Entities,
        configured: Callable[[], Iterable[DesiredItem]],
        time: SimulatedTime,
        source: Random,
    ) -> None:
        """`configured` returns the items from parameters. `source`: random numbers for marks.

        Raises ValueError for a camera whose frame is in use, and for too many items.
        """
        self.entities, self.time, self._configured, self._source = entities, time, configured, source
        self.items = DesiredItems()
        #: Last reported state of the vehicle. None before the first one.
        self.seen: VehicleState | None = None
        #: First reported state of the vehicle, to which a restart of the same simulation returns it.
        self.first: VehicleState | None = None
        #: Mark that identifies it after a reconnect. None before the first connection.
        self.mark: bytes | None = None
        self._begin_items()

    def recognize(self, found: bytes | None) -> bool:
        """Return whether the connected simulation is another one than before. `found`: the mark in it.

        One that another bridge has marked keeps its mark: with two marks, each would detect a new simulation.
        """
        if found is not None and found == self.mark:
            self.items.reconnect()
            return False
        self.mark = found or self._source.randbytes(MARK_BYTES)
        self.entities.reset()
        self._begin_items()
        return True

    def _begin_items(self) -> None:
        self.items.clear()
        for item in self._configured():
            if isinstance(item, DesiredCamera):
                self.camera_name(item.name)
            item.is_configured = True
            self.items.add(item)

    @property
    def scene(self) -> PublishedScene:
        """Entities and cameras to publish."""
        entities = {entity: self.entities.names[entity] for entity in sorted(self.entities.open)}
        return PublishedScene(entities, frozenset(camera.name for camera in self.items.cameras()))

    def camera_frames(self) -> set[str]:
        """Return the tf frames of cameras, without prefix."""
        return {self.entities.camera_frame(camera.name) for camera in self.items.cameras()}

    def camera_name(self, name: str) -> str:
        """Return a new camera's name. Default: an unused one. Raises ValueError if its frame is in use."""
        taken, frame_of = self.entities.frames() | self.camera_frames(), self.entities.camera_frame
        if not name:
            return next(each for number in count() if frame_of(each := f"camera_{number}") not in taken)
        if (frame := frame_of(name)) in taken:
            raise ValueError(f"Frame {frame!r} already exists, so a camera can't be named {name!r}.")
        return name

    def name(self, entity: int, name: str) -> None:
        """Assign a name to an entity without one. It differs from those of cameras."""
        self.entities.name(entity, name or f"entity_{entity}", self.camera_frames())
