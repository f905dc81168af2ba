# SPDX-License-Identifier: Apache-2.0
"""dronegui_bridge as a process: video from the GUI on image topics, and bad input of all kinds."""

import os
import signal

import pytest
from child_processes import children_of, is_running
from diagnostic_msgs.msg import DiagnosticArray
from diagnostics import values_of
from dronegui_peer import DroneGuiPeer
from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import UInt8MultiArray
from tf2_msgs.msg import TFMessage
from video_sender import VideoSender, captured

from drone_bridge.ar_drone.cameras import DOWN, FRONT
from drone_bridge.ar_drone.uvlc import decode
from drone_bridge.pictures.codec_process import LATE, REPLY_TIMEOUT_S
from drone_bridge.tools.wire.log_file import LogFile
from drone_bridge.vision.jpegs import bgr_of_jpeg

LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
FRONT_PACKET, DOWN_PACKET = captured("qvga_q31"), captured("qcif_q30")
CALIBRATION = """
image_width: 320
image_height: 240
camera_name: front
camera_matrix: {rows: 3, cols: 3, data: [190.5, 0, 160.25, 0, 191.5, 119.75, 0, 0, 1]}
distortion_model: plumb_bob
distortion_coefficients: {rows: 1, cols: 5, data: [-0.5, 0.3, 0.001, -0.002, 0]}
rectification_matrix: {rows: 3, cols: 3, data: [1, 0, 0, 0, 1, 0, 0, 0, 1]}
projection_matrix: {rows: 3, cols: 4, data: [165, 0, 161, 0, 0, 180, 119, 0, 0, 0, 1, 0]}
"""


@pytest.fixture(scope="module", name="gui")
def shared_gui():
    gui = DroneGuiPeer()
    yield gui
    gui.close()


@pytest.fixture
def video(closing, free_port):
    sender = closing(VideoSender(free_port))
    sender.port = free_port
    return sender


def bridge(gui, video, *, env=None, **parameters):
    parameters = {"port": gui.port, "receive_navdata": False, "video_port": video.port, **parameters}
    process = Process.node("dronegui_bridge", env=env, **parameters)
    process.wait_for_line("Sending to")
    return process


def decoders_of(process):
    """Return the process ids of the decoding children."""
    return children_of(process.pid, "pictures.worker")


def values(ros):
    """Return an inbox of the values in the bridge's reports."""
    return ros.subscribe(DiagnosticArray, "/diagnostics")


def count(reports, name, least=1):
    """Wait until a counter has reached a value; return the values of that report."""
    return values_of(reports.wait(lambda report: int(values_of(report).get(name, 0)) >= least))


def test_pictures_of_both_cameras_come_on_topics(ros, gui, video):
    packets = {FRONT: FRONT_PACKET, DOWN: DOWN_PACKET}
    images, infos = ros.subscribe(Image, "image_raw"), ros.subscribe(CameraInfo, "camera_info")
    compressed = ros.subscribe(CompressedImage, "image_raw/compressed")
    static = ros.subscribe(TFMessage, "/tf_static", LATCHED)
    with bridge(gui, video, frame_prefix="d1/"):
        for camera, packet in packets.items():
            frame, picture = f"d1/{camera.name}_camera_optical_frame", decode(packet)
            video.keep_sending(packet)
            image = images.wait(lambda one, frame=frame: one.header.frame_id == frame)
            assert (image.width, image.height, image.encoding) == (camera.width, camera.height, "rgb8")
            assert image.data.tobytes() == picture.rgb8
            info = infos.wait(lambda one, image=image: one.header.stamp == image.header.stamp)
            assert info.header.frame_id == frame
            assert (info.width, info.height) == (camera.width, camera.height)
            assert info.k[0] == info.k[4] == pytest.approx(camera.focal_length)
            jpeg = compressed.wait(lambda one, frame=frame: one.header.frame_id == frame)
            assert bgr_of_jpeg(jpeg.data.tobytes()).shape == (camera.height, camera.width, 3)
        frames = {f"d1/{camera.name}_camera_optical_frame" for camera in packets}
        static.wait(lambda one: {each.child_frame_id for each in one.transforms} == frames)


@pytest.mark.exhaustive
def test_camera_info_is_that_of_the_calibration_file(ros, gui, video, tmp_path):
    path = tmp_path / "front.yaml"
    path.write_text(CALIBRATION)
    infos = ros.subscribe(CameraInfo, "camera_info")
    with bridge(gui, video, front_camera_info=str(path)):
        video.keep_sending(FRONT_PACKET)
        info = infos.wait()
        assert list(info.k[:6]) == [190.5, 0, 160.25, 0, 191.5, 119.75]
        assert list(info.d) == [-0.5, 0.3, 0.001, -0.002, 0]
        assert (info.p[0], info.header.frame_id) == (165, "front_camera_optical_frame")


@pytest.mark.exhaustive
def test_packets_are_relayed_unchanged_and_no_decoder_starts_unsubscribed(ros, gui, video):
    packets, reports = ros.subscribe(UInt8MultiArray, "dronegui/video"), values(ros)
    with bridge(gui, video) as process:
        video.keep_sending(FRONT_PACKET)
        assert packets.wait().data.tobytes() == FRONT_PACKET
        count(reports, "video_packets", 20)
        assert decoders_of(process) == []
        images = ros.subscribe(Image, "image_raw")
        images.wait()
        assert len(decoders_of(process)) == 1
    assert decoders_of(process) == []


def test_broken_packets_are_refused_and_end_nothing(ros, gui, video):
    images, packets = ros.subscribe(Image, "image_raw"), ros.subscribe(UInt8MultiArray, "dronegui/video")
    reports, refused = values(ros), "0"
    with bridge(gui, video, video_rate=60.0) as process:
        video.keep_sending(FRONT_PACKET)
        images.wait(lambda image: len(packets))
        (child,) = decoders_of(process)
        for packet in (FRONT_PACKET[:100], b"", bytes(65507)):
            video.keep_sending(packet)
            packets.wait(lambda one, packet=packet: one.data.tobytes() == packet)
            refused = count(reports, "refused_video", int(refused) + 1)["refused_video"]
        video.keep_sending(DOWN_PACKET)
        images.wait(lambda image: image.width == DOWN.width)
        assert decoders_of(process) == [child]


def test_a_stopped_child_is_reported_and_replaced_and_blocks_no_command(ros, gui, video):
    images, reports = ros.subscribe(Image, "image_raw"), values(ros)
    with bridge(gui, video) as process:
        video.keep_sending(FRONT_PACKET)
        images.wait()
        (child,) = decoders_of(process)
        os.kill(child, signal.SIGSTOP)
        gui.forget()
        late = values_of(reports.wait(lambda one: LATE in values_of(one)))
        assert late.get("ended_codec_processes", "0") == "0"
        count(reports, "ended_codec_processes")
        reports.wait(lambda one: LATE not in values_of(one))
        assert len(gui.received) > REPLY_TIMEOUT_S  # 20 times as many on a fast machine
        assert not is_running(child)
        images.clear()
        images.wait()
        (other,) = decoders_of(process)
        os.kill(other, signal.SIGSTOP)
    assert not is_running(other)


@pytest.mark.exhaustive
def test_another_host_is_refused_and_counted(ros, gui, video, closing):
    images, reports = ros.subscribe(Image, "image_raw"), values(ros)
    foreign = closing(VideoSender(video.port, "127.0.0.2"))
    with bridge(gui, video):
        foreign.keep_sending(DOWN_PACKET)
        count(reports, "foreign_video", 10)
        video.keep_sending(FRONT_PACKET)
        for _ in range(10):
            assert images.wait().width == FRONT.width


@pytest.mark.exhaustive
def test_the_wire_log_has_packets_of_video(ros, gui, video, tmp_path):
    reports = values(ros)
    with bridge(gui, video, wire_log=str(tmp_path)):
        video.keep_sending(FRONT_PACKET)
        count(reports, "video_packets", 5)
    (path,) = tmp_path.glob("*.mcap")
    with LogFile(path) as log:
        logged = [entry for entry in log.entries() if not entry.connection.is_conversation]
    assert len(logged) >= 5
    assert {entry.sender for entry in logged} == {log.source.side.other}
    assert {entry.data for entry in logged} == {FRONT_PACKET}


@pytest.mark.exhaustive
def test_without_opencv_the_raw_images_are_all_there_is(ros, gui, video, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['cv2'] = None")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    images = ros.subscribe(Image, "image_raw")
    with bridge(gui, video, env={"PYTHONPATH": path}):
        video.keep_sending(FRONT_PACKET)
        images.wait()
        assert ros.node.count_publishers("image_raw/compressed") == 0
