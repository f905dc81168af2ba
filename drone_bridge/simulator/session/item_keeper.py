# SPDX-License-Identifier: Apache-2.0
"""ItemKeeper: has the simulator add what is desired, and add it again when it is gone. Pure.

| what | is asked for |
|---|---|
| streams of entities, cameras, triggers | at the beginning, when they were added here, and when an entity that they \
depend on comes |
| streams of cameras | once their camera is there, and anew when a camera was added or removed, or an entity removed |

The CUAUV server stores its cameras in an array. When one is added or removed the others move, but their streams keep
dangling pointers: they repeat what was seen last, or send garbage.
"""

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import ItemType
from drone_bridge.simulator.session.desired_items import Camera, CameraStream, DesiredItem
from drone_bridge.simulator.session.exchange import Exchange, Pending, Procedure, refusal
from drone_bridge.simulator.session.published import CameraPlaced
from drone_bridge.simulator.session.simulation import Simulation


class ItemKeeper:
    """In one conversation."""

    def __init__(self, exchange: Exchange, simulation: Simulation) -> None:
        self._exchange, self._entities, self.items = exchange, simulation.entities, simulation.items
        self._simulation = simulation

    # What is added.

    def add(self, item: DesiredItem) -> Procedure[sim.Added]:
        """Request a new item for somebody, and keep it if the simulator adds it.

        Raises REFUSALS, as a ValueError if there are too many.
        """
        exchange, request = self._exchange, item.request
        exchange.check(request)
        self.items.add(item)
        try:
            (answer,) = yield from exchange.wait_for(self._send(item))
            if isinstance(answer, sim.Error):
                raise refusal(request, answer)
        except Exception:  # who hears of no success is not to find it there later
            self.items.drop(item)
            raise
        if isinstance(item, Camera):
            self.place(item)
        assert isinstance(answer, sim.Added)
        return answer

    def restore(self, entity: int) -> Procedure[None]:
        """Ask for all missing items that depend on an entity. What is refused is logged."""
        sent = self.send_missing(entity)
        yield from self.settle(sent)
        if any(isinstance(item, Camera) for item, _ in sent):
            yield from self.renew_camera_streams()
        else:
            yield from self._ask_for_camera_streams(entity)

    def send_missing(self, entity: int | None = None) -> list[tuple[DesiredItem, Pending]]:
        """Ask for all missing items but streams of cameras, or those that depend on an entity; `settle` is next."""
        missing = [item for item in self.items if item.id is None and not isinstance(item, CameraStream)]
        return [(item, self._send(item)) for item in missing if entity is None or entity in item.entities]

    def settle(self, sent: list[tuple[DesiredItem, Pending]]) -> Procedure[None]:
        """Wait for the answers, and log once what is refused."""
        for item, pending in sent:
            (answer,) = yield from self._exchange.wait_for(pending)
            was_refused, item.is_refused = item.is_refused, isinstance(answer, sim.Error)
            if isinstance(answer, sim.Error):
                if not was_refused:
                    sentence = f"The simulator refused {item.label}. {refusal(pending.request, answer)}"
                    self._exchange.note("refused_items", sentence)
            elif isinstance(item, Camera):
                self.place(item)

    def renew_camera_streams(self) -> Procedure[None]:
        """Ask for all streams of cameras that are there, and again for those that have been added, as cameras moved."""
        for stream in self.items:
            if isinstance(stream, CameraStream) and stream.id is not None:
                self._exchange.send(sim.Remove(stream.kind, stream.id))
                self.items.mark_missing(stream)
        yield from self._ask_for_camera_streams()

    def _ask_for_camera_streams(self, entity: int | None = None) -> Procedure[None]:
        """Ask for missing streams of cameras that are there, all or those that depend on an entity."""
        wanted = [
            stream
            for stream in self.items
            if isinstance(stream, CameraStream) and stream.id is None and stream.camera_id is not None
        ]
        wanted = [stream for stream in wanted if entity is None or entity in stream.entities]
        yield from self.settle([(stream, self._send(stream)) for stream in wanted])

    def place(self, camera: Camera) -> None:
        """Publish where a camera is."""
        self._exchange.publish(CameraPlaced(camera.name, camera.camera))

    def _send(self, item: DesiredItem) -> Pending:
        def register(answer: sim.Response) -> None:  # before anything else is read, as data may follow at once
            if not isinstance(answer, sim.Added):
                return
            if item in self.items:
                self.items.mark_added(item, answer.id)
            else:  # its caller has given up
                self._exchange.send(sim.Remove(item.kind, answer.id))

        return self._exchange.send(item.request, register)

    # What is gone.

    def forget(self, kind: int, number: int, *, is_ours: bool = False) -> Procedure[None]:
        """Note that an item was removed; `is_ours`: at our request."""
        self.items.removed(kind, number, is_ours=is_ours)
        if kind == ItemType.ENTITY and not any(number in item.entities for item in self.items):
            self._entities.forget(number)
        self._exchange.publish(self._simulation.scene)
        # With an entity the CUAUV server removes its cameras; if it has none, the streams of camera 0.
        if kind in (ItemType.ENTITY, ItemType.CAMERA):
            yield from self.renew_camera_streams()
