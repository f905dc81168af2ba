# SPDX-License-Identifier: Apache-2.0
"""Simulation: what a client knows of the simulation that it is connected to, over its connections. Pure."""

from collections.abc import Callable, Iterable
from itertools import count

from drone_bridge.simulator.session.desired_items import Camera, DesiredItem, DesiredItems
from drone_bridge.simulator.session.entities import Entities
from drone_bridge.simulator.session.heading import Seen
from drone_bridge.simulator.session.published import Scene
from drone_bridge.simulator.session.simulated_time import SimulatedTime


class Simulation:
    """Begins as parameters describe it, and begins anew when it proves to be another one."""

    def __init__(
        self, entities: Entities, configured: Callable[[], Iterable[DesiredItem]], time: SimulatedTime
    ) -> None:
        """`configured` returns the items that parameters name.

        Raises ValueError for a camera whose frame there is already, and for too many items.
        """
        self.entities, self.time, self._configured = entities, time, configured
        self.items = DesiredItems()
        #: The vehicle, as it was last reported; None before that.
        self.seen: Seen | None = None
        #: By which it is recognized after a reconnect; None before the first one.
        self.mark: bytes | None = None
        self._begin_items()

    def begin_anew(self) -> None:
        """Forget what services have added."""
        self.entities.begin_anew()
        self._begin_items()

    def _begin_items(self) -> None:
        self.items.clear()
        for item in self._configured():
            if isinstance(item, Camera):
                self.camera_name(item.name)
            item.is_configured = True
            self.items.add(item)

    @property
    def scene(self) -> Scene:
        """What is published of it."""
        entities = {entity: self.entities.names[entity] for entity in sorted(self.entities.open)}
        return Scene(entities, frozenset(camera.name for camera in self.items.cameras()))

    def camera_frames(self) -> set[str]:
        """Return the tf frames of cameras, without prefix."""
        return {self.entities.camera_frame(camera.name) for camera in self.items.cameras()}

    def camera_name(self, name: str) -> str:
        """Return a new camera's name, an unused one by default. Raises ValueError if there is its frame already."""
        taken, frame_of = self.entities.frames() | self.camera_frames(), self.entities.camera_frame
        if not name:
            return next(each for number in count() if frame_of(each := f"camera_{number}") not in taken)
        if (frame := frame_of(name)) in taken:
            raise ValueError(f"There is a frame {frame!r} already, so no camera can be called {name!r}.")
        return name

    def name(self, entity: int, name: str) -> None:
        """Give an entity a name, by which no camera is called, unless it has one."""
        self.entities.name(entity, name or f"entity_{entity}", self.camera_frames())
