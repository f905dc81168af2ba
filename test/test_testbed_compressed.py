# SPDX-License-Identifier: Apache-2.0
"""left/ and right/image_raw/compressed of testbed_bridge: JPEGs, made while somebody listens."""

import dataclasses
import os

import cv2
import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from diagnostics import values_of
from processes import Process
from ros_session import wait_until
from sensor_msgs.msg import CompressedImage, Image
from testbed_peer import CONSTANTS, TestbedPeer

from drone_bridge.testbed.codec import SensorFrame

SIZE = dataclasses.replace(CONSTANTS, width=64, height=48)
#: A colour for each side, red, green, blue; flat, as a testbed's scenes are.
COLOURS = {"left": (250, 20, 90), "right": (10, 200, 60)}


@pytest.fixture
def peer(closing):
    return closing(TestbedPeer())


def exchange(peer):
    peer.time_s = getattr(peer, "time_s", 0.0) + 0.1
    left, right = (bytes(COLOURS[side]) * (SIZE.width * SIZE.height) for side in ("left", "right"))
    peer.socket.sendall(peer.connection.send(SensorFrame(left, right, time=peer.time_s, pitch=0.0, yaw=0.0)))
    return peer.reply()


def test_a_subscriber_gets_jpegs_of_both_sides(ros, peer):
    inboxes = {side: ros.subscribe(CompressedImage, f"{side}/image_raw/compressed") for side in COLOURS}
    with Process.node("testbed_bridge", port=peer.port, attitude_layout="pitch_yaw"):
        peer.open(SIZE)
        wait_until(lambda: exchange(peer) and all(map(len, inboxes.values())), "JPEGs")
        for side, inbox in inboxes.items():
            message = inbox.wait()
            assert message.format == "rgb8; jpeg compressed bgr8"
            assert message.header.frame_id == f"{side}_camera_optical_frame"
            decoded = cv2.imdecode(np.frombuffer(message.data, np.uint8), cv2.IMREAD_COLOR)
            assert decoded.shape == (SIZE.height, SIZE.width, 3)
            assert np.abs(decoded[:, :, ::-1].astype(int) - COLOURS[side]).max() <= 6


def test_nothing_is_compressed_while_nobody_listens(ros, peer):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    images = ros.subscribe(Image, "left/image_raw")
    with Process.node("testbed_bridge", port=peer.port, attitude_layout="pitch_yaw"):
        peer.open(SIZE)
        wait_until(lambda: exchange(peer) and len(images), "an image")
        for _ in range(50):
            exchange(peer)
        reports.clear()
        assert "images compressed" not in values_of(reports.wait())
        jpegs = ros.subscribe(CompressedImage, "right/image_raw/compressed")
        wait_until(lambda: exchange(peer) and len(jpegs), "a JPEG")
        reports.wait(lambda report: int(values_of(report).get("images compressed", 0)) > 0)


def test_without_opencv_a_sentence_says_what_to_install_and_the_rest_goes_on(ros, peer, tmp_path):
    (tmp_path / "cv2.py").write_text("raise ImportError('there is none here')\n")
    images = ros.subscribe(Image, "left/image_raw")
    ros.subscribe(CompressedImage, "left/image_raw/compressed")
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    with Process.node(
        "testbed_bridge", port=peer.port, attitude_layout="pitch_yaw", env={"PYTHONPATH": path}
    ) as process:
        peer.open(SIZE)
        said = r"left/image_raw/compressed needs OpenCV, .* \(there is none here\): install python3-opencv"
        wait_until(lambda: exchange(peer) and process.count_lines(said) and len(images), "the sentence")
        assert exchange(peer).thrust == pytest.approx(15.0)
