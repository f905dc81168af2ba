# SPDX-License-Identifier: Apache-2.0
"""ItemKeeper: has the simulator add what is desired, and add it again when it is gone. Pure.

| what | is asked for |
|---|---|
| streams of entities, cameras, triggers | at the beginning, when they were added here, and when an entity that they \
depend on comes |
| streams of cameras | once their camera is there, and anew whenever cameras have moved |

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
        self._camera_moves = 0  # how often cameras have come or gone

    # What is added.

    def add(self, item: DesiredItem) -> Procedure[sim.Added]:
        """Request a new item for somebody, and keep it if the simulator adds it.

        Raises REFUSALS, as a ValueError if there are too many.
        """
        exchange, request = self._exchange, item.request
        exchange.check(request)
        self.items.add(item)
        is_added = False
        try:
            (answer,) = yield from exchange.wait_for(self._send(item))
            if isinstance(answer, sim.Error):
                raise refusal(request, answer)
            is_added = True
        finally:  # who hears of no success is not to find it there later
            if not is_added:
                self.items.drop(item)
        if isinstance(item, Camera):
            self._note_camera(item)
        assert isinstance(answer, sim.Added)
        return answer

    def restore(self, entity: int | None = None) -> Procedure[None]:
        """Ask for all missing items, or those that depend on an entity. What is refused is logged."""
        yield from self.settle(self.send_missing(entity))
        yield from self.ask_for_camera_streams(entity)

    def send_missing(self, entity: int | None = None) -> list[tuple[DesiredItem, Pending]]:
        """Ask for all missing items but streams of cameras, or those that depend on an entity; `settle` is next."""
        missing = [item for item in self.items if item.id is None and not isinstance(item, CameraStream)]
        return [(item, self._send(item)) for item in missing if entity is None or entity in item.entities]

    def settle(self, sent: list[tuple[DesiredItem, Pending]]) -> Procedure[None]:
        """Wait for the answers, and log what was refused."""
        for item, pending in sent:
            (answer,) = yield from self._exchange.wait_for(pending)
            if isinstance(answer, sim.Error):
                sentence = f"The simulator refused {item.label}. {refusal(pending.request, answer)}"
                self._exchange.note("refused_items", sentence)
            elif isinstance(item, Camera):
                self._note_camera(item)

    def ask_for_camera_streams(self, entity: int | None = None) -> Procedure[None]:
        """Ask for streams of cameras that were not asked for yet, and renew those that precede a move of cameras.

        Those that have been refused are asked for again when they depend on `entity`.
        """
        wanted: list[DesiredItem] = []
        for stream in self.items:
            if not isinstance(stream, CameraStream) or stream.camera_id is None:
                continue
            if stream.id is None and (stream.camera_moves is None or entity in stream.entities):
                wanted.append(stream)
            elif stream.id is not None and stream.camera_moves != self._camera_moves:
                self._exchange.send(sim.Remove(stream.kind, stream.id))
                self.items.mark_missing(stream)
                wanted.append(stream)
        yield from self.settle([(stream, self._send(stream)) for stream in wanted])

    def place(self, camera: Camera) -> None:
        """Publish where a camera is."""
        self._exchange.publish(CameraPlaced(camera.name, camera.camera))

    def _note_camera(self, camera: Camera) -> None:
        """Note that the simulator has added a camera of ours. Its streams have to be asked for."""
        self._camera_moves += 1
        for stream in self.items:
            if isinstance(stream, CameraStream) and stream.camera is camera:
                stream.camera_moves = None
        self.place(camera)

    def _send(self, item: DesiredItem) -> Pending:
        if isinstance(item, CameraStream):
            item.camera_moves = self._camera_moves

        def register(answer: sim.Response) -> None:  # before anything else is read, as data may follow at once
            if isinstance(answer, sim.Added):
                self.items.mark_added(item, answer.id)

        return self._exchange.send(item.request, register)

    # What is gone.

    def forget(self, kind: int, number: int, *, is_ours: bool = False, is_known: bool = False) -> Procedure[None]:
        """Note that an item was removed.

        `is_ours`: at our request; `is_known`: it is an entity whose removal will be reported as well.
        """
        entities = self._entities
        # With an entity the CUAUV server removes its cameras; if it has none, the streams of camera 0.
        disturbs_cameras = kind == ItemType.ENTITY and number not in entities.former_names
        disturbs_cameras |= is_ours and kind == ItemType.CAMERA
        if is_known:
            entities.former_names[number] = entities.names.get(number, "")
        self.items.removed(kind, number, is_ours=is_ours)
        self._exchange.publish(self._simulation.scene)
        if disturbs_cameras:
            self._camera_moves += 1
            yield from self.ask_for_camera_streams()
        if kind == ItemType.ENTITY and not any(number in item.entities for item in self.items):
            entities.forget(number)
            self._exchange.publish(self._simulation.scene)
