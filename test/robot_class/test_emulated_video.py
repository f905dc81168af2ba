# SPDX-License-Identifier: Apache-2.0
"""Video of an emulated robot: H.264 in datagrams."""

import socket

import pytest
from own_robots import Tello

from drone_bridge.robot_class.vehicle.body import EmulatedBody
from drone_bridge.robot_class.vehicle.emulated_video import DATAGRAM_BYTES, EmulatedVideo
from drone_bridge.vision.h264 import H264Decoder
from drone_bridge.vision.h264_pictures import H264Pictures

TIMEOUT_S = 20.0


def test_a_viewer_gets_pictures_that_a_decoder_shows():
    pytest.importorskip("av", reason="PyAV is not installed")
    pytest.importorskip("cv2", reason="OpenCV is not installed")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard:
        heard.bind(("127.0.0.1", 0))
        heard.settimeout(TIMEOUT_S)
        port = heard.getsockname()[1]
        video = EmulatedVideo(Tello.camera, EmulatedBody(Tello), "127.0.0.1", port, lambda: "127.0.0.1")
        try:
            pictures, decoder, shown, sizes = H264Pictures(), H264Decoder(), [], set()
            while len(shown) < 3:
                datagram = heard.recv(65536)
                sizes.add(len(datagram))
                shown += [decoder.decode(each.data, 1) for each in pictures.receive([datagram])]
        finally:
            video.close()
    assert {each.shape for each in shown} == {(720, 960, 3)}
    assert max(sizes) == DATAGRAM_BYTES
    assert shown[0].std() > 0, "it sees something"
