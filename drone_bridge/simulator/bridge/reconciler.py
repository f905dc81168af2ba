# SPDX-License-Identifier: Apache-2.0
"""Adds the desired items to the simulator as soon as possible. For the link's thread."""

from collections.abc import Callable

from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.link_requests import ServiceResult
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.desired_items import Camera, CameraStream, DesiredItem, DesiredItems
from drone_bridge.simulator.bridge.link import Channel, OnOutcome, Outcome, ignore
from drone_bridge.simulator.bridge.outputs import SimulatorOutputs
from drone_bridge.simulator.topics.errors import explanation
from drone_bridge.wire.events import LocalProtocolError


class Reconciler:
    """Requests desired items: initially, when a missing entity appears, and on behalf of services."""

    def __init__(
        self,
        node: LinkNode,
        items: DesiredItems,
        outputs: SimulatorOutputs,
        channels: tuple[Channel, Channel],
        camera_added: Callable[[], None],
    ) -> None:
        """`channels`: for requests and for streams. `camera_added` is called for each camera."""
        self._node = node
        self._items = items
        self._outputs = outputs
        self._requests, self._streams = channels
        self._camera_added = camera_added
        self._camera_moves = 0  # how often cameras have come or gone

    def request_all(self, entity: int | None = None) -> None:
        """Request all missing items, or those that depend on an entity."""
        for item in self._items:
            if item.id is None and not item.is_requested and (entity is None or entity in item.entities):
                if isinstance(item, CameraStream) and self._are_cameras_coming:
                    item.camera_moves = None  # it follows them
                else:
                    self.request(item)

    def request(self, item: DesiredItem, on_outcome: OnOutcome | None = None) -> None:
        """Request one item; without `on_outcome`, errors are logged.

        Raises LocalProtocolError if there is somebody to tell.
        """
        request = item.request(self._outputs.axes)
        if request is None:
            return  # it follows when its camera is there
        if isinstance(item, CameraStream):
            item.camera_moves = self._camera_moves

        def settle(outcome: Outcome) -> None:
            item.is_requested = False
            if isinstance(outcome, sim.Added):
                self._added(item, outcome.id)
            elif isinstance(outcome, sim.Error) and on_outcome is None:
                self._warn_refused(item, explanation(request, outcome))
            if on_outcome:
                on_outcome(outcome)
            if isinstance(item, Camera | CameraStream) and not isinstance(outcome, ServiceResult):
                self._ask_camera_streams()

        # Cameras belong to the world; streams and triggers send to the connection that added them.
        channel = self._requests if isinstance(item, Camera) else self._streams
        try:
            channel.ask(request, settle)
            item.is_requested = True
        except LocalProtocolError as error:
            if on_outcome:
                raise
            self._warn_refused(item, str(error))

    def add(self, item: DesiredItem, on_outcome: OnOutcome) -> None:
        """Request a new item, and keep it if the simulator adds it. Raises LocalProtocolError and ValueError."""
        self._items.add(item)

        def settle(outcome: Outcome) -> None:
            if not isinstance(outcome, sim.Added):  # who hears of no success is not to find it there later
                self._items.drop(item)
            on_outcome(outcome)

        try:
            self.request(item, settle)
        except LocalProtocolError:
            self._items.drop(item)
            raise

    def _added(self, item: DesiredItem, number: int) -> None:
        self._items.mark_added(item, number)
        if isinstance(item, Camera):
            self._camera_moves += 1
            for stream in self._streams_of_cameras():
                if stream.camera is item:
                    stream.camera_moves = None
            self._outputs.announce_camera(item.plan)
            self._camera_added()

    def cameras_moved(self) -> None:
        """Note that cameras or streams may be gone, and renew all our camera streams.

        The CUAUV server stores its cameras in an array. When one is added or removed the others move, but their streams
        keep dangling pointers: they repeat what was seen last, or send garbage.
        """
        self._camera_moves += 1
        self._ask_camera_streams()

    @property
    def _are_cameras_coming(self) -> bool:
        return any(isinstance(item, Camera) and item.is_requested for item in self._items)

    def _streams_of_cameras(self) -> list[CameraStream]:
        return [item for item in self._items if isinstance(item, CameraStream)]

    def _ask_camera_streams(self) -> None:
        """Request camera streams that were not requested yet, and renew those that precede a move of cameras."""
        if self._are_cameras_coming:
            return  # once for all of them
        for stream in self._streams_of_cameras():
            if stream.is_requested:
                continue
            if stream.id is None and stream.camera_moves is None:
                self.request(stream)
            elif stream.id is not None and stream.camera_moves != self._camera_moves:
                self._renew(stream)

    def _renew(self, stream: CameraStream) -> None:
        assert stream.id is not None
        try:
            self._streams.ask(sim.Remove(stream.kind, stream.id), ignore)
        except LocalProtocolError as error:
            self._warn_refused(stream, str(error))
            return
        self._items.mark_missing(stream)
        self.request(stream)

    def _warn_refused(self, item: DesiredItem, sentence: str) -> None:
        self._node.count_and_warn("refused items", f"The simulator refused {item.name}. {sentence}")
