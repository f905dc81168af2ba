# SPDX-License-Identifier: Apache-2.0
"""VIDEO_ROW: the topic of video packets as the GUI forwards them."""

from std_msgs.msg import UInt8MultiArray

from drone_bridge.pictures.topics import CameraTranslation, VideoPacket
from drone_bridge.ros.qos import newest
from drone_bridge.ros.topics.table import Topic

VIDEO_TOPIC = "dronegui/video"

VIDEO_ROW = Topic(
    VIDEO_TOPIC,
    UInt8MultiArray,
    of=VideoPacket,
    to_ros=CameraTranslation.packet,
    qos=newest,
    requested=newest,
    meaning="each packet of the camera's video as received, for `dronegui_server`",
)
