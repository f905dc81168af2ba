# SPDX-License-Identifier: Apache-2.0
"""Video of the emulated drone, from its thread to pixels: both cameras, an emergency, and captured frames."""

import contextlib
import socket
import threading

import numpy as np
import pytest
from patience import TIMEOUT_S
from repository import CAPTURES

from drone_bridge.ar_drone import uvlc
from drone_bridge.ar_drone.cameras import DOWN_2, FRONT, FRONT_2
from drone_bridge.ar_drone.drawn_pictures import DrawnPictures
from drone_bridge.ar_drone.flight import ArDroneFlight
from drone_bridge.ar_drone.video_sender import VideoSender
from drone_bridge.ardrone.codec import WAKE_UP, FrameType, PaveReader
from drone_bridge.ardrone.vehicle.emulator.video import GROUP, CapturedFrames, DatagramOutlet, DrawnFrames, StreamOutlet
from drone_bridge.net.connector import LinkError
from drone_bridge.vision.floor_view import FloorView
from drone_bridge.vision.h264 import H264Decoder

CAPTURED = CAPTURES / "ardrone" / "uavpilot_video.bin"
FRONT_CHANNEL, DOWN_CHANNEL = False, True


@pytest.fixture
def flight():
    made = ArDroneFlight()
    made.position[2] = 1.0
    return made


@contextlib.contextmanager
def video(outlet, pictures):
    running = VideoSender(outlet, pictures, lambda line: None)
    try:
        yield running
    finally:
        running.close()


def client_of(outlet):
    client = socket.create_connection(outlet._listening.getsockname())
    client.settimeout(TIMEOUT_S)
    return client


def frames_of(client, count):
    reader, frames = PaveReader(), []
    while len(frames) < count and (data := client.recv(1 << 16)):
        frames += reader.receive(data)
    return frames


def test_pictures_are_made_before_the_first_client():
    made = threading.Event()
    with video(StreamOutlet("127.0.0.1", 0), lambda: made.set() or CapturedFrames(CAPTURED)):
        assert made.wait(TIMEOUT_S)


def test_drawn_frames_show_the_view_of_the_chosen_camera(flight):
    pytest.importorskip("av", reason="PyAV is not installed")
    outlet, decoder, reader = StreamOutlet("127.0.0.1", 0), H264Decoder(), PaveReader()
    with video(outlet, lambda: DrawnFrames(0)) as running, client_of(outlet) as client:
        for stream, (camera, channel) in enumerate(((FRONT_2, FRONT_CHANNEL), (DOWN_2, DOWN_CHANNEL)), start=1):
            running.show(flight.view(channel))
            seen = 0
            while seen < 4:
                for frame in reader.receive(client.recv(1 << 16)):
                    seen += frame.stream == stream  # frames of before may still be on their way
                    with contextlib.suppress(ValueError):
                        picture = decoder.decode(frame.payload, frame.stream)
            drawn = FloorView(camera, 0).draw(flight.position, flight.rotation)[..., ::-1]
            assert np.abs(picture.astype(int) - drawn).mean() < 6  # four pixels share their colour


def test_each_camera_stream_is_separate_and_begins_with_a_key_frame(flight):
    pictures, frames = DrawnFrames(0), []
    for channel in (FRONT_CHANNEL, DOWN_CHANNEL, FRONT_CHANNEL):
        running = flight.view(channel)
        (frame,) = PaveReader().receive(pictures.next(running))
        (after,) = PaveReader().receive(pictures.next(running))
        assert (frame.type, after.type) == (FrameType.IDR, FrameType.PREDICTED)
        assert len(after.payload) < 100  # nothing has changed
        frames += [frame, after]
    assert [frame.stream for frame in frames] == [1, 1, 2, 2, 3, 3]
    assert [frame.number for frame in frames] == [1, 2, 3, 4, 5, 6]


def test_every_fifteenth_frame_needs_no_other(flight):
    pictures, view = DrawnFrames(0), flight.view(FRONT_CHANNEL)
    kinds = [next(PaveReader().receive(pictures.next(view))).type for _ in range(2 * GROUP)]
    assert [number for number, kind in enumerate(kinds) if kind == FrameType.IDR] == [0, GROUP]


def test_emergency_ends_the_connection_and_newest_client_gets_the_video(flight):
    outlet = StreamOutlet("127.0.0.1", 0)
    with video(outlet, lambda: CapturedFrames(CAPTURED)) as running, client_of(outlet) as first:
        running.show(flight.view(FRONT_CHANNEL))
        assert frames_of(first, 1)
        with client_of(outlet) as second:
            assert frames_of(second, 1)
            while first.recv(1 << 16):
                pass
            running.show(flight.view(FRONT_CHANNEL, is_stopped=True))
            while second.recv(1 << 16):
                pass
        running.show(flight.view(FRONT_CHANNEL))
        with client_of(outlet) as third:
            assert frames_of(third, 1)


def test_captured_frames_come_unchanged_and_again(flight):
    captured = list(PaveReader().receive(CAPTURED.read_bytes()))
    pictures, view = CapturedFrames(CAPTURED), flight.view(FRONT_CHANNEL)
    sent = [next(PaveReader().receive(pictures.next(view))) for _ in range(len(captured) + 1)]
    assert [(frame.number, frame.payload) for frame in sent[:-1]] == [(one.number, one.payload) for one in captured]
    assert sent[-1].number == captured[0].number


def test_a_file_without_frames_is_refused(tmp_path):
    (tmp_path / "empty.bin").write_bytes(b"no frame")
    with pytest.raises(LinkError, match="no frames"):
        CapturedFrames(tmp_path / "empty.bin")


def test_an_ar_drone_1_sends_to_the_last_one_that_has_asked(flight):
    outlet = DatagramOutlet("127.0.0.1", 0)
    with video(outlet, lambda: DrawnPictures(0)) as running:
        running.show(flight.view(FRONT_CHANNEL))
        for _ in range(2):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.settimeout(TIMEOUT_S)
                client.sendto(WAKE_UP, ("127.0.0.1", outlet._port.port))
                head = uvlc.check(client.recv(1 << 16))
                assert (head.width, head.height) == (FRONT.width, FRONT.height)
