# SPDX-License-Identifier: Apache-2.0
"""ItemRequester: requests desired items from the simulator, and requests them again when they are gone. Pure.

| items | requested |
|---|---|
| streams of entities, cameras, triggers | at the start, when they are added here, and when an entity that they \
depend on is added |
| streams of cameras | once their camera exists, and again when a camera is added or removed, or an entity removed |

The CUAUV server stores its cameras in an array. When one is added or removed, the others move, but their streams keep
dangling pointers: they repeat the last position, or send garbage.
"""

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import ItemType
from drone_bridge.simulator.session.desired_items import DesiredCamera, DesiredCameraStream, DesiredItem
from drone_bridge.simulator.session.events import CameraPlaced
from drone_bridge.simulator.session.exchange import REFUSED_ITEMS, Exchange, Pending, Procedure, refusal
from drone_bridge.simulator.session.simulation import Simulation


class ItemRequester:
    """Desired items on one set of connections."""

    def __init__(self, exchange: Exchange, simulation: Simulation) -> None:
        self._exchange, self._entities, self.items = exchange, simulation.entities, simulation.items
        self._simulation = simulation

    # Adding items.

    def add(self, item: DesiredItem) -> Procedure[sim.Added]:
        """Request a new item for a caller, and keep it if the simulator adds it.

        Raises REFUSALS, as a ValueError if there are too many.
        """
        exchange, request = self._exchange, item.request
        exchange.check(request)
        self.items.add(item)
        try:
            (answer,) = yield from exchange.wait_for(self._send(item))
            if isinstance(answer, sim.Error):
                raise refusal(request, answer)
        except Exception:  # an item whose caller got an error must not exist
            self.items.drop(item)
            raise
        if isinstance(item, DesiredCamera):
            self.place(item)
        assert isinstance(answer, sim.Added)
        return answer

    def restore(self, entity: int) -> Procedure[None]:
        """Request all missing items that depend on an entity. Refusals are logged."""
        sent = self.send_missing(entity)
        yield from self.await_answers(sent)
        if any(isinstance(item, DesiredCamera) for item, _ in sent):
            yield from self.renew_camera_streams()
        else:
            yield from self._ask_for_camera_streams(entity)

    def send_missing(self, entity: int | None = None) -> list[tuple[DesiredItem, Pending]]:
        """Request all missing items except streams of cameras, or those of an entity. Call `await_answers` next."""
        missing = [item for item in self.items if item.id is None and not isinstance(item, DesiredCameraStream)]
        return [(item, self._send(item)) for item in missing if entity is None or entity in item.entities]

    def await_answers(self, sent: list[tuple[DesiredItem, Pending]]) -> Procedure[None]:
        """Wait for the answers, and log refusals."""
        for item, pending in sent:
            (answer,) = yield from self._exchange.wait_for(pending)
            if isinstance(answer, sim.Error):
                sentence = f"The simulator refused {item.label}. {refusal(pending.request, answer)}"
                self._exchange.note(REFUSED_ITEMS, sentence)
            elif isinstance(item, DesiredCamera):
                self.place(item)

    def renew_camera_streams(self) -> Procedure[None]:
        """Request all streams of existing cameras, including existing ones, since cameras moved."""
        for stream in self.items:
            if isinstance(stream, DesiredCameraStream) and stream.id is not None:
                self._exchange.send(sim.Remove(stream.kind, stream.id))
                self.items.mark_missing(stream)
        yield from self._ask_for_camera_streams()

    def _ask_for_camera_streams(self, entity: int | None = None) -> Procedure[None]:
        """Request missing streams of existing cameras, all or those that depend on an entity."""
        wanted = [
            stream
            for stream in self.items
            if isinstance(stream, DesiredCameraStream) and stream.id is None and stream.camera_id is not None
        ]
        wanted = [stream for stream in wanted if entity is None or entity in stream.entities]
        yield from self.await_answers([(stream, self._send(stream)) for stream in wanted])

    def place(self, camera: DesiredCamera) -> None:
        """Publish the pose of a camera."""
        self._exchange.publish(CameraPlaced(camera.name, camera.request))

    def _send(self, item: DesiredItem) -> Pending:
        def register(answer: sim.Response) -> None:  # first, since data may follow at once
            if isinstance(answer, sim.Added) and item in self.items:  # else its caller has timed out
                self.items.mark_added(item, answer.id)

        return self._exchange.send(item.request, register)

    # Removed items.

    def forget(self, kind: int, number: int, *, is_ours: bool = False) -> Procedure[None]:
        """Forget a removed item. `is_ours`: at our request."""
        self.items.removed(kind, number, is_ours=is_ours)
        if kind == ItemType.ENTITY and not any(number in item.entities for item in self.items):
            self._entities.forget(number)
        self._exchange.publish(self._simulation.scene)
        # With an entity, the CUAUV server removes its cameras. Without cameras, it removes the streams of camera 0.
        if kind in (ItemType.ENTITY, ItemType.CAMERA):
            yield from self.renew_camera_streams()
