# SPDX-License-Identifier: Apache-2.0
"""GuiVideoPort: the port of video packets as the GUI forwards them; their topic."""

import math
from collections.abc import Sequence

from std_msgs.msg import UInt8MultiArray

from drone_bridge.ar_drone.cameras import UVLC_WORK
from drone_bridge.net.clock import elapsed_s
from drone_bridge.pictures.source import NOTHING, ReadResult, VideoFrame
from drone_bridge.pictures.topics import CameraTranslation, VideoPacket
from drone_bridge.pictures.video_port import VideoPort
from drone_bridge.ros.qos import newest
from drone_bridge.ros.topics.table import Topic

VIDEO_TOPIC = "dronegui/video"
#: Number of datagrams at a time above which the port is read half as often.
FLOOD = 2

VIDEO_ROW = Topic(
    VIDEO_TOPIC,
    UInt8MultiArray,
    of=VideoPacket,
    to_ros=CameraTranslation.packet,
    qos=newest,
    requested=newest,
    meaning="each packet of the camera's video as received, for `dronegui_server`",
)


class GuiVideoPort(VideoPort):
    """See VideoPort. It is read at a limited rate, and only the newest packet counts."""

    peer = "the GUI"
    advice = "choose Start Video in the GUI, which does not affect the flight (reset would stop the motors)"
    _due_s = -math.inf  # the next read

    @property
    def left_s(self) -> float:
        return self._due_s - elapsed_s()

    def take(self, rate_hz: float) -> ReadResult:
        """See PictureSource. Datagrams of other hosts count for the rate, too."""
        if self.left_s > 0:
            return NOTHING
        taken = super().take(rate_hz)
        if datagrams := taken.received + taken.refused:
            turns = 2 if datagrams > FLOOD else 1
            self._due_s = max(self._due_s + turns / rate_hz, elapsed_s())
        return taken

    def _frames(self, packets: Sequence[bytes]) -> Sequence[VideoFrame]:
        return [VideoFrame(each, f"{UVLC_WORK}:decode") for each in packets[-1:]]
