# SPDX-License-Identifier: Apache-2.0
"""Has a simulator add what is wished for, as soon as it can. For the link's thread."""

from collections.abc import Callable

from drone_bridge.bridges.link_requests import ServiceResult
from drone_bridge.bridges.node import BridgeNode
from drone_bridge.bridges.simulator.link import Channel, OnOutcome, Outcome, ignore
from drone_bridge.bridges.simulator.outputs import SimulatorOutputs
from drone_bridge.bridges.simulator.wishes import Camera, CameraStream, Wish, Wishes
from drone_bridge.protocols import simulator as sim
from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.translate.simulator_errors import explanation


class Watching:
    """Asks for what is wished for: at first, when an entity comes that was missing, and when a service says so."""

    def __init__(
        self,
        node: BridgeNode,
        wishes: Wishes,
        outputs: SimulatorOutputs,
        channels: tuple[Channel, Channel],
        camera_added: Callable[[], None],
    ) -> None:
        """`channels`: for requests and for streams. `camera_added` is called for each."""
        self._node = node
        self._wishes = wishes
        self._outputs = outputs
        self._requests, self._streams = channels
        self._camera_added = camera_added
        self._camera_moves = 0  # how often cameras have come or gone

    def ask_all(self, entity: int | None = None) -> None:
        """Ask for what is wished for and not there; for what needs an entity only, if one is given."""
        for wish in self._wishes:
            if wish.id is None and not wish.is_asked and (entity is None or entity in wish.entities):
                if isinstance(wish, CameraStream) and self._are_cameras_coming:
                    wish.camera_moves = None  # it follows them
                else:
                    self.ask(wish)

    def ask(self, wish: Wish, on_outcome: OnOutcome | None = None) -> None:
        """Ask for one wish; without anybody to tell, what goes wrong is logged.

        Raises LocalProtocolError if there is somebody to tell.
        """
        request = wish.request(self._outputs.axes)
        if request is None:
            return  # it follows when its camera is there
        if isinstance(wish, CameraStream):
            wish.camera_moves = self._camera_moves

        def settle(outcome: Outcome) -> None:
            wish.is_asked = False
            if isinstance(outcome, sim.Added):
                self._added(wish, outcome.id)
            elif isinstance(outcome, sim.Error) and on_outcome is None:
                self._complain(wish, explanation(request, outcome))
            if on_outcome:
                on_outcome(outcome)
            if isinstance(wish, Camera | CameraStream) and not isinstance(outcome, ServiceResult):
                self._ask_camera_streams()

        # Cameras are the world's; streams and triggers talk to whoever has added them.
        channel = self._requests if isinstance(wish, Camera) else self._streams
        try:
            channel.ask(request, settle)
            wish.is_asked = True
        except LocalProtocolError as error:
            if on_outcome:
                raise
            self._complain(wish, str(error))

    def add(self, wish: Wish, on_outcome: OnOutcome) -> None:
        """Ask for a new wish, and keep it if the simulator grants it. Raises LocalProtocolError and ValueError."""
        self._wishes.add(wish)

        def settle(outcome: Outcome) -> None:
            if not isinstance(outcome, sim.Added):  # who hears of no success is not to find it there later
                self._wishes.drop(wish)
            on_outcome(outcome)

        try:
            self.ask(wish, settle)
        except LocalProtocolError:
            self._wishes.drop(wish)
            raise

    def _added(self, wish: Wish, number: int) -> None:
        self._wishes.fulfil(wish, number)
        if isinstance(wish, Camera):
            self._camera_moves += 1
            for stream in self._streams_of_cameras():
                if stream.camera is wish:
                    stream.camera_moves = None
            self._outputs.announce_camera(wish.plan)
            self._camera_added()

    def cameras_moved(self) -> None:
        """Take note that cameras or their streams may be gone, and have all streams of ours made anew.

        The CUAUV server keeps its cameras side by side in memory. When one comes or goes the others move, but their
        streams go on looking at where they were: at what was seen last, or at anything.
        """
        self._camera_moves += 1
        self._ask_camera_streams()

    @property
    def _are_cameras_coming(self) -> bool:
        return any(isinstance(wish, Camera) and wish.is_asked for wish in self._wishes)

    def _streams_of_cameras(self) -> list[CameraStream]:
        return [wish for wish in self._wishes if isinstance(wish, CameraStream)]

    def _ask_camera_streams(self) -> None:
        """Ask for those that were not asked for yet, and again for those that are there since before cameras moved."""
        if self._are_cameras_coming:
            return  # once for all of them
        for stream in self._streams_of_cameras():
            if stream.is_asked:
                continue
            if stream.id is None and stream.camera_moves is None:
                self.ask(stream)
            elif stream.id is not None and stream.camera_moves != self._camera_moves:
                self._renew(stream)

    def _renew(self, stream: CameraStream) -> None:
        assert stream.id is not None
        try:
            self._streams.ask(sim.Remove(stream.kind, stream.id), ignore)
        except LocalProtocolError as error:
            self._complain(stream, str(error))
            return
        self._wishes.unfulfil(stream)
        self.ask(stream)

    def _complain(self, wish: Wish, sentence: str) -> None:
        self._node.complain("refused items", f"The simulator does not give us {wish.name}. {sentence}")
