# SPDX-License-Identifier: Apache-2.0
"""The video of a drone on plain sockets: connections, silences, emergencies, cameras."""

import socket

import pytest
from patience import TIMEOUT_S, wait_until
from repository import CAPTURES

from drone_bridge.ardrone import pictures
from drone_bridge.ardrone.codec import WAKE_UP, Frame, FrameType, PaveReader, VideoCodec, write_frame
from drone_bridge.ardrone.pictures import SILENCE_S, UVLC, DroneVideo
from drone_bridge.net.connector import wait_readable
from drone_bridge.pictures.source import H264

CAPTURED = list(PaveReader().receive((CAPTURES / "ardrone" / "uavpilot_video.bin").read_bytes()))
DATAGRAM = (CAPTURES / "dronegui_video" / "qvga_q31.bin").read_bytes()


class Drone:
    """Drone's end, and what the bridge knows of it."""

    def __init__(self, version):
        self.version, self.camera, self.is_ready, self.is_emergency, self.now_s = version, "front", True, False, 100.0
        self.port = socket.socket(socket.AF_INET, socket.SOCK_STREAM if version == 2 else socket.SOCK_DGRAM)
        self.port.bind(("127.0.0.1", 0))
        self.port.settimeout(TIMEOUT_S)
        if version == 2:
            self.port.listen(4)
        self.video = DroneVideo(
            lambda: "127.0.0.1",
            self.port.getsockname()[1],
            version=lambda: self.version,
            camera=lambda: self.camera,
            is_ready=lambda: self.is_ready,
            is_emergency=lambda: self.is_emergency,
        )

    def accept(self):
        self.video.keep_open(True)
        return self.port.accept()[0]

    def frames(self, count):
        """Return the next frames that the bridge reads."""
        read = []
        while len(read) < count:
            assert wait_readable([self.video], TIMEOUT_S)[0]
            read += self.video.take(30.0).frames
        assert len(read) == count
        return read

    def has_connection(self):
        self.port.setblocking(False)
        try:
            self.port.accept()[0].close()
        except BlockingIOError:
            return False
        finally:
            self.port.settimeout(TIMEOUT_S)
        return True


@pytest.fixture(params=[2])
def drone(request, monkeypatch):
    made = Drone(request.param)
    monkeypatch.setattr(pictures, "elapsed_s", lambda: made.now_s)
    yield made
    made.video.close()
    made.port.close()


def test_frames_of_a_stream_come_in_order_with_their_numbers(drone):
    with drone.accept() as client:
        client.sendall(b"".join(map(write_frame, CAPTURED)))
        read = drone.frames(len(CAPTURED))
    assert [frame.data for frame in read] == [frame.payload for frame in CAPTURED]
    assert [frame.is_key for frame in read] == [frame.type == FrameType.IDR for frame in CAPTURED]
    assert [frame.number for frame in read] == [frame.number for frame in CAPTURED]
    assert {(frame.work, frame.camera) for frame in read} == {(H264, "front")}


def test_frames_without_a_picture_are_left_out(drone):
    announced = Frame(VideoCodec.H264, 640, 360, 1, 0, FrameType.IDR, 1, b"", is_announcement=True)
    headers = Frame(VideoCodec.H264, 640, 360, 2, 0, FrameType.HEADERS, 1, b"headers")
    with drone.accept() as client:
        client.sendall(b"".join(map(write_frame, (announced, headers, CAPTURED[0]))))
        assert [frame.number for frame in drone.frames(1)] == [CAPTURED[0].number]


def test_the_camera_changes_with_the_first_frame_of_the_next_stream(drone):
    def frame(stream):
        return write_frame(Frame(VideoCodec.H264, 640, 360, 1, 0, FrameType.IDR, stream, b"picture"))

    with drone.accept() as client:
        client.sendall(frame(1))
        assert [each.camera for each in drone.frames(1)] == ["front"]
        drone.camera = "down"
        client.sendall(frame(1) + frame(2))
        assert [each.camera for each in drone.frames(2)] == ["front", "down"]


def test_connects_only_with_a_subscriber_and_a_selected_camera(drone):
    drone.video.keep_open(False)
    drone.is_ready = False
    drone.video.keep_open(True)
    assert not drone.has_connection()
    drone.is_ready = True
    with drone.accept() as client:
        client.settimeout(TIMEOUT_S)
        drone.video.keep_open(False)
        assert client.recv(1) == b""  # the end of the connection
    assert not drone.video.is_open


def test_a_silent_stream_is_connected_again(drone):
    with drone.accept() as client:
        client.sendall(write_frame(CAPTURED[0]))
        drone.frames(1)
        drone.now_s += 0.9 * SILENCE_S
        drone.video.keep_open(True)
        assert not drone.has_connection()
        drone.now_s += 0.2 * SILENCE_S
        drone.video.keep_open(True)
        assert drone.has_connection()


def test_a_refused_connection_is_retried(drone):
    drone.port.close()
    drone.video.keep_open(True)
    wait_until(lambda: not drone.video.take(30.0).frames and not drone.video.is_open, "the refusal")
    drone.video.keep_open(True)
    assert not drone.video.is_open
    drone.now_s += 1.1 * SILENCE_S
    drone.video.keep_open(True)
    assert drone.video.is_open


def test_after_an_emergency_it_is_connected_again_at_once(drone):
    with drone.accept() as client:
        drone.is_emergency = True
        drone.video.keep_open(True)
        client.close()
        assert not drone.has_connection()
        drone.is_emergency = False
        drone.video.keep_open(True)
        assert drone.has_connection()


def test_a_connection_in_the_middle_of_a_frame_loses_only_that(drone):
    with drone.accept() as client:
        client.sendall(write_frame(CAPTURED[0])[500:] + write_frame(CAPTURED[1]))
        assert [frame.number for frame in drone.frames(1)] == [CAPTURED[1].number]


def test_frames_that_wait_after_a_stall_are_dropped(drone):
    with drone.accept() as client:
        client.sendall(b"".join(map(write_frame, CAPTURED[:5])))
        assert wait_readable([drone.video], TIMEOUT_S)[0]
        dropped = 0

        def is_dropped():
            nonlocal dropped
            dropped += drone.video.drop()
            return dropped == 5

        wait_until(is_dropped, "five frames")
        assert not drone.video.take(30.0).frames


@pytest.mark.parametrize("drone", [1], indirect=True)
def test_an_ar_drone_1_is_asked_and_sends_the_newest_picture_per_datagram(drone):
    drone.video.keep_open(True)
    data, client = drone.port.recvfrom(64)
    assert data == WAKE_UP
    drone.port.sendto(DATAGRAM, client)
    (frame,) = drone.frames(1)
    assert (frame.data, frame.work, frame.camera, frame.is_key) == (DATAGRAM, UVLC, "", True)
    drone.now_s += 1.1 * SILENCE_S
    drone.video.keep_open(True)
    assert drone.port.recvfrom(64)[0] == WAKE_UP
