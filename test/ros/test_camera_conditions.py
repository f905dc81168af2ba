# SPDX-License-Identifier: Apache-2.0
"""A camera without pictures: one reason, with its remedy, for log, diagnostics and page."""

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from drone_bridge.net.clock import elapsed_s
from drone_bridge.pictures.camera import PORT_TAKEN, REFUSED, SILENCE_S, UNDECODED, CameraTopics
from drone_bridge.pictures.codec_process import Reply
from drone_bridge.pictures.packet_queue import PacketQueue, QueuedFrame
from drone_bridge.pictures.source import VideoFrame
from drone_bridge.ros.node.link_report import LinkReport
from drone_bridge.session.obstacles import Obstacle


@pytest.fixture(name="lines")
def _lines():
    return []


@pytest.fixture(name="camera")
def _camera(lines):
    logger = SimpleNamespace(**dict.fromkeys(("info", "warning", "error"), lines.append))
    report = LinkReport(logger, "connected")
    report.silence._connected = (0.0,)
    camera = CameraTopics.__new__(CameraTopics)
    camera._node, camera._queue = SimpleNamespace(report=report), PacketQueue()
    camera._source = SimpleNamespace(peer="the drone", advice="restart it", problem="")
    camera._child, camera._wanted = SimpleNamespace(problem=""), frozenset({"image_raw"})
    camera._received_s, camera._linked_s, camera._refusal = -math.inf, -math.inf, ""
    camera._asked = QueuedFrame(VideoFrame(b"", ""), None, 0.0)
    return camera


def test_a_camera_without_video_names_reason_and_remedy_in_one_line(camera, lines):
    for _ in range(7):
        camera._report()
    sentence = camera._node.report.conditions[Obstacle.NO_VIDEO.key].sentence
    assert sentence == "no video comes from the drone: restart it"
    assert lines == [f"{sentence}."]


@pytest.mark.parametrize(("wanted", "received_s"), [((), -math.inf), (("image_raw",), math.inf)])
def test_no_video_is_no_problem_unsubscribed_or_once_it_comes(camera, wanted, received_s):
    camera._report()
    camera._wanted, camera._received_s = frozenset(wanted), received_s
    camera._report()
    assert Obstacle.NO_VIDEO.key not in camera._node.report.conditions


@pytest.mark.parametrize("change", [{"_connected": None}, {"limit_s": -1.0}])
def test_a_video_without_its_link_gives_no_advice(camera, change):
    camera._report()
    before = vars(camera._node.report.silence).copy()
    vars(camera._node.report.silence).update(change)
    camera._report()
    assert Obstacle.NO_VIDEO.key not in camera._node.report.conditions
    vars(camera._node.report.silence).update({name: before[name] for name in change})
    camera._report()
    assert Obstacle.NO_VIDEO.key not in camera._node.report.conditions, "one that returns has to be asked first"


def test_a_robot_that_is_switched_off_gets_no_advice_about_its_video(camera):
    report, now_s = camera._node.report, elapsed_s()
    camera._received_s, report.silence.limit_s = now_s - SILENCE_S - 0.5, 5.0
    report.silence._silent_before_s, report.silence._silent_since_s = 2.0, now_s
    camera._report()
    assert Obstacle.NO_VIDEO.key not in report.conditions
    report.silence._silent_before_s = 0.0
    camera._report()
    assert Obstacle.NO_VIDEO.key in report.conditions


def test_pictures_that_are_all_refused_make_one_line(camera, lines):
    child = SimpleNamespace(is_busy=True, reply=lambda: Reply({}, [], "A picture was refused: no JPEG."))
    for _ in range(7):
        camera._publish_reply(child)
    assert camera._node.report.counts[REFUSED] == 7
    assert len(lines) == 1


def test_the_page_reads_the_conditions_of_a_camera():
    source = (Path(__file__).resolve().parents[2] / "web" / "src" / "links.ts").read_text()
    assert all(f'"{key}"' in source for key in (PORT_TAKEN, Obstacle.NO_VIDEO.key, UNDECODED))
