# SPDX-License-Identifier: Apache-2.0
"""H264Port: UDP port to which a robot sends H.264. All of it is read, as each picture needs the one before."""

from collections.abc import Callable, Sequence

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import MakeTap
from drone_bridge.net.datagram_link import DatagramPort
from drone_bridge.pictures.source import H264, Hosts, VideoFrame
from drone_bridge.pictures.video_port import VideoPort
from drone_bridge.vision.h264_pictures import H264Pictures

#: Time without a datagram after which the robot is asked for video again, s.
SILENCE_S = 1.0


class H264Port(VideoPort):
    """See PictureSource."""

    peer = "the robot"

    def __init__(
        self, port: int, hosts: Callable[[], Hosts | None], log: MakeTap | None, ask: Callable[[], object]
    ) -> None:
        """See VideoPort. `ask` asks the robot for video."""
        super().__init__(port, hosts, log)
        self.advice = f"allow UDP port {port} in this machine's firewall, or restart the robot"
        self._pictures, self._stream = H264Pictures(), 0
        self._ask, self._ask_at = ask, 0.0

    def keep_open(self, is_wanted: bool) -> None:
        """See PictureSource."""
        super().keep_open(is_wanted)
        if is_wanted and self.is_open and (now_s := elapsed_s()) >= self._ask_at:
            self._ask_at = now_s + SILENCE_S
            self._ask()

    def _opened(self, hosts: Hosts) -> DatagramPort:
        self._pictures, self._stream = H264Pictures(), self._stream + 1
        return DatagramPort(hosts[0], self._number, self._log, source=(hosts[1], 0))

    def _frames(self, packets: Sequence[bytes]) -> Sequence[VideoFrame]:
        if packets:
            self._ask_at = elapsed_s() + SILENCE_S
        return [
            VideoFrame(data, H264, "", is_key, number, self._stream)
            for data, is_key, number in self._pictures.receive(packets)
        ]
