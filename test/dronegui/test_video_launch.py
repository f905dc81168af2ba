# SPDX-License-Identifier: Apache-2.0
"""Launch files with the AR.Drone's camera: its bag, and its packets through bridge and server."""

import signal
import socket

import pytest
from composition import INTERRUPTED, launch, wait_until_recorded
from diagnostic_msgs.msg import DiagnosticArray
from diagnostics import values_of
from dronegui_operator import DroneGuiOperator
from dronegui_peer import DroneGuiPeer
from patience import TIMEOUT_S
from ports import free_ports
from rosbags.highlevel import AnyReader
from video_sender import VideoSender, captured

from drone_bridge.vision.ar_drone_cameras import FRONT
from drone_bridge.vision.jpegs import bgr_of_jpeg
from drone_bridge.vision.uvlc import check

pytestmark = pytest.mark.exhaustive

#: Topics of the camera in a bag.
RECORDED = ("image_raw/compressed", "camera_info", "dronegui/video")
BRIDGE_PORTS = ("dronegui_port", "navdata_port", "video_port")


def test_a_recorded_flight_has_the_camera_compressed(tmp_path):
    bag = tmp_path / "flight"
    ports = dict(zip(BRIDGE_PORTS, free_ports(3), strict=True))
    with launch("dronegui.launch.xml", emulate=True, record=True, bag=bag, namespace="d1", **ports) as composition:
        wait_until_recorded(bag, [f"/d1/{topic}" for topic in RECORDED], more_bytes=100_000)
        assert composition.stop(signal.SIGINT) == INTERRUPTED, composition.output
    with AnyReader([bag]) as reader:
        topics = {connection.topic.removeprefix("/d1/"): connection for connection in reader.connections}
        assert topics.keys() >= set(RECORDED)
        assert "image_raw" not in topics
        messages = {
            topic: [reader.deserialize(data, kind.msgtype) for kind, _, data in reader.messages([topics[topic]])]
            for topic in RECORDED
        }
    pictures, infos, packets = (messages[topic] for topic in RECORDED)
    assert {bgr_of_jpeg(picture.data.tobytes()).shape for picture in pictures} == {(FRONT.height, FRONT.width, 3)}
    assert {(info.width, info.height) for info in infos} == {(FRONT.width, FRONT.height)}
    numbers = [check(packet.data.tobytes()).number for packet in packets]
    assert numbers == sorted(numbers)
    assert len(pictures) > 3


@pytest.fixture
def screen(closing):
    """A socket on the operator's port for video."""
    opened = closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    opened.bind(("127.0.0.1", 0))
    opened.settimeout(TIMEOUT_S)
    return opened


def test_a_relay_carries_packets_of_both_cameras_byte_for_byte(ros, closing, screen):
    """From the port of a GUI behind the bridge to the port of the server's operator; broken ones stay behind."""
    gui, operator = closing(DroneGuiPeer()), closing(DroneGuiOperator())
    server_port, vehicle_navdata_port, vehicle_video_port = free_ports(3)
    ports = {
        "dronegui_server_port": server_port,
        "navdata_port": operator.navdata_port,
        "video_port": screen.getsockname()[1],
        "vehicle_port": gui.port,
        "vehicle_navdata_port": vehicle_navdata_port,
        "vehicle_video_port": vehicle_video_port,
    }
    video = closing(VideoSender(vehicle_video_port))
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    with launch("dronegui_server.launch.xml", relay=True, **ports) as composition:
        composition.wait_for_line("Waiting for control packets on")
        operator.call(server_port)
        operator.keep_sending()
        for name in ("qvga_q31", "qcif_q30", "qvga_q20", "qcif_own_q1", "qcif_black"):
            packet = captured(name)
            video.keep_sending(packet)
            while screen.recv(1 << 16) != packet:
                pass
            assert {screen.recv(1 << 16) for _ in range(3)} == {packet}
        video.keep_sending(captured("refused_cut"))
        reports.wait(lambda report: int(values_of(report).get("refused_images", 0)) > 3)
        video.keep_sending(captured("qvga_rows"))
        while (packet := screen.recv(1 << 16)) == captured("qcif_black"):
            pass
        assert packet == captured("qvga_rows")
